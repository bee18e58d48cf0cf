"""Which messages a start would lose: cut away, or left without a ConsumeQueue entry that leads to them.

Source of the definition: contract.md, `lost`. Prepared and rollback messages never have an entry, so only the cut loses them;
messages of a topic that was deleted (config/topics.json no longer names it and no queue of it is left) are not counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from schemas.rows import (
    MATCH_DIFFERS,
    MATCH_EQUAL,
    MATCH_SHIFTED,
    RUN_LMQ,
    RUN_UNQUEUED,
    WALK_AUDIT,
    QueueKey,
    SegmentSummary,
)
from store_io.java_compat import int64
from store_io.ranges import Ranges, intersect, subtract, total, union
from store_io.rules.queue_state import Piece, QueueState
from store_io.rules.recovery import Memory, ScanId
from store_io.store_diff import QueueView, RunRef


@dataclass
class QueueLoss:
    """What one queue loses. Times in ms."""

    messages: int = 0
    bytes: int = 0
    first_store_time: int = 0
    last_store_time: int = 0
    cut: int = 0  # of the messages: at or beyond the cut

    def add(self, row: np.void, messages: int, cut: bool) -> None:
        first, last = int(row["first_store_time"]), int(row["last_store_time"])
        first, last = min(first, last), max(first, last)
        self.first_store_time = min(self.first_store_time, first) if self.messages else first
        self.last_store_time = max(self.last_store_time, last) if self.messages else last
        self.messages += messages
        self.bytes += int(row["bytes"])
        self.cut += messages if cut else 0


@dataclass
class Loss:
    """Loss by queue; `cuts`: entry numbers at which a segment's runs must be split before it is exact."""

    by_queue: dict[QueueKey, QueueLoss] = field(default_factory=dict)
    cuts: dict[int, dict[QueueKey, set[int]]] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        return sum(q.messages for q in self.by_queue.values())

    @property
    def bytes(self) -> int:
        return sum(q.bytes for q in self.by_queue.values())


def compute_loss(
    memory: Memory,
    truncate_at: int,
    segments: Sequence[SegmentSummary],
    views: Mapping[QueueKey, QueueView],
    scans: Mapping[ScanId, SegmentSummary],
) -> Loss:
    """Every run of the audit's valid messages held against the queues as they are after start()."""
    loss = Loss()
    for segment in segments:
        for row in segment.runs:
            if (
                row["walk"] & WALK_AUDIT
                and row["kind"] != RUN_LMQ
                and segment.base_offset + int(row["first_position"]) >= truncate_at
            ):
                key = segment.queues[int(row["queue"])]
                loss.by_queue.setdefault(key, QueueLoss()).add(row, int(row["messages"]), True)
    for key, view in views.items():
        if view.deleted_topic:
            continue
        queue = memory.queues.get(key)
        kept = _kept_on_disk(queue) if queue is not None else []
        pieces = _Pieces(_pieces(queue, scans) if queue is not None else [])
        for ref in view.runs:
            row = ref.row
            base = segments[ref.segment].base_offset
            if row["kind"] in (RUN_LMQ, RUN_UNQUEUED) or base + int(row["first_position"]) >= truncate_at:
                continue
            records = int(row["records"])
            lost = subtract([(0, records)], _reached(view, ref, kept, pieces))
            if not lost:
                continue
            if total(lost) == records:
                loss.by_queue.setdefault(key, QueueLoss()).add(row, int(row["messages"]), False)
                continue
            first = int(row["queue_offset"])
            cuts = loss.cuts.setdefault(ref.segment, {}).setdefault(key, set())
            cuts.update(first + edge for part in lost for edge in part if 0 < edge < records)
    return loss


def _kept_on_disk(queue: QueueState) -> Ranges:
    """Entry numbers that are still on disk and served after start()."""
    unit = queue.unit
    kept = union((f.start // unit, (f.start + f.wrote) // unit) for f in queue.files if f.path is not None)
    kept = subtract(kept, union((p.start // unit, p.start // unit + p.count) for p in queue.pieces))
    return kept if queue.batch else intersect(kept, [(queue.min_offset, 1 << 62)])


def _pieces(queue: QueueState, scans: Mapping[ScanId, SegmentSummary]) -> list[tuple[int, int, int, int]]:
    """(first queue offset, last + 1, first phy_offset, last phy_offset) of what dispatch appended and is still there."""
    found = []
    for piece in queue.pieces:
        if not isinstance(piece.scan, ScanId) or not _still_there(queue, piece):
            continue
        row = scans[piece.scan].runs[piece.run]
        first = int(row["queue_offset"]) + piece.skipped
        found.append((first, first + piece.count, int(row["first_phy_offset"]), int(row["last_phy_offset"])))
    return found


def _still_there(queue: QueueState, piece: Piece) -> bool:
    return any(f.start <= piece.start < f.start + f.wrote for f in queue.files)


class _Pieces:
    """Pieces by physical offset, so that a run finds those that touch it without looking at all."""

    def __init__(self, pieces: list[tuple[int, int, int, int]]):
        self._pieces = sorted(pieces, key=lambda piece: piece[2])
        self._firsts = [piece[2] for piece in self._pieces]
        self._reach = list(accumulate((piece[3] for piece in self._pieces), max))  # largest last phy_offset so far

    def touching(self, first_phy: int, last_phy: int) -> Iterator[tuple[int, int, int, int]]:
        """Those with a physical offset in [first_phy, last_phy]."""
        number = bisect_right(self._firsts, last_phy)
        while number and self._reach[number - 1] >= first_phy:
            number -= 1
            if self._pieces[number][3] >= first_phy:
                yield self._pieces[number]


def _reached(view: QueueView, ref: RunRef, kept: Ranges, pieces: _Pieces) -> Ranges:
    """Which of the run's records (0-based) some entry leads to."""
    row = ref.row
    first, records = int(row["queue_offset"]), int(row["records"])
    reached: Ranges = []
    if row["match"] in (MATCH_EQUAL, MATCH_SHIFTED, MATCH_DIFFERS):
        entry = int(row["delta"]) if view.batch else int64(first + int(row["delta"]))
        reached += [(a - entry, b - entry) for a, b in intersect([(entry, entry + records)], kept)]
    for low, high, _, _ in pieces.touching(int(row["first_phy_offset"]), int(row["last_phy_offset"])):
        if view.batch:
            reached.append((0, records))  # runs of the broker's own scan: appended whole or cut before
            continue
        a, b = max(low, first), min(high, first + records)
        if a < b:
            reached.append((a - first, b - first))
    return union(reached)
