"""Timers in RocksDB: the family `timer` of rocksdbstore/, an entry for each timer message (timer.md 9).

Bounded: a batch at a time; what is given back is a few numbers per entry, up to a limit.
Source: TimerRocksDBRecord, MessageRocksDBStorage (5.4.0, 5.5.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.layouts import rocksdb_layout as layout
from schemas.rows import StoreFile
from store_io.base import fingerprints
from store_io.base.compiled.native import compiled_helper, kept
from store_io.base.errors import StoreError
from store_io.base.fingerprints import SEED, fold_bytes
from store_io.rocksdb.database import NO_DATABASE, Batch, DatabaseDamaged, StoredDatabase, find_database, stored_number
from store_io.source.byte_source import ByteSource, StoreLocation, open_source

TIMER_ENTRY = np.dtype(
    [
        ("time", "i8"),  # of delivery, ms
        ("phy_offset", "i8"),
        ("size", "i4"),
        ("unique", "u8"),  # `fold_bytes` of the unique key
    ]
)
NO_ENTRIES = np.zeros(0, TIMER_ENTRY)
_CHECKPOINTS = frozenset((layout.TIMER_OFFSET_KEY, layout.TIMER_TIME_KEY))


@dataclass(frozen=True)
class TimerTable:
    """The timer facts that are known before any entry is read.

    queue_offset: the queue offset from which on a start takes messages; 0 if nothing says it.
    read_time: the time up to which entries were delivered; None if nothing says it.
    damaged: (file, reason) if RocksDB does not open it, or cannot read these.
    unread: why nothing can be said, else empty.
    unnamed: table files of the folder that the database does not know.
    """

    database: StoredDatabase = NO_DATABASE
    queue_offset: int = 0
    read_time: int | None = None
    damaged: tuple[str, str] | None = None
    unread: Gap | None = None
    unnamed: tuple[str, ...] = ()


def read_timer_table(source: ByteSource, files: Sequence[StoreFile]) -> TimerTable:
    """Read the table, whatever the bytes are. files: what lies below rocksdbstore/."""
    database = find_database(files, layout.TABLES_FOLDER)
    if database.absent:
        return TimerTable(database)
    unnamed = tuple[str, ...]()
    try:
        with database.open(source) as opened:
            unnamed = opened.unnamed
            keys = layout.TIMER_OFFSET_KEY, layout.TIMER_TIME_KEY
            offset, time = (stored_number(opened.get(layout.TIMER_FAMILY, key)) for key in keys)
    except DatabaseDamaged as why:
        return TimerTable(database, damaged=(why.path, why.reason), unnamed=unnamed)
    except StoreError as why:
        return TimerTable(database, unread=why.gap())
    return TimerTable(database, offset or 0, time, unnamed=unnamed)


@dataclass
class TimerEntries:
    """The timer entries of a database.

    rows: TIMER_ENTRY, by time; None if there are more than the task may give.
    count: the number of all entries.
    odd: the number of keys or values that no broker writes; first_odd: the first of them as text.
    damaged: (file, reason) if bad bytes end the reading early.
    """

    rows: np.ndarray | None = field(default_factory=lambda: NO_ENTRIES)
    count: int = 0
    odd: int = 0
    first_odd: str = ""
    damaged: tuple[str, str] | None = None
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class TimerEntriesTask:
    """Reads all entries."""

    store: int
    location: StoreLocation
    database: StoredDatabase
    max_entries: int
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.database.size_bytes

    @property
    def paths(self) -> tuple[str, ...]:
        return self.database.paths

    def run(self) -> TimerEntries:
        found, kept = TimerEntries(), [NO_ENTRIES]
        try:
            for rows in timer_entries(open_source(self.location), self.database, found):
                found.count += len(rows)
                if found.count <= self.max_entries:
                    kept.append(rows)
                else:
                    kept.clear()
        except DatabaseDamaged as why:
            found.damaged = why.path, why.reason
        except StoreError as why:
            return TimerEntries(problem=why.gap())
        found.rows = np.concatenate([NO_ENTRIES, *kept]) if found.count <= self.max_entries else None
        return found


def timer_entries(source: ByteSource, database: StoredDatabase, found: TimerEntries) -> Iterator[np.ndarray]:
    """Yield all entries, a batch at a time; what no broker writes is counted in `found`. Raises DatabaseDamaged, StoreError."""
    if database.absent:
        return
    with database.open(source) as opened:
        for batch in opened.scan(layout.TIMER_FAMILY):
            found.bytes_read += len(batch.keys) + len(batch.values)
            yield _rows(batch, found)


def _rows(batch: Batch, found: TimerEntries) -> np.ndarray:
    key_sizes, value_sizes = np.diff(batch.key_ends, prepend=0), np.diff(batch.value_ends, prepend=0)
    good = (key_sizes >= layout.TIMER_KEY_LEAST) & (value_sizes == layout.TIMER_VALUE_BYTES)
    rows = np.zeros(len(batch), TIMER_ENTRY)
    _decode(batch.key_ends, batch.value_ends, batch.keys, batch.values, good, rows)
    good &= (rows["time"] >= 0) & (rows["phy_offset"] >= 0) & (rows["size"] > 0)
    for at in np.flatnonzero(~good).tolist():
        key = batch.key(at)
        if key in _CHECKPOINTS and value_sizes[at] == layout.TIMER_CHECK_BYTES:
            continue
        found.odd += 1
        found.first_odd = found.first_odd or repr(key[:80])
    kept: np.ndarray = rows[good]
    return kept


@compiled_helper()
def _big_endian(data, at, size):  # type: ignore[no-untyped-def]
    value = np.int64(0)
    for i in range(at, at + size):
        value = np.int64(value << 8) | np.int64(data[i])
    return value


@kept(fingerprints)
def _decode(key_ends, value_ends, keys, values, good, rows):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        if not good[i]:
            continue
        start = key_ends[i - 1] if i else 0
        value = value_ends[i - 1] if i else 0
        row = rows[i]
        row.time, row.unique = _big_endian(keys, start, 8), fold_bytes(SEED, keys, start + 8, key_ends[i])
        row.size, row.phy_offset = _big_endian(values, value, 4), _big_endian(values, value + 4, 8)
