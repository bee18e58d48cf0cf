"""The entry number that each message of a repaired log gets in its ConsumeQueue.

That is its own queue offset where the runs of a queue follow one another along the log. What does not follow, because a queue
offset is wrong, fills a gap that it fits, or comes after all others. Messages of an earlier life of the queue (its topic was
deleted and made again) get none, unless they are asked for: then they come after all others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.commitlog_layout import MIN_SIZE_V1_BYTES
from schemas.rows import MATCH_EQUAL, MATCH_MISSING, SegmentSummary
from store_io.base.java.java_compat import int64
from store_io.model.queue_views import QueueView

LAST_JUMP = 16  # largest jump of queue offsets at a queue's end that is accepted without damage before it
MAX_GAP = 1 << 20  # queue offsets that may be missing between neighbours of a queue without damage between them
GAP_RECORDS = 16  # so many messages in a row prove a jump of their queue offsets
MAX_PROVEN_GAP = 1 << 24  # the largest jump that they prove: each missing one costs an entry, and it may be up to 2**63
MAX_POSITION = (1 << 62) // layout.ENTRY_BYTES  # the largest entry number whose file can still be named


@dataclass
class QueueRun:
    """Messages with consecutive queue offsets, from `offset` on.

    first, last: physical offsets of the first and last; end: after that one.
    known: some entry on disk leads to it.
    entry: the number of that of the first message.
    earlier: of an earlier life of the queue, and in no queue of the copy.
    """

    offset: int
    records: int
    first: int
    last: int
    end: int
    size: int  # of the first message
    tags_code: int
    equal: bool
    segment: str
    known: bool
    counted: bool  # what a BatchConsumeQueue takes: a base below 0, or no message in it, ends a broker's reading there
    store_time: int = 0  # of the first message
    more: int = 0  # queue offsets that it takes up without an entry: in RocksDB those of an inner batch but the first
    entry: int | None = None
    earlier: bool = False
    place: int | None = None  # entry number of its first message; None: it has none

    @property
    def end_offset(self) -> int:
        return self.offset + self.records

    @property
    def used(self) -> int:
        return self.records + self.more

    @property
    def used_end(self) -> int:
        return self.offset + self.used


@dataclass
class BridgedRanges:
    """The ranges of the log that are bridged or missing, and may have held messages. Physical, ascending."""

    ranges: list[tuple[int, int]] = field(default_factory=list)

    def messages(self, start: int, end: int) -> int:
        """Return the most messages that the damaged bytes in [start, end) may have held."""
        lost = 0
        for low, high in self.ranges[max(0, bisect_right(self.ranges, (start, 0)) - 1) :]:
            if low >= end:
                break
            lost += max(0, min(high, end) - max(low, start))
        return lost // MIN_SIZE_V1_BYTES + (1 if lost else 0)


def runs_of(view: QueueView, segments: Sequence[SegmentSummary], kind: int | None = None) -> list[QueueRun]:
    """Return the queue's runs along the log. kind: those alone that are of it (`schemas.rows.RUN_*`)."""
    found = []
    columns = view.runs.rows, view.runs.positions.tolist(), view.runs.segments.tolist(), view.earlier_from().tolist()
    for row, position, number, earlier_from in zip(*columns, strict=True):
        if kind is not None and row["kind"] != kind:
            continue
        last = int(row["last_phy_offset"])
        run = QueueRun(
            offset=int(row["queue_offset"]), records=int(row["records"]), first=position, last=last,
            end=last + int(row["last_size"]), size=int(row["first_size"]), tags_code=int(row["tags_code"]),
            equal=row["match"] == MATCH_EQUAL and (view.batch or int(row["delta"]) == 0), segment=segments[number].path,
            known=row["match"] != MATCH_MISSING,
            counted=not view.batch or bool(row["queue_offset"] >= 0 and row["messages"] > 0),
            store_time=int(row["first_store_time"]), more=max(0, int(row["messages"] - row["records"])) if view.keyed else 0,
            earlier=earlier_from <= int(row["queue_offset"]),
        )  # fmt: skip
        if run.known:
            run.entry = int(row["delta"]) if view.batch else int64(run.offset + int(row["delta"]))
        found.append(run)
    return sorted(found, key=lambda run: run.first)


