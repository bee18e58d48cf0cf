"""Index and transactions in RocksDB, from both sides: which stretches of the log differ, and what is missing (rocksdb.md 10)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from schemas.layouts.rocksdb_layout import HOUR_MS
from schemas.rows import EXTENT_MESSAGE, SegmentSummary
from store_io.base.fingerprints import Stretches
from store_io.broker.releases import BrokerRules
from store_io.kinds.rocksdb_tables.hour_spans import AbsentHours
from store_io.kinds.rocksdb_tables.index_table import IndexTable
from store_io.kinds.rocksdb_tables.table_tasks import IndexCounts, IndexLook, LogTable
from store_io.kinds.rocksdb_tables.transaction_table import TransactionTable
from store_io.model import log_map as lm
from store_io.model.log_map import LogMap
from store_io.rocksdb.database import StoredDatabase

Part = TypeVar("Part", LogTable, IndexTable)

MOST_STRETCHES = 1 << 20
LEAST_STRETCH_BYTES = 1 << 16
RANGE_BYTES = 128 << 20  # of a database, for one task
MOST_RANGES = 64
LOOKED_AT = 32  # stretches, entry by entry


def added_up(parts: list[Part]) -> list[Part]:
    """Add parts up in pairs of neighbours, so that no part is copied for each that follows."""
    while len(parts) > 1:
        parts = [one + other for one, other in zip(parts[::2], parts[1::2], strict=False)] + parts[len(parts) & ~1 :]
    return parts


@dataclass
class TableResults:
    """The results of the tasks; None without a task.

    late: one was not read.
    """

    transactions: TransactionTable | None = None
    look: IndexLook | None = None
    late: bool = False
    _logs: list[LogTable] = field(default_factory=list)  # added up when somebody asks
    _indexes: list[IndexTable] = field(default_factory=list)

    def add_index(self, part: IndexTable) -> None:
        """Add one more range of keys."""
        self._indexes.append(part)

    def add_log(self, part: LogTable) -> None:
        """Add one more segment."""
        self._logs.append(part)

    @property
    def log(self) -> LogTable | None:
        """Return the result of all segments."""
        self._logs = added_up(self._logs)
        return self._logs[0] if self._logs else None

    @property
    def index(self) -> IndexTable | None:
        """Return the result of all ranges of keys."""
        self._indexes = added_up(self._indexes)
        return self._indexes[0] if self._indexes else None

    @property
    def read(self) -> bool:
        """Say whether all that was asked for of both sides was read."""
        parts = (self.log, self.index, self.transactions, self.look)
        return not self.late and self.log is not None and not any(part is not None and part.problem for part in parts)


@dataclass(frozen=True)
class TablesInUse:
    """The tables in RocksDB that a broker with these settings uses.

    database: that of rocksdbstore/.
    index, transactions: whether the broker uses the table.
    """

    database: StoredDatabase
    index: bool
    transactions: bool


def tables_in_use(rules: BrokerRules, database: StoredDatabase) -> TablesInUse | None:
    """Return the tables that a broker uses; None if it uses neither."""
    index = rules.knows_rocksdb and bool(rules.value("indexRocksDBEnable")) and bool(rules.value("messageIndexEnable"))
    transactions = rules.knows_rocksdb and bool(rules.value("transRocksDBEnable"))
    return TablesInUse(database, index, transactions) if index or transactions else None


def stretches_of(segments: Sequence[SegmentSummary]) -> Stretches:
    """Return the log up to the end of its last message, in stretches of one size, at most MOST_STRETCHES of them."""
    start = min((s.base_offset for s in segments), default=0)
    ends = (s.base_offset + e.end for s in segments for e in s.extents if e.kind == EXTENT_MESSAGE)
    end = max(ends, default=start)
    size = LEAST_STRETCH_BYTES
    while (end - start) // size >= MOST_STRETCHES:
        size *= 2
    return Stretches(start, end, size)


def hour_keys(segments: Sequence[SegmentSummary], parts: int) -> list[bytes]:
    """Return keys of the index that part the hours of these messages into so many ranges, about equally long."""
    first = min((s.first_store_time for s in segments if s.first_store_time > 0), default=0)
    last = max((s.last_store_time for s in segments), default=0)
    times = {(first + (last - first) * number // parts) // HOUR_MS * HOUR_MS for number in range(1, parts)}
    return [struct.pack(">q", time) for time in sorted(times) if 0 < time < 1 << 62]


@dataclass
class IndexDifference(IndexCounts):
    """Stretches whose prints differ. wanted: to be looked at entry by entry; the counts, by the stretches' numbers alone, are of
    all others."""

    wanted: list[int] = field(default_factory=list)


def index_difference(log: LogTable, index: IndexTable, stretches: Stretches, places: LogMap) -> IndexDifference:
    """Return both sides, stretch by stretch."""
    found = IndexDifference()
    numbers = np.union1d(log.prints.stretch, index.prints.stretch)
    wanted, wanted_total = _aligned(log.prints.stretch, log.prints.count, log.prints.total, numbers)
    there, there_total = _aligned(index.prints.stretch, index.prints.count, index.prints.total, numbers)
    empty = index.first < 0
    first = 0 if empty else (index.first - stretches.start) // stretches.size
    last = -1 if empty and index.mark <= 0 else (index.mark - stretches.start) // stretches.size
    before = (there == 0) & (numbers < first)
    after_mark = (there == 0) & (numbers > last) & ~before
    spans = log.spans.of(numbers)
    same_hour = before & index.has_hours(spans)
    found.before, found.after_mark = int(wanted[before & ~same_hour].sum()), int(wanted[after_mark].sum())
    found.before_same_hour = int(wanted[same_hour].sum())
    differ = ((wanted != there) | (wanted_total != there_total)) & ~before & ~after_mark
    messages, gaps = _held(places, stretches, numbers)
    unheld = differ & (wanted == 0) & ~messages
    found.unheld = int(there[unheld].sum())
    whole = differ & (there == 0) & (empty | ~index.has_hours(spans))
    if count := int(wanted[whole].sum()):
        found.hours = AbsentHours(count, int(spans[whole, 0].min()), int(spans[whole, 1].max()))
    differ &= ~unheld & ~whole
    found.wanted = numbers[differ][:LOOKED_AT].tolist()
    rest = np.flatnonzero(differ)[LOOKED_AT:]
    found.missing = int(np.maximum(0, wanted[rest] - there[rest]).sum())
    more = np.maximum(0, there[rest] - wanted[rest]) + (wanted[rest] == there[rest])
    found.strange, found.unheld = int(more[~gaps[rest]].sum()), found.unheld + int(more[gaps[rest]].sum())
    return found


def _held(places: LogMap, stretches: Stretches, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Say for each of these stretches whether the log has messages in it, and whether it may have had some.

    The second answer is about bytes that may have been messages.
    """
    start = stretches.start + numbers * stretches.size
    low = np.maximum(0, np.searchsorted(places.starts, start, side="right") - 1)
    high = np.searchsorted(places.starts, np.minimum(start + stretches.size, stretches.end) - 1, side="right")
    message = np.concatenate([[0], np.cumsum(places.kinds == lm.MESSAGE)])
    gap = np.concatenate([[0], np.cumsum((places.kinds != lm.MESSAGE) & (places.kinds != lm.FILLER))])
    return message[high] > message[low], gap[high] > gap[low]


def _aligned(stretch: np.ndarray, count: np.ndarray, total: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    place = np.searchsorted(numbers, stretch)
    counts, totals = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.uint64)
    counts[place], totals[place] = count, total
    return counts, totals
