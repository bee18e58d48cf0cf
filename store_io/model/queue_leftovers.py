"""ConsumeQueue entries that lead to no message of their queue: what each is, by where it leads.

Only the entries that the scan's probe left unmatched are read, in bounded windows; neighbours of one kind fold into ranges.

Retention or wrong? Retention has deleted the messages of entries that lead below the log's start (`log_map.EXPIRED`). Those at
the queue's front are left out first: `consumequeue_reader` finds where they end (`expired_end`), and `queue_views` leaves
them out. Any other is `queue_entry_below_minimum` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import ENTRY_DTYPE
from schemas.rows import Finding, MappedFile, QueueKey
from store_io.base.errors import StoreError
from store_io.base.findings import Findings
from store_io.base.ranges import union
from store_io.log.entries.file_entries import FilesAt, entry_address, read_entries
from store_io.log.entries.stored_entries import EntryReader, plain_entries
from store_io.model import log_map as lm
from store_io.model.lost_entries import LostEntries, LostEntry, LostStretch
from store_io.model.queue_runs import stretches
from store_io.rocksdb.database import StoredDatabase
from store_io.source.byte_source import ByteSource, StoreLocation, open_source

WINDOW_ENTRIES = 1 << 16
NEAR_ENTRIES = 1 << 10  # so many entries between two that are wanted are read faster than asked for apart
MAX_TWICE = 1 << 20  # physical offsets to look up among those of matched entries; about so many, others are not


@dataclass(frozen=True)
class LeftoverTask:
    """One queue's unmatched entry numbers.

    missing: entry numbers whose message has no entry.
    covered: matched entry numbers.
    database: the entries' database, if they are in no files.
    """

    store: int
    location: StoreLocation
    key: QueueKey
    batch: bool
    files: tuple[MappedFile, ...]
    leftover: tuple[tuple[int, int], ...]
    missing: tuple[tuple[int, int], ...]
    covered: tuple[tuple[int, int], ...]
    log: lm.LogMap
    not_after: float = 0
    database: StoredDatabase | None = None

    @property
    def bytes_to_read(self) -> int:
        return sum(end - start for start, end in self.leftover) * layout.ENTRY_BYTES

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    def run(self) -> LeftoverResult:
        return classify_leftovers(self)


@dataclass
class LeftoverResult:
    """Findings of the queue's files, and what the entries prove about messages that the copy lacks.

    lost: at most MAX_LOST of these; lost_more: the others, together; lost_count: how many there are in all, by kind.
    """

    key: QueueKey
    findings: list[Finding] = field(default_factory=list)
    lost: list[LostEntry] = field(default_factory=list)
    lost_more: list[LostStretch] = field(default_factory=list)
    lost_count: dict[int, int] = field(default_factory=dict)
    wrong: list[tuple[int, int]] = field(default_factory=list)  # entry numbers reported as wrong, of those missing
    answered: list[tuple[int, int]] = field(default_factory=list)  # entry numbers without a message that lead to the next one
    problem: Gap | None = None

    def weight(self) -> int:
        """Return how many things it holds, of those of which there may be many."""
        return len(self.findings) + len(self.lost) + len(self.lost_more) + len(self.wrong) + len(self.answered)


def classify_leftovers(task: LeftoverTask, source: ByteSource | None = None) -> LeftoverResult:
    """Classify the task's unmatched entries; `problem` alone if a file can no longer be read.

    Each entry of the queue is read a few times at most, wherever the unmatched ones lie.
    """
    try:
        own = source or open_source(task.location)
        entries: Entries = FileEntries(own, task) if task.database is None else DatabaseEntries(own, task.database, task)
        try:
            return _classified(task, entries)
        finally:
            entries.close()
    except StoreError as error:
        return LeftoverResult(task.key, problem=error.gap())


def _classified(task: LeftoverTask, entries: Entries) -> LeftoverResult:
    result, findings, lost = LeftoverResult(task.key), Findings(), LostEntries(task.log)
    look = _Look(task, entries)
    twice: set[int] | None = None  # physical offsets inside messages to which matched entries lead, too; None: not known yet
    for numbers, rows in entries.parts(task.leftover):
        kinds = look.kinds(numbers, rows)
        if twice is None and (kinds.code == _INSIDE).any():
            twice = look.matched_too(int(numbers[0]))
        part = _Part(numbers, rows, kinds, entries)
        lost.add(numbers[kinds.lost], rows[kinds.lost], kinds.where[kinds.lost])
        _classify(task, result, findings, part, twice or set())
    result.findings = findings.found
    result.lost, result.lost_more, result.lost_count = lost.listed, lost.stretches, lost.count
    result.wrong = union(result.wrong)
    result.answered = union(result.answered)
    return result


_CODES = (  # what an entry is, by the code of its finding
    Code.QUEUE_ENTRY_WRONG,
    Code.QUEUE_ENTRY_INVALID,
    Code.QUEUE_PRE_BLANK,
    Code.QUEUE_ENTRY_BELOW_MINIMUM,
    Code.QUEUE_ENTRY_UNEXPECTED,
    Code.QUEUE_ENTRY_TWICE,
    Code.QUEUE_ENTRY_BEYOND_END,
    Code.QUEUE_POSITION_ANSWERED,
)
(_NOTHING, _WRONG, _INVALID, _PRE_BLANK, _BELOW, _INSIDE, _TWICE, _BEYOND_END, _ANSWERED) = range(len(_CODES) + 1)


@dataclass(frozen=True)
class _Kinds:
    """The answers about some entries.

    code: the finding code of each.
    where: the kind of the place in the log to which it leads.
    lost: whether its message is lost.
    """

    code: np.ndarray
    where: np.ndarray
    lost: np.ndarray


def _zero(rows: np.ndarray) -> np.ndarray:
    """Say which entries have no byte that is not zero."""
    found = np.ones(len(rows), bool)
    for name in rows.dtype.names or ():
        found &= rows[name] == 0
    return found


class Numbers:
    """Ascending ranges of entry numbers, to be asked for many numbers at once."""

    def __init__(self, ranges: Sequence[tuple[int, int]]):
        self._starts, self._ends = np.array(ranges, np.int64).reshape(-1, 2).T

    def hold(self, numbers: np.ndarray) -> np.ndarray:
        """Say which of these numbers are in one of the ranges."""
        if not len(self._starts):
            return np.zeros(len(numbers), bool)
        place = np.searchsorted(self._starts, numbers, side="right") - 1
        found: np.ndarray = (place >= 0) & (numbers < self._ends[np.maximum(place, 0)])
        return found


class _Look:
    """The unmatched entries of one queue, part by part."""

    def __init__(self, task: LeftoverTask, entries: Entries):
        self._task, self._entries = task, entries
        self._missing, self._leftover = Numbers(union(task.missing)), Numbers(task.leftover)
        self._covered_starts = np.array(sorted(first for first, _ in task.covered), np.int64)

    def kinds(self, numbers: np.ndarray, rows: np.ndarray) -> _Kinds:
        """Classify these entries; for entries that lead into messages, `matched_too` knows more."""
        log = self._task.log
        phy, size = rows["phy_offset"].astype(np.int64), rows["size"].astype(np.int64)
        valid = (phy >= 0) & (size > 0)
        blank = (phy == 0) & (size == layout.PRE_BLANK_SIZE)
        awaited = self._missing.hold(numbers)
        where = log.kind_at(phy)
        answered = valid & ~blank & ~awaited & self._answers(numbers, rows)
        lost = valid & ~blank & ~answered & np.isin(where, (lm.DAMAGED, lm.UNWRITTEN, lm.MISSING, lm.BEYOND)) & ~awaited
        code = np.full(len(rows), _NOTHING, np.int8)
        there = self._task.database is not None or ~_zero(rows)  # of very many ranges in files some hold zeros: no entries
        code[awaited & ~blank & (where != lm.UNREAD)] = _WRONG  # one that leads to what was not read may be right
        code[~awaited & ~valid] = _INVALID
        code[~awaited & blank] = _PRE_BLANK
        code[~awaited & valid & ~blank & (where == lm.EXPIRED)] = _BELOW
        code[~awaited & valid & ~blank & ~answered & np.isin(where, (lm.MESSAGE, lm.FILLER))] = _INSIDE
        after_data = (where == lm.UNWRITTEN) & (phy >= log.data_end)
        code[~awaited & valid & ~blank & (after_data | (where == lm.BEYOND))] = _BEYOND_END
        code[answered] = _ANSWERED
        return _Kinds(np.where(there, code, _NOTHING), where, lost)

    def _answers(self, numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Say which entries have no message and are as a repair writes them in such a place.

        They lead to the queue's next message, or to the last byte of the segment before that one's.
        """
        found = np.zeros(len(numbers), bool)
        starts = self._covered_starts
        if self._task.batch or not len(starts):  # a repair writes none of these
            return found
        place = np.searchsorted(starts, numbers, side="right")
        followed = np.flatnonzero(place < len(starts))
        if not len(followed):
            return found
        wanted, which = np.unique(starts[place[followed]], return_inverse=True)
        following = self._entries.of(wanted)[which]
        mine = rows[followed]
        phy = following["phy_offset"].astype(np.int64)
        same = (mine["phy_offset"] == phy) & (mine["size"] == following["size"])
        nowhere = (mine["size"] == layout.ANSWER_SIZE) & (mine["tags_code"] == 0)
        found[followed] = same | nowhere & (mine["phy_offset"] == phy - phy % self._task.log.segment_bytes - 1)
        return found

    def matched_too(self, after: int) -> set[int]:
        """Return the physical offsets inside of messages to which both matched and unmatched entries lead.

        It takes one pass over each kind.
        after: only unmatched entries from this number on count.
        """
        wanted: set[int] = set()
        for numbers, rows in self._entries.parts(self._task.leftover, after):
            if len(wanted) < MAX_TWICE:
                wanted.update(rows["phy_offset"][self.kinds(numbers, rows).code == _INSIDE].tolist())
        sought = np.array(sorted(wanted), np.int64)
        found: set[int] = set()
        for numbers, rows in self._entries.parts(union(self._task.covered)):
            phy = rows["phy_offset"].astype(np.int64)
            found.update(phy[~self._leftover.hold(numbers) & np.isin(phy, sought)].tolist())
        return found


