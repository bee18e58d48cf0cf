"""The messages that a start would lose: cut away, or left without a ConsumeQueue entry that leads to them.

Source of the definition: contract.md, `lost`. Prepared and rollback messages never have an entry, so only the cut loses them;
below the cut, messages of a deleted topic (config/topics.json no longer names it and no queue of it is left) are not counted,
nor those of an earlier life of a queue whose files hold the later one: they were in no queue before that start either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.rows import MATCH_DIFFERS, MATCH_EQUAL, MATCH_SHIFTED, RUN_LMQ, RUN_UNQUEUED, QueueKey, SegmentSummary
from store_io.base.java.java_compat import int64
from store_io.base.ranges import Ranges, intersect, subtract, total, union
from store_io.broker.prediction import BrokerQueue, Memory, ScanId
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.model.queue_runs import FAR, matched, message_runs, messages_in, stretches
from store_io.model.queue_views import QueueView

NO_PIECES = np.zeros((0, 4), np.int64)


@dataclass(slots=True)
class QueueLoss:
    """The loss of one queue. Times in ms."""

    messages: int = 0
    bytes: int = 0
    first_store_time: int = 0
    last_store_time: int = 0
    cut: int = 0  # of the messages: at or beyond the cut

    def add(self, rows: np.ndarray, cut: bool) -> None:
        """Count these runs."""
        if len(rows) > 1 and (rows["messages"] <= 0).any():  # no message, no time: each in its turn
            for i in range(len(rows)):
                self.add(rows[i : i + 1], cut)
            return
        first = int(min(rows["first_store_time"].min(), rows["last_store_time"].min()))
        last = int(max(rows["first_store_time"].max(), rows["last_store_time"].max()))
        messages = messages_in(rows)
        self.first_store_time = min(self.first_store_time, first) if self.messages else first
        self.last_store_time = max(self.last_store_time, last) if self.messages else last
        self.messages += messages
        self.bytes += int(rows["bytes"].sum())
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


class Unreached:
    """The messages below the cut that have no queue entry: by segment (its number) and queue, their runs."""

    def __init__(self) -> None:
        self.runs: dict[int, dict[QueueKey, list[np.ndarray]]] = {}

    def add(self, key: QueueKey, segments: np.ndarray, rows: np.ndarray) -> None:
        """Add runs of one queue, each with the number of its segment."""
        for number in np.unique(segments).tolist():
            self.runs.setdefault(number, {}).setdefault(key, []).append(rows[segments == number])


def compute_loss(
    memory: Memory,
    truncate_at: int,
    segments: Sequence[SegmentSummary],
    views: Mapping[QueueKey, QueueView],
    unreached: Unreached | None = None,
) -> Loss:
    """Hold every run of the audit's valid messages against the queues as they are after start().

    unreached: is given the runs below the cut that have no queue entry, if a caller wants their places too.
    """
    loss = Loss()
    for segment in segments:
        if segment.base_offset + segment.size > truncate_at and len(segment.runs):
            _add_cut(loss, segment, truncate_at)
    for key, view in views.items():
        if view.deleted_topic or not len(view.runs):
            continue
        rows, positions = view.runs.rows, view.runs.positions
        below = np.flatnonzero((rows["kind"] != RUN_LMQ) & (rows["kind"] != RUN_UNQUEUED) & (positions < truncate_at))
        if not len(below):
            continue
        rows = rows[below]
        queue = memory.queues.get(key)
        kept, pieces = _served(queue)
        safe, gone = _settled(view, rows, kept, pieces)
        earlier = view.earlier_from()[below] if view.begins_again else None  # what is not counted
        if earlier is not None:
            safe |= earlier <= rows["queue_offset"]
            gone &= ~safe & (earlier >= rows["queue_offset"] + rows["records"])
        if gone.any():
            loss.by_queue.setdefault(key, QueueLoss()).add(rows[gone], False)
            if unreached is not None:
                unreached.add(key, view.runs.segments[below[gone]], rows[gone])
        for number in np.flatnonzero(~(safe | gone)).tolist():
            row = rows[number]
            records = int(row["records"])
            lost = subtract([(0, records)], _reached(view, row, kept, pieces))
            if earlier is not None:
                lost = intersect(lost, [(0, int(earlier[number]) - int(row["queue_offset"]))])
            if not lost:
                continue
            if total(lost) == records:
                loss.by_queue.setdefault(key, QueueLoss()).add(rows[number : number + 1], False)
                if unreached is not None:
                    unreached.add(key, view.runs.segments[below[number : number + 1]], rows[number : number + 1])
                continue
            first = int(row["queue_offset"])
            segment_number = int(view.runs.segments[below[number]])
            cuts = loss.cuts.setdefault(segment_number, {}).setdefault(key, set())
            cuts.update(first + edge for part in lost for edge in part if 0 < edge < records)
    return loss


def _served(queue: BrokerQueue | None) -> tuple[Ranges, _Pieces]:
    """Return (entry numbers that are served as they are on disk, what dispatch put and is served)."""
    if queue is None:
        return [], _Pieces()
    if isinstance(queue, RocksQueue):
        return queue.stored_and_served(), _Pieces(NO_PIECES, queue.put_and_served())
    return _kept_on_disk(queue), _Pieces(*_pieces(queue))


def _add_cut(loss: Loss, segment: SegmentSummary, truncate_at: int) -> None:
    """Count a segment's messages at or beyond the cut."""
    rows = message_runs(segment, truncate_at - segment.base_offset)
    if not len(rows):
        return
    order = np.argsort(rows["queue"], kind="stable")
    met, starts = np.unique(rows["queue"][order], return_index=True)
    for queue, part in zip(met.tolist(), np.split(order, starts[1:]), strict=True):
        loss.by_queue.setdefault(segment.queues[queue], QueueLoss()).add(rows[part], True)


