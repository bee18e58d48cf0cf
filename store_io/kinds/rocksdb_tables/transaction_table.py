"""Transactions in RocksDB: the family `trans` of rocksdbstore/, an entry for each half message that is not done (rocksdb.md 10).

Source: TransRocksDBRecord, MessageRocksDBStorage (5.4.0, 5.5.0).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.layouts import rocksdb_layout as layout
from store_io.base.errors import StoreError
from store_io.rocksdb.database import DatabaseDamaged, StoredDatabase, stored_number
from store_io.source.byte_source import StoreLocation, open_source

HALF_ENTRY = np.dtype(
    [
        ("phy_offset", "i8"),
        ("key", "u8"),  # `key_print` of what follows in the key
        ("size", "i4"),
    ]
)
NO_HALF_ENTRIES = np.zeros(0, HALF_ENTRY)
_FORM = struct.Struct(">ii")  # how often the producer was asked, size


def key_print(suffix: bytes) -> int:
    """Return the print of the bytes after the physical offset in an entry's key."""
    return int.from_bytes(hashlib.blake2b(suffix, digest_size=8).digest(), "big")


@dataclass
class TransactionTable:
    """The half messages of a database.

    rows: HALF_ENTRY, by physical offset; None if there are more than the task may give.
    mark: the physical offset of the newest half message that was put; 0 without one.
    odd, first_odd: keys or values that no broker writes.
    damaged: (file, reason) if bad bytes end the reading early.
    unnamed: table files of the folder that the database does not know.
    passed_over: the number of sound entries, in `rows`, whose key a broker cannot part again (`is_passed_over`).
    first_passed_over: the first one's physical offset, -1 for none.
    """

    rows: np.ndarray | None = field(default_factory=lambda: NO_HALF_ENTRIES)
    mark: int = 0
    odd: int = 0
    first_odd: str = ""
    damaged: tuple[str, str] | None = None
    bytes_read: int = 0
    problem: Gap | None = None
    unnamed: tuple[str, ...] = ()
    passed_over: int = 0
    first_passed_over: int = -1


@dataclass(frozen=True)
class TransactionTableTask:
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

    def run(self) -> TransactionTable:
        found, rows = TransactionTable(), list[tuple[int, int, int]]()
        if self.database.absent:
            return found
        try:
            with self.database.open(open_source(self.location)) as opened:
                found.unnamed = opened.unnamed
                for batch in opened.scan(layout.TRANSACTION_FAMILY):
                    found.bytes_read += len(batch.keys) + len(batch.values)
                    for key, value in batch.pairs():
                        self._take(key, value, found, rows)
        except DatabaseDamaged as why:
            found.damaged = why.path, why.reason
        except StoreError as why:
            return TransactionTable(problem=why.gap())
        found.rows = np.array(rows, HALF_ENTRY) if len(rows) <= self.max_entries else None
        return found

    def _take(self, key: bytes, value: bytes, found: TransactionTable, rows: list[tuple[int, int, int]]) -> None:
        if key == layout.TABLE_MARK:
            found.mark = stored_number(value) or 0
            return
        if not is_sound(key, value):
            found.odd += 1
            found.first_odd = found.first_odd or repr(key[:80])
            return
        phy_offset, (_, size) = int.from_bytes(key[:8], "big", signed=True), _FORM.unpack(value)
        if is_passed_over(key):
            found.first_passed_over = phy_offset if not found.passed_over else found.first_passed_over
            found.passed_over += 1
        if len(rows) <= self.max_entries:
            rows.append((phy_offset, key_print(key[8:]), size))


def is_sound(key: bytes, value: bytes) -> bool:
    """Say whether a broker can have written this entry."""
    named = len(key) > 8 and len(value) == layout.TRANSACTION_VALUE_BYTES and key[8:9] == b"@" and key.count(b"@", 8) >= 2
    asked, size = _FORM.unpack(value) if named else (-1, 0)
    return named and key[0] < 0x80 and asked >= 0 and size > 0


def is_passed_over(key: bytes) -> bool:
    """Say whether a broker passes over an entry with this key when it looks for producers to ask.

    It parts the text at each "@", and wants nothing, a topic and a unique key (TransRocksDBRecord.decode, 5.5.0). Java's split
    drops empty parts at the end.
    """
    return len(key[8:].rstrip(b"@").split(b"@")) != 3
