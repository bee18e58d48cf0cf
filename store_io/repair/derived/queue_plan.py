"""What each ConsumeQueue of a repaired store holds: every message of the log at its own queue offset, and nothing else.

A view of the queue (`queue_views.queue_views`) tells which entries stand right already. What does not is made anew from the
log; positions that no message holds any more get an entry with which a consumer that stands there goes on with the queue's next
message (`_answer`).
Source: ConsumeQueue.putMessagePositionInfo and fillPreBlank, BatchConsumeQueue, DefaultMessageStore.getMessage.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas import consumequeue_layout as layout
from schemas.commitlog_layout import MIN_SIZE_V1_BYTES
from schemas.rows import MATCH_EQUAL, MATCH_MISSING, NOTE, Finding, MappedFile, QueueKey, Row, SegmentSummary
from schemas.store_names import EXT
from store_io.audit.queue_views import QueueView
from store_io.base.java_compat import parse_number
from store_io.rules.loading import Tree, is_folder
from store_io.rules.releases import BrokerRules

FEW_POSITIONS = 32  # a pull's usual batch
LAST_JUMP = 16  # that a queue's last messages may make without damage before them and messages behind
MAX_GAP = 1 << 20  # positions that may lie between neighbours of a queue without any damage between them
GAP_RECORDS = 16  # so many messages in a row prove a jump of their queue offsets
MAX_PROVEN_GAP = 1 << 24  # that they prove: each position costs an entry, and a queue offset may be anything, up to 2**63
MAX_POSITION = (1 << 62) // layout.ENTRY_BYTES  # whose place in a file a name can still say
_PRE_BLANK = struct.pack(layout.ENTRY_FORMAT, 0, layout.PRE_BLANK_SIZE, 0)
_ENTRY, _BATCH = layout.ENTRY_BYTES, layout.BATCH_ENTRY_BYTES


@dataclass(frozen=True)
class Shift:
    """Messages of one queue in one segment, by physical offset [first, last], whose entries stand `shift` from their own queue
    offset. None: they get no entry."""

    first: int
    last: int
    shift: int | None


@dataclass
class QueuePlan:
    """How one queue is made. Positions are entry numbers.

    keep: entries [first file, keep) stay as they are: those of messages that retention has deleted.  first, end: the entries
    that are made.  fills: ranges of positions that no message holds, and the entry that each of them gets.
    """

    key: QueueKey
    folder: str
    batch: bool = False
    keep: int = 0
    keep_files: list[MappedFile] = field(default_factory=list)
    first: int = 0
    end: int = 0
    fills: list[tuple[int, int, bytes]] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)
    batch_starts: dict[str, int] = field(default_factory=dict)  # segment -> entry number of its first message
    reasons: list[str] = field(default_factory=list)
    answered: list[Row] = field(default_factory=list)  # rows of the report: positions without a message
    moved: list[Row] = field(default_factory=list)  # rows of the report: messages at another position than their own
    unserved: list[Row] = field(default_factory=list)

    @property
    def unit(self) -> int:
        """Bytes of an entry."""
        return _unit(self.batch)


@dataclass(frozen=True)
class NewLog:
    """What the plan of every queue goes by: the log that it leads into, from `start` on.

    serve_all: messages of an earlier life of the topic get entries too, behind the others, though nothing led to them."""

    segments: Sequence[SegmentSummary]
    tree: Tree
    rules: BrokerRules
    start: int
    damage: Damage
    serve_all: bool


@dataclass
class _Run:
    offset: int
    records: int
    position: int  # physical
    last_position: int
    end: int  # physical end of its last message
    size: int
    tags_code: int
    equal: bool
    segment: str
    known: bool = True  # some entry on disk leads to it
    counted: bool = True  # what a BatchConsumeQueue takes: a base below 0, or no message in it, ends a broker's reading there
    place: int | None = None  # entry number of its first message; None: it has none

    @property
    def behind(self) -> int:
        return self.offset + self.records


def runs_of(view: QueueView, segments: Sequence[SegmentSummary]) -> list[_Run]:
    """The queue's runs along the log."""
    found = []
    rows = view.runs.rows
    for row, position, number in zip(rows, view.runs.positions.tolist(), view.runs.segments.tolist(), strict=True):
        last = int(row["last_phy_offset"])
        found.append(
            _Run(
                int(row["queue_offset"]),
                int(row["records"]),
                position,
                last,
                last + int(row["last_size"]),
                int(row["first_size"]),
                int(row["tags_code"]),
                row["match"] == MATCH_EQUAL and (view.batch or int(row["delta"]) == 0),
                segments[number].path,
                row["match"] != MATCH_MISSING,
                not view.batch or bool(row["queue_offset"] >= 0 and row["messages"] > 0),
            )
        )
    return sorted(found, key=lambda run: run.position)