def _settled(view: QueueView, rows: np.ndarray, kept: Ranges, pieces: _Pieces) -> tuple[np.ndarray, np.ndarray]:
    """Return (runs with an entry for every record, runs with none), if one look at all runs decides it."""
    first, records = rows["queue_offset"], rows["records"]
    first_phy, last_phy = rows["first_phy_offset"], rows["last_phy_offset"]
    led_to = matched(rows)
    entry = rows["delta"] if view.batch else first + rows["delta"]  # wraps, as in Java
    near = (entry > -FAR) & (entry < FAR)
    safe, touched = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    if kept:
        starts, ends = np.array(kept, np.int64).T
        place = np.searchsorted(starts, entry, side="right") - 1
        safe = led_to & near & (place >= 0) & (entry + records <= ends[np.maximum(place, 0)])
        touched = np.searchsorted(ends, entry, side="right") != np.searchsorted(starts, entry + records, side="left")
        touched &= led_to
    touched |= led_to & ~near | pieces.any_far
    if len(pieces.firsts):
        number = np.searchsorted(pieces.firsts, last_phy, side="right")
        touched |= (number > 0) & (pieces.reach[np.maximum(number, 1) - 1] >= first_phy)
        same = np.minimum(np.searchsorted(pieces.firsts, first_phy, side="left"), len(pieces.firsts) - 1)
        piece = pieces.rows[same]
        whole = (piece[:, 2] == first_phy) & (piece[:, 3] == last_phy)
        safe |= whole if view.batch else whole & (piece[:, 0] <= first) & (piece[:, 1] - records >= first) & (np.abs(first) < FAR)
    return safe, ~touched & ~safe & (records > 0)


