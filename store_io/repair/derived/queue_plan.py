"""Plans each ConsumeQueue of a repaired store: every message of the log at its own queue offset, and nothing else.

A view of the queue (`queue_views.queue_views`) shows which entries are right already. All others are rebuilt from the log.
A queue offset whose message is missing gets an entry that makes a consumer continue with the next message (`answer`).
Source: ConsumeQueue.putMessagePositionInfo and fillPreBlank, BatchConsumeQueue, DefaultMessageStore.getMessage.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.finding_codes import CATALOGUE, Code, Stays
from schemas.layouts import consumequeue_layout as layout
from schemas.repair import MovedRange, QueueRange, UnservedRange
from schemas.rows import Finding, MappedFile, QueueKey, SegmentSummary
from store_io.base.ranges import total
from store_io.broker.loading import Tree
from store_io.broker.releases import BrokerRules
from store_io.model.queue_views import QueueView
from store_io.repair.derived.queue_places import BridgedRanges, QueueRun, place_runs, runs_of
from store_io.source.byte_source import name_of

FEW_POSITIONS = 32  # a pull's usual batch
IN_NO_QUEUE = "of an earlier life of this queue, and in no queue of the copy either"
EARLIER = "of an earlier life of this queue, whose offsets begin again later"
NEVER_PUT = "a batch for which no broker makes an entry"
"""Why a message gets no entry."""
_PRE_BLANK = struct.pack(layout.ENTRY_FORMAT, 0, layout.PRE_BLANK_SIZE, 0)


@dataclass(frozen=True)
class Shift:
    """Messages of one queue in one segment, by physical offset [first, last].

    shift: how far their entries are away from their own queue offset; None: they get no entry.
    """

    first: int
    last: int
    shift: int | None


@dataclass(frozen=True)
class QueueBuild:
    """The target of a segment's messages of one queue in files.

    shifts: those that are not at their own queue offset.
    batch_start: the entry number of the segment's first message of a BatchConsumeQueue, -1 for an ordinary queue.
    """

    folder: str
    file_bytes: int
    shifts: tuple[Shift, ...] = ()
    batch_start: int = -1


class Fill(NamedTuple):
    """Entry numbers [start, end) that no message has, and the entry that is written for each of them."""

    start: int
    end: int
    entry: bytes


@dataclass
class QueuePlan:
    """How one queue is made, by entry numbers.

    keep: entries [first file, keep) stay as they are: those of messages that retention has deleted.
    first, end: the entries that are made.
    """

    key: QueueKey
    folder: str
    batch: bool = False
    keep: int = 0
    keep_files: list[MappedFile] = field(default_factory=list)
    first: int = 0
    end: int = 0
    fills: list[Fill] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)
    batch_starts: dict[str, int] = field(default_factory=dict)  # segment -> entry number of its first message
    reasons: list[str] = field(default_factory=list)
    in_place: bool = False  # all entries are where a repair puts them: nothing is made
    answered: list[QueueRange] = field(default_factory=list)  # queue offsets without a message
    moved: list[MovedRange] = field(default_factory=list)  # messages at another queue offset than their own
    unserved: list[UnservedRange] = field(default_factory=list)

    @property
    def entries(self) -> int:
        """Return how many are made."""
        return self.end - self.first

    @property
    def unit(self) -> int:
        """Return bytes of an entry."""
        return layout.BATCH_ENTRY_BYTES if self.batch else layout.ENTRY_BYTES

    def file_bytes(self, rules: BrokerRules) -> int:
        """Return the size of the queue's files."""
        return rules.batch_file_bytes if self.batch else rules.queue_file_bytes

    def of_segment(self, path: str, rules: BrokerRules) -> QueueBuild:
        """Return the target of that segment's messages."""
        start = self.batch_starts.get(path, 0) if self.batch else -1
        return QueueBuild(self.folder, self.file_bytes(rules), tuple(self.shifts), start)


@dataclass(frozen=True)
class NewLog:
    """The log that the queues lead into, from `start` on.

    salvage: by that policy.
    with_earlier: messages of an earlier life of a queue get entries too, after the others, although no entry led to them.
    """

    segments: Sequence[SegmentSummary]
    tree: Tree
    rules: BrokerRules
    start: int
    bridged: BridgedRanges
    salvage: bool
    with_earlier: bool = False