def plan_queue(view: QueueView, serious: Sequence[Finding], log: NewLog) -> QueuePlan | None:
    """What is to be done with one queue; None: nothing, it stays as it is. serious: findings above a note that blame it."""
    plan = QueuePlan(view.key, view.folder, view.batch)
    plan.reasons = sorted({f.code for f in serious})
    runs = runs_of(view, log.segments)
    size = (log.rules.batch_file_bytes if view.batch else log.rules.queue_file_bytes) // _unit(view.batch)
    regular = _is_regular(view, log.tree, size)
    summary = view.summary
    if view.batch:
        return _plan_batch(plan, view, runs, regular)
    _place(runs, log.damage, log.serve_all)
    placed = sorted((r for r in runs if r.place is not None), key=lambda r: r.place or 0)
    own = all(r.place == r.offset and r.equal for r in runs)
    expired = summary.expired_end if summary is not None and regular else 0
    used = summary.used_end if summary is not None else 0
    first_file = view.files[0].start // _ENTRY if view.files else 0
    last_file = view.files[-1].start // _ENTRY if view.files else 0
    end = placed[-1].place + placed[-1].records if placed else 0  # type: ignore[operator]
    tails = used > last_file and (used == end if placed else used == expired and _ends_expired(view))
    inner = not placed or _without_holes(placed, view, max(expired, first_file))
    if regular and own and tails and inner and not plan.reasons:
        return None
    if not plan.reasons:
        plan.reasons = ["queue_entry_missing" if not own else "queue_entry_unexpected"]
    plan.keep = max(first_file, min(expired, placed[0].place or 0) if placed else expired)
    if not _ends_expired(view) and not placed:
        plan.keep = first_file
    if plan.keep > first_file:
        plan.keep_files = [f for f in view.files if f.start // _ENTRY < plan.keep]
    else:
        plan.keep = 0
    if not placed:
        plan.first = plan.end = plan.keep
        return plan
    start = placed[0].place or 0
    at = plan.keep if plan.keep_files else start - start % size
    plan.first, plan.end = at, end
    for number, run in enumerate(placed):
        place = run.place or 0
        if at < place:
            blank = number == 0 and log.start > 0
            entry = _PRE_BLANK if blank else _answer(run, place - at, log)
            plan.fills.append((at, place, entry))
            if not blank:
                plan.answered.append(_row(view.key, at, place, run.position))
        at = place + run.records
    for run in runs:
        if run.place is None:
            plan.shifts.append(Shift(run.position, run.last_position, None))
            plan.unserved.append(_row(view.key, run.offset, run.behind, run.position))
        elif run.place != run.offset:
            plan.shifts.append(Shift(run.position, run.last_position, run.place - run.offset))
            plan.moved.append({**_row(view.key, run.place, run.place + run.records, run.position), "stored": run.offset})
    return plan


def _answer(run: _Run, count: int, log: NewLog) -> bytes:
    """The entry for each of `count` lost positions before this run.

    It leads to the last byte of the segment before, with more bytes than are left there: getMessage finds nothing, skips what
    lies in that segment, and goes on with the run. In the log's first segment there is no such place (and a 5.x broker's search
    for its minimum needs ascending offsets there): then it leads to the run's first message itself, which comes twice. So it
    does under policy broker for a few positions, which that broker would have answered with a message, if a damaged one.
    """
    base = run.position - run.position % log.rules.segment_bytes
    if base <= log.start or not log.serve_all and count <= FEW_POSITIONS:
        return struct.pack(layout.ENTRY_FORMAT, run.position, run.size, run.tags_code)
    return struct.pack(layout.ENTRY_FORMAT, base - 1, layout.ANSWER_SIZE, 0)


def _row(key: QueueKey, first: int, end: int, phy_offset: int) -> Row:
    return {"topic": key[0], "queue_id": key[1], "first": first, "end": end, "phy_offset": phy_offset}


def _unit(batch: bool) -> int:
    return _BATCH if batch else _ENTRY


def _ends_expired(view: QueueView) -> bool:
    """Whether the queue's last entry is one of a message that retention has deleted, not a pre-blank slot (P11)."""
    summary = view.summary
    if summary is None or summary.used_end == 0:
        return False
    return summary.expired_end == summary.used_end and 0 <= summary.max_phy_offset < layout.PRE_BLANK_SIZE


def _is_regular(view: QueueView, tree: Tree, file_entries: int) -> bool:
    """Whether the folder holds the files that a broker makes, and nothing else."""
    names = tree.children(view.folder)
    if not names or any(is_folder(e) or e.kind != "file" for e in names) or len(names) != len(view.files):
        return False
    unit = _unit(view.batch)
    expected = view.files[0].start
    for file in view.files:
        number = parse_number(file.path.rpartition("/")[2], 64)
        if file.start != expected or file.size != file_entries * unit or number is None or file.start % file.size:
            return False
        if file.path.rpartition("/")[2] != f"{file.start:020d}":
            return False
        expected += file.size
    return True


def _without_holes(placed: Sequence[_Run], view: QueueView, low: int) -> bool:
    """Whether nothing but messages' entries stands from the first of them on."""
    at = placed[0].place or 0
    first = at
    for run in placed:
        if run.place != at:
            return False
        at += run.records
    return not any(end > max(first, low) for _, end in view.leftover)


# ---- where each run stands ---------------------------------------------------------------------------------------------


@dataclass
class Damage:
    """Where bytes of the log are bridged or missing: how many messages may have stood there. Physical, ascending."""

    ranges: list[tuple[int, int]] = field(default_factory=list)

    def messages(self, start: int, end: int) -> int:
        """The most messages that the damaged bytes in [start, end) may have held."""
        lost = 0
        at = max(0, bisect_right(self.ranges, (start, 0)) - 1)
        for low, high in self.ranges[at:]:
            if low >= end:
                break
            lost += max(0, min(high, end) - max(low, start))
        return lost // MIN_SIZE_V1_BYTES + (1 if lost else 0)


def _place(runs: list[_Run], damage: Damage, serve_all: bool) -> None:
    """Give each run its place: its own queue offset where the runs follow one another, else a gap that it fits, else the end."""
    begin = _last_beginning(runs)
    own = [r for r in runs[begin:] if 0 <= r.offset and r.behind <= MAX_POSITION]
    runs = [r for r in runs[:begin] if serve_all or r.known] + runs[begin:]
    chain = _chain(_plausible(own, damage))
    for run in chain:
        run.place = run.offset
    if not chain:
        at = 0
        for run in runs:
            run.place, at = at, at + run.records
        return
    on_chain = {id(run) for run in chain}
    waiting: list[_Run] = []
    behind = 0
    tail: list[_Run] = []
    for run in runs:
        if id(run) in on_chain:
            if waiting:
                tail += _into_gap(waiting, behind, run.offset) if behind else waiting
                waiting = []
            behind = run.behind
        else:
            waiting.append(run)
    tail += waiting
    end = chain[-1].behind
    for run in tail:
        run.place, end = end, end + run.records


def _into_gap(waiting: list[_Run], low: int, high: int) -> list[_Run]:
    """Put runs into the positions [low, high), as far as they fit; those that do not are returned."""
    rest = []
    for run in waiting:
        if low + run.records <= high:
            run.place, low = low, low + run.records
        else:
            rest.append(run)
    return rest


def _last_beginning(runs: Sequence[_Run]) -> int:
    """Where the queue that is there today begins, where its topic was deleted and made again, or its entries were lost: at the
    last run from 0 on, unless the entries on disk say that they are those of the older messages."""
    for number in range(len(runs) - 1, 0, -1):
        run = runs[number]
        if run.offset == 0 and (run.records > 1 or run.equal):
            older = sum(r.records for r in runs[:number] if r.equal)
            newer = sum(r.records for r in runs[number:] if r.equal)
            total = sum(r.records for r in runs[number:])
            if newer > older or newer == older and total >= sum(r.records for r in runs[:number]):
                return number
    return 0


def _plausible(runs: list[_Run], damage: Damage) -> list[_Run]:
    """Without short runs whose queue offsets jump ahead of all that can have been lost before them."""
    found: list[_Run] = []
    for number, run in enumerate(runs):
        if run.records < GAP_RECORDS and found:
            before = found[-1]
            room = damage.messages(before.end, run.position)
            jump = run.offset - before.behind
            following = runs[number + 1] if number + 1 < len(runs) else None
            goes_on = following.offset >= run.behind if following is not None else jump <= LAST_JUMP
            if jump > room and not (goes_on and jump <= MAX_GAP) and not run.equal:
                continue
        elif not found and run.records == 1 and len(runs) > 1 and runs[1].offset != run.behind and not run.equal:
            later = runs[1].offset
            if run.offset > later:
                continue
        elif found and run.offset - found[-1].behind > MAX_PROVEN_GAP + damage.messages(found[-1].end, run.position):
            continue
        found.append(run)
    return found


def _chain(runs: Sequence[_Run]) -> list[_Run]:
    """The runs with ascending queue offsets that hold most messages."""
    front: list[tuple[int, int, int]] = []  # (end, messages, run): both ascending
    before: list[int] = []
    for number, run in enumerate(runs):
        place = bisect_right(front, (run.offset, 1 << 62, 0)) - 1
        weight = run.records + (front[place][1] if place >= 0 else 0)
        before.append(front[place][2] if place >= 0 else -1)
        entry = (run.behind, weight, number)
        at = bisect_right(front, (run.behind, weight, -1))
        if at > 0 and front[at - 1][1] >= weight:
            continue
        high = at
        while high < len(front) and front[high][1] <= weight:
            high += 1
        front[at:high] = [entry]
    if not front:
        return []
    chain = []
    number = front[-1][2]
    while number >= 0:
        chain.append(runs[number])
        number = before[number]
    return chain[::-1]


# ---- BatchConsumeQueue -------------------------------------------------------------------------------------------------


def _plan_batch(plan: QueuePlan, view: QueueView, runs: list[_Run], regular: bool) -> QueuePlan | None:
    """Entries follow one another in the order of the log, whatever their offsets; batches that no entry can lead to have none."""
    summary = view.summary
    for run in runs:
        if not run.counted:
            plan.unserved.append(_row(view.key, run.offset, run.offset, run.position))
    runs = [run for run in runs if run.counted]
    expired = summary.expired_end if summary is not None and regular else 0
    used = summary.used_end if summary is not None else 0
    matched = sum(last - first for first, last in view.covered)
    total = sum(r.records for r in runs)
    last_file = view.files[-1].start // _BATCH if view.files else 0
    if regular and not plan.reasons and matched == total and used == expired + total and used > last_file:
        return None
    plan.keep = expired
    plan.keep_files = [f for f in view.files if f.start // _BATCH < expired]
    at = expired
    for run in runs:
        plan.batch_starts.setdefault(run.segment, at)
        at += run.records
    plan.first, plan.end = expired, at
    if not plan.reasons:
        plan.reasons = ["queue_entry_missing"]
    return plan


def serious_by_folder(findings: Sequence[Finding], folders: Mapping[str, QueueKey]) -> dict[QueueKey, list[Finding]]:
    """Findings above a note by the queue whose folder (or ext folder) they name."""
    found: dict[QueueKey, list[Finding]] = {}
    for finding in findings:
        if finding.severity == NOTE:
            continue
        parts = finding.file.split("/")
        if len(parts) >= 3:
            for folder in ("/".join(parts[:3]), "consumequeue/" + "/".join(parts[1:3]) if parts[0] == EXT else ""):
                if folder in folders:
                    found.setdefault(folders[folder], []).append(finding)
    return found
