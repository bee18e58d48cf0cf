"""Whether a store on which a broker was started is what its plan has predicted.

The plan's side is its text, the other one what a quick audit of the store says now. Files, sizes, the ends of the log and of the
queues are compared, and the bytes at the edges of the log's files. All bytes before the predicted ends are if that is asked for.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from schemas.layouts.dledger_layout import FOLDER_PREFIX
from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, QUEUES
from schemas.rows import QueueKey, Row
from schemas.start_effect import EDGE_BYTES, BrokerState, Started, StartEffect, WrittenFile
from schemas.start_effect import Edge as Edge
from store_io.base.errors import UsageError
from store_io.base.exit_codes import CONSISTENT, DERIVED, LOST
from store_io.base.java.zones import local_time
from store_io.first_day.cleaning import next_hour
from store_io.first_day.cleaning_rules import CleaningRules
from store_io.log.entries.file_entries import unit_bytes
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource
from store_io.source.piece_digest import file_digest
from store_io.wording.refusals import refusal_sentence

MOST_NAMED = 100  # differences, and topics that grew
_STEP_BYTES = 4 << 20
_NUMBER = re.compile(r"[0-9]{20}")
_PIECES = re.compile(r"[0-9a-f]{32}")  # what `PieceDigest` gives; small files and DLedger's units have other digests
_COMPARED = (QUEUES, BATCH_QUEUES, EXT, INDEX)


class Differs(StrEnum):
    NO_START = "no_start"  # the release would not start on it again
    FILE_MISSING = "file_missing"
    FILE_SIZE = "file_size"
    LOG_END = "log_end"
    EDGE = "edge"
    BYTES = "bytes"
    QUEUE_MISSING = "queue_missing"
    QUEUE_MAX = "queue_max"
    QUEUE_MIN = "queue_min"


class Difference(NamedTuple):
    """One place in which the store is not what was predicted. file: of a queue its folder. start, end: of an edge."""

    kind: Differs
    file: str
    expected: int | str | None = None
    actual: int | str | None = None
    start: int | None = None
    end: int | None = None


class Grown(NamedTuple):
    """Queue entries that a topic has beyond the predicted ones."""

    topic: str
    entries: int


@dataclass(frozen=True)
class State:
    """The ends in a store at a moment.

    end: of the log, a physical offset. written: file of the log -> position after its last byte that counts.
    queues: (minimum, maximum).
    """

    end: int
    written: Mapping[str, int]
    queues: Mapping[QueueKey, tuple[int, int]]


@dataclass(frozen=True)
class Leaving:
    """Paths that retention deletes by a plan, as its first_day has them.

    at_ms, timezone: the moment of the start that the plan has, and the zone of its JVM.
    reserved_hours: fileReservedTime by the plan.
    disk_known: the plan knows how full the disk is.
    """

    at_once: frozenset[str]
    in_delete_when: frozenset[str]
    if_disk_full: frozenset[str]
    at_ms: int
    timezone: str
    reserved_hours: int
    disk_known: bool

    def by_now(self, now_ms: int, disk_used: float | None, rules: CleaningRules, hours: int) -> frozenset[str]:
        """Return the paths that may be gone. disk_used: percent now, if none of them were; None: not known.

        rules: the broker's, which may have another broker.conf than the plan. hours: its fileReservedTime; fewer ones than the
        plan's let more segments expire, up to all that a full disk takes.
        """
        hour_ms = next_hour(self.at_ms, rules.hours, self.timezone)
        expired = (
            local_time(self.at_ms, self.timezone).hour in rules.hours.known
            or hour_ms is not None
            and now_ms >= hour_ms
            or disk_used is not None
            and rules.ratio(disk_used) > rules.expired_above
        )
        full = not self.disk_known or disk_used is None or rules.forces(disk_used)
        full = full or expired and hours < self.reserved_hours
        nothing = frozenset[str]()
        return self.at_once | (self.in_delete_when if expired else nothing) | (self.if_disk_full if full else nothing)


@dataclass(frozen=True)
class Promise:
    """The plan's side of the comparison.

    inputs: path -> (size, digest).
    going: paths that retention may have deleted by now; None if the plan does not say it.
    deleted: paths that load() was to delete.
    """

    state: State
    inputs: Mapping[str, tuple[int, str]]
    going: frozenset[str] | None
    edges: Sequence[Edge] = ()
    deleted: frozenset[str] = frozenset()


@dataclass
class AfterStart:
    """The answer.

    differences: the first ones; different: how many there are.
    gone: segments that retention has deleted, as predicted; aged: other files that went by that.
    log_end: predicted and found; None if the release would not start again.
    promised, there: queue entries that were predicted, and those of them that are still in their queues.
    grown: the topics with most new entries; grown_topics, grown_entries: of all.
    edges: compared ones.  whole: files whose bytes were all compared up to the predicted end; not_whole: other files.
    full: whether that was asked for.
    """

    differences: list[Difference] = field(default_factory=list)
    different: int = 0
    gone: list[str] = field(default_factory=list)
    aged: int = 0
    going_known: bool = True
    log_end: tuple[int, int] | None = None
    promised: int = 0
    there: int = 0
    grown: list[Grown] = field(default_factory=list)
    grown_topics: int = 0
    grown_entries: int = 0
    edges: int = 0
    full: bool = False
    whole: int = 0
    not_whole: int = 0

    @property
    def grown_bytes(self) -> int:
        return max(0, self.log_end[1] - self.log_end[0]) if self.log_end is not None else 0

    @property
    def exit_code(self) -> int:
        if self.different:
            return LOST
        return DERIVED if self.gone or self.aged or self.grown_bytes or self.grown_entries else CONSISTENT

    def differ(self, difference: Difference) -> None:
        self.different += 1
        if len(self.differences) < MOST_NAMED:
            self.differences.append(difference)


# ---- what a plan promises ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ends:
    """The ends to which a start leads. log: files of commitlog/. data, units: those of a DLedger log. queues: as in `State`."""

    log: Sequence[WrittenFile]
    data: Sequence[WrittenFile]
    units: Sequence[WrittenFile]
    queues: Mapping[QueueKey, tuple[int, int]]


def ends_of(started: Started) -> Ends:
    """Return the ends to which this start leads."""
    state, ledger = started.after_election or started.after_dispatch, started.ledger
    data, units = (ledger.data, ledger.index) if ledger is not None else ((), ())
    return Ends(state.commitlog, data, units, _ends_of_queues(state))


def read_ends(broker: Row) -> Ends:
    """Return the ends that a plan's broker section names. Raises UsageError for another form."""
    state, ledger = broker.get("after_election") or broker.get("after_dispatch"), broker.get("dledger")
    if not isinstance(state, dict) or not (ledger is None or isinstance(ledger, dict)):
        raise UsageError("the plan does not say what a start on its store leads to")
    data, units = ([*_wrote(ledger, part)] if ledger is not None else [] for part in ("data", "index"))
    return Ends([*_wrote(state, "commitlog")], data, units, _queues(state.get("queues")))