def plan_queue(view: QueueView, serious: Sequence[Finding], log: NewLog) -> QueuePlan | None:
    """Plan one queue; None: it stays.

    serious: findings above a note that blame it.
    """
    plan = QueuePlan(view.key, view.folder, view.batch, reasons=sorted({f.code for f in serious}))
    runs = runs_of(view, log.segments)
    size = (log.rules.batch_file_bytes if view.batch else log.rules.queue_file_bytes) // view.unit
    regular = _is_regular(view, log.tree, size)
    expired = view.summary.expired_end if view.summary is not None and regular else 0
    if view.batch:
        return _plan_batch(plan, view, runs, log, regular, expired)
    place_runs(runs, log.bridged, log.with_earlier)
    placed = sorted(((run.place, run) for run in runs if run.place is not None), key=lambda pair: pair[0])
    own = all(run.place == run.offset and run.equal for run in runs)
    first_file = view.files[0].start // view.unit if view.files else 0
    if regular and own and not plan.reasons and _is_whole(view, placed, expired, first_file):
        return None
    moved_alone = all(CATALOGUE[reason].stays & Stays.MOVED_MESSAGE for reason in plan.reasons)
    if placed and moved_alone and Code.QUEUE_ENTRY_UNEXPECTED not in plan.reasons:
        in_place = all(run.place == run.entry for run in runs)
        if regular and in_place and _is_whole(view, placed, expired, first_file):
            note_places(plan, runs)
            plan.in_place = True
            return plan
    if not plan.reasons:
        plan.reasons = [Code.QUEUE_ENTRY_UNEXPECTED if own else Code.QUEUE_ENTRY_MISSING]
    keep = min(expired, placed[0][0]) if placed else expired if _ends_expired(view) else 0
    if keep > first_file:
        plan.keep = keep
        plan.keep_files = [f for f in view.files if f.start // view.unit < keep]
    plan.first = plan.end = plan.keep
    if placed:
        start, last = placed[0][0], placed[-1]
        plan.first = plan.keep if plan.keep_files else start - start % size
        plan.end = last[0] + last[1].records
        _fill_positions(plan, placed, log)
        note_places(plan, runs)
    return plan


def _is_whole(view: QueueView, placed: Sequence[tuple[int, QueueRun]], expired: int, first_file: int) -> bool:
    """Say whether the files end with the last message's entry, and have nothing else from the first one's on."""
    used = view.summary.used_end if view.summary is not None else 0
    if used <= view.files[-1].start // view.unit:
        return False
    if not placed:
        return used == expired and _ends_expired(view)
    first = at = placed[0][0]
    for place, run in placed:
        if place != at:
            return False
        at += run.records
    return used == at and not any(end > max(first, expired, first_file) for _, end in view.leftover)


def _fill_positions(plan: QueuePlan, placed: Sequence[tuple[int, QueueRun]], log: NewLog) -> None:
    """Give every entry number that no message has an entry."""
    at = plan.first
    for number, (place, run) in enumerate(placed):
        if at < place:
            blank = number == 0 and log.start > 0
            plan.fills.append(Fill(at, place, _PRE_BLANK if blank else answer(run, place - at, log)))
            if not blank:
                plan.answered.append(QueueRange(*plan.key, at, place, run.first))
        at = place + run.records


def note_places(plan: QueuePlan, runs: Sequence[QueueRun]) -> None:
    """Note the messages that are not at their own queue offset."""
    for run in runs:
        if run.place is None:
            plan.shifts.append(Shift(run.first, run.last, None))
            reason = IN_NO_QUEUE if run.earlier else EARLIER
            plan.unserved.append(UnservedRange(*plan.key, run.offset, run.end_offset, run.first, reason, not run.earlier))
        elif run.place != run.offset:
            plan.shifts.append(Shift(run.first, run.last, run.place - run.offset))
            plan.moved.append(MovedRange(*plan.key, run.place, run.place + run.records, run.first, run.offset))


def answer(run: QueueRun, count: int, log: NewLog) -> bytes:
    """Return the entry for each of `count` queue offsets before this run whose messages are missing.

    It leads to the last byte of the segment before, with more bytes than are left there: getMessage finds nothing, skips what
    lies in that segment, and continues with the run. In the log's first segment there is no such place (and a 5.x broker's search
    for its minimum needs ascending offsets there): then it leads to the run's first message itself, which comes twice.
    Policy broker does the same for up to FEW_POSITIONS queue offsets: the broker itself would return a (damaged) message there.
    """
    base = run.first - run.first % log.rules.segment_bytes
    if base <= log.start or not log.salvage and count <= FEW_POSITIONS:
        return struct.pack(layout.ENTRY_FORMAT, run.first, run.size, run.tags_code)
    return struct.pack(layout.ENTRY_FORMAT, base - 1, layout.ANSWER_SIZE, 0)


def _ends_expired(view: QueueView) -> bool:
    """Say whether the queue's last entry is one of a message that retention has deleted, not a pre-blank slot (P11)."""
    summary = view.summary
    if summary is None or summary.used_end == 0:
        return False
    return summary.expired_end == summary.used_end and 0 <= summary.max_phy_offset < layout.PRE_BLANK_SIZE


def _is_regular(view: QueueView, tree: Tree, file_entries: int) -> bool:
    """Say whether the folder holds the files that a broker makes, and nothing else."""
    names = tree.children(view.folder)
    if not names or any(e.kind != "file" for e in names) or len(names) != len(view.files):
        return False
    expected = view.files[0].start
    for file in view.files:
        if file.start != expected or file.size != file_entries * view.unit or file.start % file.size:
            return False
        if name_of(file.path) != f"{file.start:020d}":
            return False
        expected += file.size
    return True


def _plan_batch(
    plan: QueuePlan, view: QueueView, runs: list[QueueRun], log: NewLog, regular: bool, expired: int
) -> QueuePlan | None:
    """Plan entries that follow one another in the order of the log, whatever their offsets.

    Batches to which no entry can lead have none.
    """
    for run in runs:
        if not run.counted:
            plan.unserved.append(UnservedRange(*view.key, run.offset, run.offset, run.first, NEVER_PUT, False))
        elif run.earlier and not log.with_earlier:
            plan.shifts.append(Shift(run.first, run.last, None))
            plan.unserved.append(UnservedRange(*view.key, run.offset, run.end_offset, run.first, IN_NO_QUEUE, False))
    runs = [run for run in runs if run.counted and (log.with_earlier or not run.earlier)]
    count = sum(run.records for run in runs)
    if regular and not plan.reasons and total(view.covered) == count:
        used = view.summary.used_end if view.summary is not None else 0
        if used == expired + count and used > view.files[-1].start // view.unit:
            return None
    plan.keep = expired
    plan.keep_files = [f for f in view.files if f.start // view.unit < expired]
    at = expired
    for run in runs:
        plan.batch_starts.setdefault(run.segment, at)
        at += run.records
    plan.first, plan.end = expired, at
    if not plan.reasons:
        plan.reasons = [Code.QUEUE_ENTRY_MISSING]
    return plan
