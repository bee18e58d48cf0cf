"""The index in RocksDB: the family `default` of rocksdbstore/, an entry for each key of a message (rocksdb.md 10).

A range of keys in one pass, a batch at a time: prints of the entries by where they lead, and what no broker writes.
Source: IndexRocksDBRecord, MessageRocksDBStorage (5.4.0, 5.5.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.layouts import rocksdb_layout as layout
from store_io.base import fingerprints
from store_io.base.compiled.native import kept
from store_io.base.errors import StoreError
from store_io.base.fingerprints import SEED, Prints, PrintSums, Stretches, finished, fold_bytes
from store_io.base.ranges import least_offset
from store_io.rocksdb.database import Batch, DatabaseDamaged, StoredDatabase, stored_number
from store_io.source.byte_source import ByteSource, StoreLocation, open_source

MOST_HOURS = 1 << 18  # of keys, thirty years: beyond, none are kept


@dataclass
class IndexTable:
    """The index of a database in figures.

    prints: those of entries that lead into the log.
    first: the smallest physical offset to which an entry leads there, -1 for none.
    hours: those of the keys of the same entries, ascending; None if they are too many.
    mark: the physical offset of the newest message in the index; 0 without one.
    beyond: the number of entries that lead to the end of the log's last message or further; first_beyond: the smallest of their
    physical offsets, -1 for none.
    odd, first_odd: keys or values that no broker writes.
    damaged: (file, reason) if bad bytes end the reading early.
    """

    prints: Prints = field(default_factory=Prints)
    first: int = -1
    mark: int = 0
    beyond: int = 0
    first_beyond: int = -1
    odd: int = 0
    first_odd: str = ""
    damaged: tuple[str, str] | None = None
    bytes_read: int = 0
    problem: Gap | None = None
    hours: np.ndarray | None = field(default_factory=lambda: np.zeros(0, np.int64))

    def has_hours(self, spans: np.ndarray) -> np.ndarray:
        """Say for each (first hour, last hour) whether there is an entry in these hours."""
        if self.hours is None:
            return np.ones(len(spans), bool)
        return np.searchsorted(self.hours, spans[:, 1], side="right") > np.searchsorted(self.hours, spans[:, 0])

    def add_hours(self, hours: np.ndarray | None) -> None:
        """Add the hours of more entries."""
        if self.hours is not None:
            self.hours = np.union1d(self.hours, hours) if hours is not None else None
        if self.hours is not None and len(self.hours) > MOST_HOURS:
            self.hours = None

    def __add__(self, other: IndexTable) -> IndexTable:
        both = IndexTable(
            self.prints + other.prints,
            least_offset(self.first, other.first),
            self.mark or other.mark,
            self.beyond + other.beyond,
            least_offset(self.first_beyond, other.first_beyond),
            self.odd + other.odd,
            self.first_odd or other.first_odd,
            self.damaged or other.damaged,
            self.bytes_read + other.bytes_read,
            self.problem or other.problem,
            self.hours,
        )
        both.add_hours(other.hours)
        return both


@dataclass(frozen=True)
class IndexTableTask:
    """The entries with keys in [first, end). part: of the database's bytes."""

    store: int
    location: StoreLocation
    database: StoredDatabase
    stretches: Stretches
    first: bytes = b""
    end: bytes | None = None
    part: float = 1.0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return int(self.database.size_bytes * self.part)

    @property
    def paths(self) -> tuple[str, ...]:
        return self.database.paths

    def run(self) -> IndexTable:
        found, sums = IndexTable(), PrintSums(self.stretches)
        try:
            for batch in _batches(open_source(self.location), self.database, self.first, self.end):
                self._take(batch, found, sums)
        except DatabaseDamaged as why:
            found.damaged = why.path, why.reason
        except StoreError as why:
            return IndexTable(problem=why.gap())
        found.prints = sums.prints
        return found

    def _take(self, batch: Batch, found: IndexTable, sums: PrintSums) -> None:
        found.bytes_read += len(batch.keys) + len(batch.values)
        phy, hours, hashes, good = decoded(batch)
        for at in np.flatnonzero(~good).tolist():
            key = batch.key(at)
            if key == layout.TABLE_MARK:
                found.mark = stored_number(batch.value(at)) or 0
            elif key != layout.TABLE_TIME_MARK:
                found.odd += 1
                found.first_odd = found.first_odd or repr(key[:80])
        start, end = self.stretches.start, self.stretches.end
        far = phy[good & (phy >= end)]
        if len(far):
            found.beyond += len(far)
            found.first_beyond = least_offset(found.first_beyond, int(far.min()))
        inside = good & (phy >= start) & (phy < end)
        if inside.any():
            found.first = least_offset(found.first, int(phy[inside].min()))
            found.add_hours(np.unique(hours[inside]))
            sums.add((phy[inside] - start) // self.stretches.size, hashes[inside])


def _batches(source: ByteSource, database: StoredDatabase, first: bytes = b"", end: bytes | None = None) -> Iterator[Batch]:
    if database.absent:
        return
    with database.open(source) as opened:
        yield from opened.scan(layout.INDEX_FAMILY, first, end)


def entries_leading_into(
    source: ByteSource, database: StoredDatabase, stretches: Stretches, wanted: np.ndarray
) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (key, value, physical offset) of the entries that lead into these stretches. Raises StoreError."""
    for batch in _batches(source, database):
        phy, _, _, good = decoded(batch)
        chosen = good & (phy >= stretches.start) & (phy < stretches.end)
        chosen &= np.isin((phy - stretches.start) // stretches.size, wanted)
        for at in np.flatnonzero(chosen).tolist():
            yield batch.key(at), batch.value(at), int(phy[at])


def decoded(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (physical offset, hour, hash of key and value, whether it is one that a broker writes) of each entry."""
    key_sizes, value_sizes = np.diff(batch.key_ends, prepend=0), np.diff(batch.value_ends, prepend=0)
    good = (key_sizes >= layout.INDEX_KEY_LEAST) & (value_sizes == layout.INDEX_VALUE_BYTES)
    phy, hours, hashes = np.zeros(len(batch), np.int64), np.zeros(len(batch), np.int64), np.zeros(len(batch), np.uint64)
    _decode(batch.key_ends, batch.value_ends, batch.keys, batch.values, good, phy, hours, hashes)
    good &= phy >= 0
    return phy, hours, hashes, good


@kept(fingerprints)
def _decode(key_ends, value_ends, keys, values, good, phy, hours, hashes):  # type: ignore[no-untyped-def]
    for i in range(len(phy)):
        if not good[i]:
            continue
        start, value = (key_ends[i - 1], value_ends[i - 1]) if i else (0, 0)
        number = np.int64(0)
        for k in range(key_ends[i] - 8, key_ends[i]):
            number = np.int64(number << 8) | np.int64(keys[k])
        phy[i] = number
        number = np.int64(0)
        for k in range(start, start + 8):
            number = np.int64(number << 8) | np.int64(keys[k])
        hours[i] = number
        good[i] = keys[start + 8] == 0x40 and keys[key_ends[i] - 9] == 0x40  # @
        hashes[i] = finished(fold_bytes(fold_bytes(SEED, keys, start, key_ends[i]), values, value, value_ends[i]))