def state_of(ends: Ends, paths: Sequence[str]) -> State:
    """Return the state at these ends. paths: of the store's files."""
    written = {f"{COMMITLOG}/{file.file}": file.wrote for file in ends.log}
    for part, files in (("data", ends.data), ("index", ends.units)):
        here = {path.rpartition("/")[2]: path for path in paths if files and _of_ledger(path, part)}
        written |= {here[file.file]: file.wrote for file in files if file.file in here}
    end = max((int(file.file) + file.wrote for file in (*ends.log, *ends.data)), default=0)
    return State(end, written, ends.queues)


def state_now(started: Started, paths: Sequence[str]) -> State:
    """Return the ends as the files have them now: queues end where their files do, before a start would add to them."""
    state, loaded = state_of(ends_of(started), paths), _ends_of_queues(started.after_load)
    return State(state.end, state.written, {key: (state.queues.get(key, own)[0], own[1]) for key, own in loaded.items()})


def _ends_of_queues(state: BrokerState) -> dict[QueueKey, tuple[int, int]]:
    return {queue[:2]: (queue.min_offset, queue.max_offset) for queue in state.queues}


def _wrote(row: Row, key: str) -> Iterator[WrittenFile]:
    for file in _rows(row.get(key), key):
        name: Any = file.get("file")
        wrote: Any = file.get("wrote")
        if not isinstance(name, str) or not _NUMBER.fullmatch(name) or not _is_count(wrote):
            raise UsageError(f"the plan's {key} has a file without a name, or without its end")
        yield WrittenFile(name, wrote)


