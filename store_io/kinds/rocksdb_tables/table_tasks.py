"""Tasks on the log's side of index and transactions in RocksDB (rocksdb.md 10).

The index is compared by prints of stretches of the log: both sides add up hashes, and only stretches whose sums differ are looked
at again, entry by entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.layouts.rocksdb_layout import HOUR_MS
from store_io.base.errors import StoreError
from store_io.base.fingerprints import Prints, Stretches
from store_io.base.tasks import OfScan
from store_io.kinds.rocksdb_tables.half_messages import NO_HALVES, HalfCollector
from store_io.kinds.rocksdb_tables.hour_spans import AbsentHours, HourSpans, hour_spans
from store_io.kinds.rocksdb_tables.index_fingerprints import IndexPrints, index_entries, indexed_messages
from store_io.kinds.rocksdb_tables.index_table import entries_leading_into
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_all
from store_io.model import log_map as lm
from store_io.model.log_map import LogMap
from store_io.rocksdb.database import StoredDatabase
from store_io.source.byte_source import open_source

MOST_NAMED = 100  # entries of each kind that one look names
MOST_ENTRIES = 500_000  # that one look holds


@dataclass
class LogTable:
    """The facts about index entries and half messages that the log holds.

    prints: of the index entries that the messages have.
    halves: HALF_ROW.
    dropped: how many half messages are beyond the bound.
    spans: the hours of the messages with index entries.
    """

    prints: Prints = field(default_factory=Prints)
    halves: np.ndarray = field(default_factory=lambda: NO_HALVES)
    dropped: int = 0
    bytes_read: int = 0
    problem: Gap | None = None
    spans: HourSpans = field(default_factory=HourSpans)

    def __add__(self, other: LogTable) -> LogTable:
        return LogTable(
            self.prints + other.prints,
            np.concatenate([self.halves, other.halves]),
            self.dropped + other.dropped,
            self.bytes_read + other.bytes_read,
            self.problem or other.problem,
            self.spans + other.spans,
        )


@dataclass(frozen=True)
class LogTableTask(OfScan):
    """A task over one segment.

    index: its entries are wanted.
    most_halves: this many half messages are collected, and the others counted; None if none are wanted.
    """

    scan: SegmentTask
    stretches: Stretches
    index: bool
    most_halves: int | None
    not_after: float = 0

    def run(self) -> LogTable:
        halves = HalfCollector(self.most_halves) if self.most_halves is not None else None
        sink = _Sink(IndexPrints(self.stretches) if self.index else None, halves, self.stretches)
        try:
            read, problem = scan_all((self.scan,), open_source(self.scan.location), sink)
        except StoreError as why:
            return LogTable(problem=why.gap())
        prints = sink.index.prints if sink.index is not None else Prints()
        if halves is None:
            return LogTable(prints, bytes_read=read, problem=problem, spans=sink.spans)
        return LogTable(prints, halves.rows, halves.dropped, read, problem, sink.spans)


class _Sink:
    want_keys = False

    def __init__(self, index: IndexPrints | None, halves: HalfCollector | None, stretches: Stretches):
        self.index, self.halves, self._stretches = index, halves, stretches
        self.spans = HourSpans()

    def add(self, scanned: ScannedRows) -> None:
        """Take the messages of one batch."""
        if self.index is not None:
            self.index.add(scanned.columns, scanned.keys, scanned.window)
            self.spans += hour_spans(scanned.columns.rows[: scanned.columns.count], self._stretches)
        if self.halves is not None:
            self.halves.add(scanned.columns, scanned.keys, scanned.window)


@dataclass(frozen=True)
class NamedEntry:
    """An entry by the text of its key, and the physical offset to which it leads.

    The text leaves out the numbers around it.
    """

    text: str
    phy_offset: int


@dataclass
class IndexCounts:
    """The differences between log and index, counted.

    missing: entries of messages that are absent.
    before, after_mark: the same below the first entry, and above the mark.
    before_same_hour: below the first entry, of hours with entries.
    hours: between these, of hours without any entry.
    strange: entries that are no message's.
    unheld: entries that lead to a place at which the log has no message.
    other_time: entries that are a message's but for its store time, or although it says that it was rolled back.
    """

    missing: int = 0
    before: int = 0
    before_same_hour: int = 0
    after_mark: int = 0
    hours: AbsentHours = field(default_factory=AbsentHours)
    strange: int = 0
    unheld: int = 0
    other_time: int = 0


@dataclass
class IndexLook(IndexCounts):
    """The counts of the stretches that were looked at, and the first of `missing` and of `strange` by name."""

    first_missing: list[NamedEntry] = field(default_factory=list)
    first_strange: list[NamedEntry] = field(default_factory=list)
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class IndexLookTask:
    """Stretches whose prints differ, to be compared entry by entry.

    scans: those of the segments with such stretches.
    first, mark: between these messages every entry is expected.
    hours: those of which the index has entries; None if they are too many.
    """

    scans: tuple[SegmentTask, ...]
    database: StoredDatabase
    stretches: Stretches
    wanted: tuple[int, ...]
    log: LogMap
    first: int
    mark: int
    hours: np.ndarray | None = None
    not_after: float = 0

    @property
    def store(self) -> int:
        return self.scans[0].store

    @property
    def bytes_to_read(self) -> int:
        return sum(scan.size for scan in self.scans) + self.database.size_bytes

    @property
    def paths(self) -> tuple[str, ...]:
        return (*(scan.path for scan in self.scans), *self.database.paths)

    def run(self) -> IndexLook:
        source = open_source(self.scans[0].location)
        wanted = np.array(self.wanted, np.int64)
        sink = _Entries(self.stretches, wanted)
        found = IndexLook()
        try:
            found.bytes_read, found.problem = scan_all(self.scans, source, sink)
            for key, value, phy_offset in entries_leading_into(source, self.database, self.stretches, wanted):
                if sink.expected.get(key) == value:
                    del sink.expected[key]
                elif phy_offset in sink.left_out:
                    continue
                elif self.log.kind_at(np.array([phy_offset]))[0] != lm.MESSAGE:
                    found.unheld += 1  # it names what was there: the entry is right, and the log lacks the message
                elif sink.take_other_time(key, value):
                    found.other_time += 1
                else:
                    found.strange += 1
                    if len(found.first_strange) < MOST_NAMED:
                        found.first_strange.append(_named(key, phy_offset))
        except StoreError as why:
            return IndexLook(problem=why.gap())
        hours: list[int] = []
        known = frozenset(self.hours.tolist()) if self.hours is not None else None
        for key in sink.expected:
            phy_offset, hour = int.from_bytes(key[-8:], "big"), int.from_bytes(key[:8], "big")
            if phy_offset < self.first and known is not None and hour not in known:
                found.before += 1
            elif phy_offset < self.first:
                found.before_same_hour += 1
            elif phy_offset > self.mark:
                found.after_mark += 1
            elif known is not None and hour not in known:
                hours.append(hour)
            else:
                found.missing += 1
                if len(found.first_missing) < MOST_NAMED:
                    found.first_missing.append(_named(key, phy_offset))
        if hours:
            found.hours = AbsentHours(len(hours), min(hours), max(hours))
        return found


def _named(key: bytes, phy_offset: int) -> NamedEntry:
    return NamedEntry(key[9:-9].decode("utf-8", "replace"), phy_offset)


class _Entries:
    """The entries that the messages in some stretches have. left_out: messages beyond what is held.

    timeless: entries without their hours, of messages that have none because of their store time or flag."""

    want_keys = False

    def __init__(self, stretches: Stretches, wanted: np.ndarray):
        self._stretches, self._wanted = stretches, wanted
        self.expected: dict[bytes, bytes] = {}
        self.left_out: set[int] = set()
        self.timeless: set[bytes] = set()
        self._by_rest: dict[bytes, bytes] | None = None

    def take_other_time(self, key: bytes, value: bytes) -> bool:
        """Take an entry that agrees with itself, and with its message but for the time; say whether it does.

        RocksDB has checksums over the entry, and no CRC covers a message's header, so the header was changed. Then the entry that
        the message should have is not missing.
        """
        if self._by_rest is None:
            self._by_rest = {own[8:]: own for own in self.expected}
        hour, time = int.from_bytes(key[:8], "big"), int.from_bytes(value, "big")
        if hour <= 0 or time // HOUR_MS * HOUR_MS != hour:
            return False
        own = self._by_rest.get(key[8:])
        if own is not None:
            self.expected.pop(own, None)
        return own is not None or key[8:] in self.timeless

    def add(self, scanned: ScannedRows) -> None:
        """Take the messages of one batch."""
        rows = scanned.columns.rows[: scanned.columns.count]
        numbers = (rows["phy_offset"] - self._stretches.start) // self._stretches.size
        for message in indexed_messages(scanned, rows[np.isin(numbers, self._wanted)]):
            if len(self.expected) > MOST_ENTRIES:
                self.left_out.add(message.phy_offset)
                continue
            told = list(index_entries(*message))
            self.expected.update(told)
            if not told and message.parts[0] and len(self.timeless) <= MOST_ENTRIES:
                timed = message._replace(sys_flag=0, store_time=HOUR_MS)
                self.timeless.update(key[8:] for key, _ in index_entries(*timed))