def place_runs(runs: list[QueueRun], bridged: BridgedRanges, with_earlier: bool) -> None:
    """Give each run its place. with_earlier: also those of an earlier life of the queue without an entry."""
    begin = _last_beginning(runs)
    own = [r for r in runs[begin:] if not r.earlier and 0 <= r.offset and r.end_offset <= MAX_POSITION]
    runs = [r for r in runs[:begin] if with_earlier or r.known] + [r for r in runs[begin:] if with_earlier or not r.earlier]
    chain = _chain(_plausible(own, bridged))
    for run in chain:
        run.place = run.offset
    on_chain = {id(run) for run in chain}
    waiting: list[QueueRun] = []
    after: list[QueueRun] = []
    low = 0
    for run in runs:
        if id(run) not in on_chain:
            waiting.append(run)
            continue
        after += _into_gap(waiting, low, run.offset) if low else waiting
        waiting, low = [], run.used_end
    end = chain[-1].used_end if chain else 0
    for run in after + waiting:
        run.place, end = end, end + run.used


def _into_gap(waiting: list[QueueRun], low: int, high: int) -> list[QueueRun]:
    """Give runs the entry numbers [low, high), those that fit; those that do not are returned."""
    rest = []
    for run in waiting:
        if low + run.used <= high:
            run.place, low = low, low + run.used
        else:
            rest.append(run)
    return rest


def _last_beginning(runs: Sequence[QueueRun]) -> int:
    """Return the run with which the queue's present life begins, if it had an earlier one.

    Its topic was deleted and made again, or its entries are missing. It is the last run from 0 on, unless the entries on disk are
    those of the older messages.
    """
    for number in range(len(runs) - 1, 0, -1):
        run = runs[number]
        continued = run.records > 1 or number + 1 < len(runs) and runs[number + 1].offset == run.used_end
        if run.offset == 0 and (continued or run.equal):
            older = sum(r.records for r in runs[:number] if r.equal)
            newer = sum(r.records for r in runs[number:] if r.equal)
            total = sum(r.records for r in runs[number:])
            if newer > older or newer == older and total >= sum(r.records for r in runs[:number]):
                return number
    return 0


def _plausible(runs: list[QueueRun], bridged: BridgedRanges) -> list[QueueRun]:
    """Return the runs without short ones whose queue offsets jump ahead of all that can have been lost before them."""
    found: list[QueueRun] = []
    for number, run in enumerate(runs):
        if not found:
            if number == 0 and len(runs) > 1 and run.records == 1 and run.offset > runs[1].offset and not run.equal:
                continue
        else:
            jump = run.offset - found[-1].used_end
            room = bridged.messages(found[-1].end, run.first)
            if run.records >= GAP_RECORDS:
                if jump > MAX_PROVEN_GAP + room:
                    continue
            elif jump > room and not run.equal:
                is_last = number == len(runs) - 1
                continues = jump <= LAST_JUMP if is_last else runs[number + 1].offset >= run.end_offset
                if not continues or jump > MAX_GAP:
                    continue
        found.append(run)
    return found


def _chain(runs: Sequence[QueueRun]) -> list[QueueRun]:
    """Return the runs with ascending queue offsets that hold most messages."""
    front: list[tuple[int, int, int]] = []  # (end, messages, run): both ascending
    before: list[int] = []
    for number, run in enumerate(runs):
        place = bisect_right(front, (run.offset, 1 << 62, 0)) - 1
        weight = run.records + (front[place][1] if place >= 0 else 0)
        before.append(front[place][2] if place >= 0 else -1)
        at = bisect_right(front, (run.end_offset, weight, -1))
        if at > 0 and front[at - 1][1] >= weight:
            continue
        high = at
        while high < len(front) and front[high][1] <= weight:
            high += 1
        front[at:high] = [(run.end_offset, weight, number)]
    chain = []
    number = front[-1][2] if front else -1
    while number >= 0:
        chain.append(runs[number])
        number = before[number]
    return chain[::-1]