def _queues(rows: Any) -> dict[QueueKey, tuple[int, int]]:
    found: dict[QueueKey, tuple[int, int]] = {}
    for row in _rows(rows, "queues"):
        topic: Any = row.get("topic")
        numbers: list[Any] = [row.get(key) for key in ("queue_id", "min_offset", "max_offset")]
        if not isinstance(topic, str) or not all(type(number) is int for number in numbers):
            raise UsageError("the plan's queues have a row without topic, queue_id, min_offset or max_offset")
        found[topic, numbers[0]] = numbers[1], numbers[2]
    return found


def _rows(rows: Any, what: str) -> Iterator[Row]:
    if isinstance(rows, str | dict) or not isinstance(rows, Sequence):
        raise UsageError(f"the plan's {what} is no list")
    for row in rows:
        if not isinstance(row, dict):
            raise UsageError(f"a row of the plan's {what} is no object")
        yield row


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _of_ledger(path: str, part: str) -> bool:
    return path.startswith(FOLDER_PREFIX) and path.split("/")[1:-1] == [part]


def edges_of(source: ByteSource, state: State) -> list[Edge]:
    """Return both edges of each file of the log, up to the end of what was written. Raises StoreError.

    Of a file that a broker continues there is also the range of all that was written: a digest of the whole file says nothing
    of it then.
    """
    rows: list[Edge] = []
    for path, end in sorted(state.written.items()):
        with source.open(path) as file:
            ranges = {(0, min(end, EDGE_BYTES)), (max(0, end - EDGE_BYTES), end), *([(0, end)] if end < file.size else [])}
            for start, stop in sorted(ranges):
                if stop:
                    rows.append(Edge(path, start, stop, _range_digest(file, start, stop)))
    return rows