def _kept_on_disk(queue: QueueState) -> Ranges:
    """Return entry numbers that are still on disk and served after start()."""
    unit = queue.unit
    kept = union((f.start // unit, (f.start + f.wrote) // unit) for f in queue.files if f.path is not None)
    laid: Ranges = []
    for number, start in enumerate(queue.pieces.starts):
        rows = queue.pieces.rows[queue.pieces.rows["file"] == number]
        numbers = (start % unit + rows["at"]) // unit
        laid += [(start // unit + a, start // unit + b) for a, b in stretches(numbers, rows["count"].astype(np.int64))]
    kept = subtract(kept, union(laid))
    return kept if queue.batch else intersect(kept, [(queue.min_offset, 1 << 62)])


def _pieces(queue: QueueState) -> tuple[np.ndarray, list[tuple[int, int, int, int]]]:
    """Return the runs that dispatch appended and that are still there.

    A run is (first queue offset, last + 1, first phy_offset, last phy_offset). Runs that were appended whole are rows of an
    array, the others a list.
    """
    rows = queue.pieces.rows
    if not len(rows):
        return NO_PIECES, []
    there = np.zeros(len(rows), bool)
    starts = np.zeros(len(queue.pieces.starts), np.int64)
    for number, start in enumerate(queue.pieces.starts):
        own = np.flatnonzero(rows["file"] == number)
        at = rows["at"][own]
        end = int(at.max()) + 1 if len(at) else 0
        starts[number] = start if abs(start) < FAR else 0  # a whole run's own rows are never that far
        for file in queue.files:
            low, high = file.start - start, file.start + file.wrote - start
            if low < end and high > 0:
                there[own] |= (at >= max(low, 0)) & (at < min(high, end))
    plain = rows[there & (rows["extra"] < 0)]
    offsets = (starts[plain["file"]] + plain["at"]) // queue.unit
    whole = np.stack([offsets, offsets + plain["count"], plain["first_phy"], plain["last_phy"]], axis=1)
    others = []
    for number in rows["extra"][there & (rows["extra"] >= 0)].tolist():
        piece = queue.pieces.extra[number]
        if isinstance(piece.scan, ScanId):
            queue_offset, first_phy, last_phy = piece.of_run
            first = queue_offset + piece.skipped
            others.append((first, first + piece.count, first_phy, last_phy))
    return whole, others


class _Pieces:
    """Pieces by physical offset, so that a run finds those that touch it without looking at all."""

    def __init__(self, whole: np.ndarray = NO_PIECES, others: Sequence[tuple[int, int, int, int]] = ()):
        near = [piece for piece in others if max(map(abs, piece)) < FAR]
        self._far = [piece for piece in others if max(map(abs, piece)) >= FAR]
        self.any_far = bool(self._far)
        rows = np.concatenate([whole, np.array(near, np.int64).reshape(-1, 4)])
        self.rows = rows[np.argsort(rows[:, 2], kind="stable")]
        self.firsts = np.ascontiguousarray(self.rows[:, 2])
        self.reach = np.maximum.accumulate(self.rows[:, 3])  # largest last phy_offset so far

    def touching(self, first_phy: int, last_phy: int) -> Iterator[tuple[int, int]]:
        """Yield (first queue offset, last + 1) of those with a physical offset in [first_phy, last_phy]."""
        for piece in self._far:
            if piece[2] <= last_phy and piece[3] >= first_phy:
                yield piece[0], piece[1]
        number = int(np.searchsorted(self.firsts, last_phy, side="right"))
        while number and self.reach[number - 1] >= first_phy:
            number -= 1
            if self.rows[number, 3] >= first_phy:
                yield int(self.rows[number, 0]), int(self.rows[number, 1])


def _reached(view: QueueView, row: np.void, kept: Ranges, pieces: _Pieces) -> Ranges:
    """Return the run's records (0-based) to which some entry leads."""
    first, records = int(row["queue_offset"]), int(row["records"])
    reached: Ranges = []
    if row["match"] in (MATCH_EQUAL, MATCH_SHIFTED, MATCH_DIFFERS):
        entry = int(row["delta"]) if view.batch else int64(first + int(row["delta"]))
        reached += [(a - entry, b - entry) for a, b in intersect([(entry, entry + records)], kept)]
    for low, high in pieces.touching(int(row["first_phy_offset"]), int(row["last_phy_offset"])):
        if view.batch:
            reached.append((0, records))  # runs of the broker's own scan: appended whole or cut before
            continue
        a, b = max(low, first), min(high, first + records)
        if a < b:
            reached.append((a - first, b - first))
    return union(reached)