class Entries(Protocol):
    """The entries of one queue, wherever they are stored, as ENTRY_DTYPE or BATCH_DTYPE."""

    def parts(self, ranges: Sequence[tuple[int, int]], after: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (numbers, entries) of the stored entries in these ascending ranges, in bounded parts.

        No part is empty.
        after: only entries from this number on.
        """

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the entries of these ascending numbers."""

    def spans(self, first: int, count: int) -> Iterator[tuple[int, str, int | None, int | None]]:
        """Return (how many, file, start, end) of `count` entries that follow one another, for each file that holds some of
        them."""

    def close(self) -> None: ...


class FileEntries:
    """The entries of a queue in files."""

    def __init__(self, source: ByteSource, task: LeftoverTask):
        self._source, self._files, self._batch = source, FilesAt(task.files), task.batch

    def parts(self, ranges: Sequence[tuple[int, int]], after: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        held = Numbers(ranges)
        for first, last in _windows(ranges, after):
            rows = read_entries(self._source, self._files, first, last, self._batch)
            numbers = np.arange(first, first + len(rows))
            kept = held.hold(numbers)
            if kept.any():
                yield numbers[kept], rows[kept]

    def of(self, numbers: np.ndarray) -> np.ndarray:
        parts = []
        for first, last in _windows([(n, n + 1) for n in numbers.tolist()]):
            rows = read_entries(self._source, self._files, first, last, self._batch)
            inside = numbers[np.searchsorted(numbers, first) : np.searchsorted(numbers, last)]
            parts.append(rows[inside - first])
        return np.concatenate(parts)

    def spans(self, first: int, count: int) -> Iterator[tuple[int, str, int | None, int | None]]:
        unit = layout.BATCH_ENTRY_BYTES if self._batch else layout.ENTRY_BYTES
        at = 0
        while at < count:
            file, position = entry_address(self._files, first + at, self._batch)
            n = min(count - at, (file.size - position) // unit)
            if n <= 0:
                return
            yield n, file.path, position, position + n * unit
            at += n

    def close(self) -> None: ...


class DatabaseEntries:
    """The entries of a queue in RocksDB.

    A finding's file is the database's folder; its topic, queue id and queue offset name the key.
    """

    def __init__(self, source: ByteSource, database: StoredDatabase, task: LeftoverTask):
        self._source, self._database, self._key = source, database, task.key
        self._readers: list[EntryReader] = []
        self._free: list[EntryReader] = []

    def parts(self, ranges: Sequence[tuple[int, int]], after: int | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        reader = self._take()  # a reader answers one question at a time, and these parts may be asked for inside of others
        for start, end in ranges:
            first = start if after is None else max(start, after)
            for numbers, rows in reader.windows(self._key, first, end):
                if len(numbers):
                    yield numbers, plain_entries(rows)
        self._free.append(reader)

    def _take(self) -> EntryReader:
        if not self._free:
            self._readers.append(EntryReader(self._source, self._database))
            self._free.append(self._readers[-1])
        return self._free.pop()

    def of(self, numbers: np.ndarray) -> np.ndarray:
        reader, found = self._take(), np.zeros(len(numbers), ENTRY_DTYPE)
        for first, last in _near(numbers):  # each is a question to another process
            for stored, rows in reader.windows(self._key, first, last):
                place = np.searchsorted(numbers, stored)
                wanted = np.flatnonzero(numbers[np.minimum(place, len(numbers) - 1)] == stored)
                found[place[wanted]] = plain_entries(rows[wanted])
        self._free.append(reader)
        return found

    def spans(self, first: int, count: int) -> Iterator[tuple[int, str, int | None, int | None]]:
        yield count, self._database.folder, None, None

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


def _windows(ranges: Sequence[tuple[int, int]], after: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield parts of at most WINDOW_ENTRIES entries that together hold all of these ascending ranges, from number `after` on."""
    first = last = 0
    for start, end in ranges:
        at = start if after is None else max(start, after)
        while at < end:
            if first < last and at < first + WINDOW_ENTRIES:
                last = min(end, first + WINDOW_ENTRIES)
            else:
                if first < last:
                    yield first, last
                first, last = at, min(end, at + WINDOW_ENTRIES)
            at = last
    if first < last:
        yield first, last


def _near(numbers: np.ndarray) -> list[tuple[int, int]]:
    """Yield few ranges that together hold these ascending numbers, without gaps of more than NEAR_ENTRIES between two of them."""
    if not len(numbers):
        return []
    apart = np.flatnonzero(np.diff(numbers) > NEAR_ENTRIES)
    starts, lasts = numbers[[0, *(apart + 1)]], numbers[[*apart, -1]]
    return list(zip(starts.tolist(), (lasts + 1).tolist(), strict=True))


@dataclass(frozen=True)
class _Part:
    """Some entries with what they are."""

    numbers: np.ndarray
    rows: np.ndarray
    kinds: _Kinds
    entries: Entries


def _classify(task: LeftoverTask, result: LeftoverResult, findings: Findings, part: _Part, twice: set[int]) -> None:
    numbers, rows, kinds = part.numbers, part.rows, part.kinds
    phy, size, code = rows["phy_offset"].astype(np.int64), rows["size"].astype(np.int64), kinds.code
    answered = numbers[code == _ANSWERED]
    result.answered += stretches(answered, np.ones(len(answered), np.int64))
    inside = np.flatnonzero(code == _INSIDE)
    if twice and len(inside):
        code[inside[np.isin(phy[inside], np.array(sorted(twice), np.int64))]] = _TWICE
    for i in np.flatnonzero(code == _INSIDE).tolist():
        _dispute(task, findings, int(numbers[i]), int(phy[i]), int(size[i]))
    edges = np.flatnonzero((np.diff(code) != 0) | (np.diff(numbers) != 1)) + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(rows)], strict=True):
        if code[start] == _NOTHING:
            continue
        if code[start] == _WRONG:
            result.wrong.append((int(numbers[start]), int(numbers[end - 1]) + 1))
        _report(task, findings, _CODES[code[start] - 1], part, (start, end))


def _report(task: LeftoverTask, findings: Findings, code: Code, part: _Part, chosen: tuple[int, int]) -> None:
    """Report one finding per file for the entries [start, end) of the part, which follow one another."""
    start, end = chosen
    if not findings.room(code):
        findings.add_more(code, "", end - start)
        return
    first, at = int(part.numbers[start]), 0
    for n, path, low, high in part.entries.spans(first, end - start):
        row = part.rows[start + at]
        findings.add(
            Finding(
                code,
                path,
                low,
                high,
                phy_offset=int(row["phy_offset"]),
                topic=task.key[0],
                queue_id=task.key[1],
                queue_offset=int(row["base"]) if task.batch else first + at,
                actual=f"phy_offset {int(row['phy_offset'])}, size {int(row['size'])}, tags code {int(row['tags_code'])}",
                count=n,
            )
        )
        at += n


def _dispute(task: LeftoverTask, findings: Findings, number: int, phy_offset: int, size: int) -> None:
    """Add the finding on an entry that leads into messages, none of which is of this queue and number.

    One of the two is wrong. A damaged topic, queue id or queue offset looks like this, and no checksum covers them.
    """
    if phy_offset + size > task.log.range_end(phy_offset):
        return
    if not findings.room(Code.MESSAGE_DISPUTED):
        findings.add_more(Code.MESSAGE_DISPUTED, "", 1)
        return
    path, position = task.log.segment_of(phy_offset)
    findings.add(
        Finding(
            Code.MESSAGE_DISPUTED,
            path,
            position,
            position + size,
            phy_offset=phy_offset,
            topic=task.key[0],
            queue_id=task.key[1],
            queue_offset=number,
            expected="a message of this queue and queue offset, as its ConsumeQueue entry says",
        )
    )