def _range_digest(file: ByteFile, start: int, end: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for at in range(start, end, _STEP_BYTES):
        digest.update(file.read(at, min(_STEP_BYTES, end - at)))
    return digest.hexdigest()


# ---- the comparison ----------------------------------------------------------------------------------------------------


def after_start(
    promise: Promise, effect: StartEffect, size_of: Callable[[str], int | None], source: ByteSource, full: bool = False
) -> AfterStart:
    """Hold the store against the plan. Raises StoreError if a file cannot be read.

    effect: of a start on the store as it is now.
    size_of: the length of a regular file of the store; None if it is not there.
    """
    found = AfterStart(full=full, going_known=promise.going is not None)
    same = _files(promise, size_of, found)
    if effect.started is not None:
        _ends(promise, state_now(effect.started, [*promise.inputs]), found)
    else:
        refusal = str(refusal_sentence(effect.refusal)) if effect.refusal is not None else None
        found.differ(Difference(Differs.NO_START, "", None, refusal))
    for edge in promise.edges:
        if edge.file not in same or edge.is_long and not full:
            continue
        found.edges += not edge.is_long
        with source.open(edge.file, sparsely=not edge.is_long) as file:
            if _range_digest(file, edge.start, edge.end) != edge.digest:
                kind = Differs.BYTES if edge.is_long else Differs.EDGE
                found.differ(Difference(kind, edge.file, start=edge.start, end=edge.end))
    if full:
        _bytes(promise, source, same, found)
    return found


def _files(promise: Promise, size_of: Callable[[str], int | None], found: AfterStart) -> set[str]:
    """Compare names and sizes. Return the files whose size is the plan's."""
    same, state, going = set[str](), promise.state, promise.going or frozenset()
    logs = [
        [path for path in state.written if path.startswith(f"{COMMITLOG}/")],
        [path for path in state.written if _of_ledger(path, "data")],
    ]
    for log in logs:
        front = True  # retention takes one segment after the other, from the first on
        for path in sorted(filter(promise.inputs.__contains__, log)):
            size = size_of(path)
            if size is None and front and path in going:
                found.gone.append(path)
                continue
            front = False
            same |= _same(promise, path, size, found)
    for path in sorted(promise.inputs.keys() - promise.deleted):
        if path.partition("/")[0] not in _COMPARED and not _of_ledger(path, "index"):
            continue
        size = size_of(path)
        if size is None and found.gone:
            found.aged += 1
        else:
            same |= _same(promise, path, size, found)
    return same


def _same(promise: Promise, path: str, size: int | None, found: AfterStart) -> set[str]:
    expected = promise.inputs[path][0]
    if size == expected:
        return {path}
    found.differ(Difference(Differs.FILE_MISSING if size is None else Differs.FILE_SIZE, path, expected, size))
    return set()


def _ends(promise: Promise, now: State, found: AfterStart) -> None:
    before = promise.state
    found.log_end = before.end, now.end
    if now.end < before.end:
        holder = max((path for path, end in before.written.items() if end and not _of_ledger(path, "index")), default=COMMITLOG)
        found.differ(Difference(Differs.LOG_END, holder, before.end, now.end))
    grown: Counter[str] = Counter()
    for key, (low, high) in sorted(before.queues.items()):
        low = max(0, low)  # -1: an empty BatchConsumeQueue
        found.promised += max(0, high - low)
        name = f"{QUEUES}/{key[0]}/{key[1]}"
        if key not in now.queues:
            if high > 0:
                found.differ(Difference(Differs.QUEUE_MISSING, name, high))
            continue
        new_low, new_high = max(0, now.queues[key][0]), now.queues[key][1]
        found.there += max(0, min(high, new_high) - max(low, new_low))
        if new_high < high:
            found.differ(Difference(Differs.QUEUE_MAX, name, high, new_high))
        elif high > low and (new_low < low or new_low > low and not found.gone):
            found.differ(Difference(Differs.QUEUE_MIN, name, low, new_low))
        grown[key[0]] += max(0, new_high - high)
    for key in now.queues.keys() - before.queues.keys():
        grown[key[0]] += max(0, now.queues[key][1] - max(0, now.queues[key][0]))
    rows = sorted((-entries, topic) for topic, entries in grown.items() if entries)
    found.grown = [Grown(topic, -entries) for entries, topic in rows[:MOST_NAMED]]
    found.grown_topics, found.grown_entries = len(rows), -sum(entries for entries, _ in rows)


def _bytes(promise: Promise, source: ByteSource, same: set[str], found: AfterStart) -> None:
    """Compare all bytes before the predicted ends, of files whose end is known."""
    edges = {(edge.file, edge.start, edge.end) for edge in promise.edges}
    for path in sorted(same):
        size, digest = promise.inputs[path]
        end = _end_of(promise, path, size)
        if end and (path, 0, end) in edges:  # compared above
            found.whole += 1
            continue
        if end is None or end < size and (not promise.edges or path in promise.state.written) or not _PIECES.fullmatch(digest):
            found.not_whole += 1
            continue
        found.whole += 1
        with source.open(path) as file:
            if file_digest(file, end, size) != digest:
                found.differ(Difference(Differs.BYTES, path, start=0, end=end))


def _end_of(promise: Promise, path: str, size: int) -> int | None:
    """Return the position from which on a repair has left zeros; None if that is not known."""
    if path in promise.state.written:
        return promise.state.written[path]
    top, *inner = path.split("/")
    if top != QUEUES or len(inner) != 3 or not inner[1].isdecimal() or not _NUMBER.fullmatch(inner[2]):
        return None
    queue = promise.state.queues.get((inner[0], int(inner[1])))
    return None if queue is None else min(size, max(0, queue[1] * unit_bytes(False) - int(inner[2])))
