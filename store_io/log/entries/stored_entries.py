"""Entries of queues in RocksDB by queue and number (rocksdb.md 2), by one process that is started when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import numpy as np

from schemas.layouts import rocksdb_layout as layout
from schemas.layouts.entries import ENTRY_DTYPE, STORED_ENTRY_DTYPE, STORED_KEYED_ENTRY_DTYPE
from schemas.rows import QueueKey
from store_io.base.java.java_compat import MAX_LONG
from store_io.broker.queues.rocksdb_queue_state import EntryUnreadable
from store_io.log.entries.queue_keys import after, entry_key, queue_of_prefix, queue_prefix
from store_io.log.scan.segment_findings import Place
from store_io.rocksdb.database import Batch, Database, DatabaseDamaged, StoredDatabase
from store_io.source.byte_source import ByteSource

FETCHED_ENTRIES = 8192  # of one queue: each read asks another process, or another machine
KEY_BYTES = 280  # of the longest key of an entry: Java's topics have at most 255 bytes
MAX_BAD = 1000  # stretches of bad bytes in one range, after which no more is read


def stored_rows(batch: Batch, key_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (numbers, STORED_KEYED_ENTRY_DTYPE rows) of those entries of a batch whose key has this length and whose value is
    one."""
    key_sizes = np.diff(batch.key_ends, prepend=0)
    value_sizes = np.diff(batch.value_ends, prepend=0)
    good = (key_sizes == key_bytes) & (value_sizes == layout.ENTRY_VALUE_BYTES)
    if good.all():
        keys = batch.keys.reshape(-1, key_bytes) if len(batch) else np.zeros((0, key_bytes), np.uint8)
        values = batch.values
    else:
        picked = np.flatnonzero(good)
        keys = batch.keys[(batch.key_ends[picked, None] - key_bytes + np.arange(key_bytes))]
        values = batch.values[(batch.value_ends[picked, None] - layout.ENTRY_VALUE_BYTES + np.arange(layout.ENTRY_VALUE_BYTES))]
        values = np.ascontiguousarray(values).reshape(-1)
    numbers = np.ascontiguousarray(keys[:, key_bytes - layout.NUMBER_BYTES :]).view(">i8")[:, 0].astype(np.int64)
    return numbers, values.view(STORED_KEYED_ENTRY_DTYPE)


class QueueRows(NamedTuple):
    """Consecutive entries of one queue, as they are stored.

    key: None if no broker writes such keys.
    prefix: with which their keys begin; of keys too short for any, the first of them.
    whole: which of the values have an entry's length; of all others the row is zeros.
    """

    key: QueueKey | None
    prefix: bytes
    numbers: np.ndarray
    rows: np.ndarray
    whole: np.ndarray


def by_queue(batch: Batch) -> Iterator[QueueRows]:
    """Yield the entries of a batch queue by queue, in the order of the keys."""
    sizes = np.diff(batch.key_ends, prepend=0)
    for low, high in _stretches(sizes[1:] != sizes[:-1]):
        yield from _of_equal_keys(batch.part(low, high), int(sizes[low]))


def _of_equal_keys(batch: Batch, key_bytes: int) -> Iterator[QueueRows]:
    whole = np.diff(batch.value_ends, prepend=0) == layout.ENTRY_VALUE_BYTES
    if key_bytes < layout.ENTRY_KEY_EXTRA:
        nothing = np.zeros(len(batch), STORED_KEYED_ENTRY_DTYPE)
        yield QueueRows(None, batch.key(0), np.zeros(len(batch), np.int64), nothing, whole)
        return
    numbers, rows = stored_rows(batch, key_bytes)
    keys = batch.keys.reshape(-1, key_bytes)
    if not whole.all():
        numbers = np.ascontiguousarray(keys[:, -layout.NUMBER_BYTES :]).view(">i8")[:, 0].astype(np.int64)
        found, rows = rows, np.zeros(len(batch), STORED_KEYED_ENTRY_DTYPE)
        rows[whole] = found
    prefixes = keys[:, : -layout.NUMBER_BYTES]
    for low, high in _stretches((prefixes[1:] != prefixes[:-1]).any(axis=1)):
        prefix = prefixes[low].tobytes()
        yield QueueRows(queue_of_prefix(prefix), prefix, numbers[low:high], rows[low:high], whole[low:high])


def _stretches(differs: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield [low, high) of equal ones. differs: of each but the first, whether it differs from the one before."""
    edges = (np.flatnonzero(differs) + 1).tolist()
    return zip([0, *edges], [*edges, len(differs) + 1], strict=True)


class BadBytes(NamedTuple):
    """A stretch of a range that cannot be read.

    path, reason: the file, and RocksDB's words.
    after: the last key before it, or the range's first.
    until: a key from which on entries can be read; None: there is none in the range.
    """

    path: str
    reason: str
    after: bytes
    until: bytes | None


def entry_parts(database: Database, first: bytes, end: bytes | None) -> Iterator[Batch | BadBytes]:
    """Yield the entries with keys in [first, end) in order, and what cannot be read between them. Raises Unreadable."""
    at: bytes | None = first
    last = b""
    for bad in range(MAX_BAD + 1):
        if at is None:
            return
        try:
            for batch in database.scan(layout.ENTRY_FAMILY, at, end):
                last = batch.key(len(batch) - 1)
                yield batch
            return
        except DatabaseDamaged as why:
            before = max(at, last)
            at = _readable_from(database, before, end) if bad < MAX_BAD else None
            yield BadBytes(why.path, why.reason, before, at)


def _readable_from(database: Database, bad: bytes, end: bytes | None) -> bytes | None:
    """Return a key after `bad` from which on entries can be read, the first one about. Looks in the same queue first."""

    def readable(key: bytes) -> bool:
        return database.can_read(layout.ENTRY_FAMILY, key, end)

    prefix, number = bad[: -layout.NUMBER_BYTES], int.from_bytes(bad[-layout.NUMBER_BYTES :], "big", signed=True)
    if queue_of_prefix(prefix) is not None and number >= 0 and readable(after(prefix)):
        return _stop(prefix, first_near(lambda n: readable(_stop(prefix, n)), number, MAX_LONG + 1))
    low, high = (
        int.from_bytes(key[:KEY_BYTES].ljust(KEY_BYTES, fill), "big")
        for key, fill in ((bad, b"\0"), (end or b"", b"\0" if end else b"\xff"))
    )
    if low >= high or not readable(high.to_bytes(KEY_BYTES, "big")):
        return None
    found = first_between(lambda n: readable(n.to_bytes(KEY_BYTES, "big")), low, high)
    return None if found == high else found.to_bytes(KEY_BYTES, "big")


def first_near(can: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number in (low, high] that can, tried near `low` first: `low` cannot, and `high` can."""
    step = 1
    while low + step < high and not can(low + step):
        low, step = low + step, 2 * step
    return first_between(can, low, min(low + step, high))


def first_between(can: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number in (low, high] that can, if none before it can: `low` cannot, and `high` can."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if can(middle) else (middle, high)
    return high


class EntryReader:
    """Reads entries of any queue of one database; without a database there is none.

    Entries in bad bytes are as if they were not there, others are found; `queue_pass` says which bytes are bad. Raises
    DatabaseUnread and other StoreErrors if nothing can be read.
    """

    def __init__(self, source: ByteSource, database: StoredDatabase):
        self._source, self._database = source, database
        self._open: Database | None = None

    def database(self) -> Database:
        """Return the database, opened when it is first needed."""
        if self._open is None:
            opened = self._database.open(self._source)
            self._open = opened.__enter__()
        return self._open

    def windows(self, key: QueueKey, first: int, end: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (numbers, rows) of the queue's entries with numbers in [first, end), in bounded parts."""
        if self._database.absent or first >= end or first < 0:
            return
        prefix = queue_prefix(key)
        at: int | None = first
        while at is not None and at < end:
            try:
                for numbers, rows in self._scan(prefix, at, end):
                    yield numbers, rows
                    if len(numbers):
                        at = int(numbers[-1]) + 1
                return
            except DatabaseDamaged:
                at = self._readable_from(prefix, at, end)

    def phy_offset(self, key: QueueKey, number: int) -> int | None:
        """Return the physical offset to which one entry leads, or None without an entry.

        Raises DatabaseDamaged if the bytes are bad.
        """
        if self._database.absent or number < 0:
            return None
        value = self.database().get(layout.ENTRY_FAMILY, entry_key(queue_prefix(key), number))
        if value is None or len(value) != layout.ENTRY_VALUE_BYTES:
            return None
        return int(np.frombuffer(value, STORED_KEYED_ENTRY_DTYPE)["phy_offset"][0])

    def _scan(self, prefix: bytes, first: int, end: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for batch in self.database().scan(layout.ENTRY_FAMILY, entry_key(prefix, first), _stop(prefix, end)):
            yield stored_rows(batch, len(prefix) + layout.NUMBER_BYTES)

    def _readable_from(self, prefix: bytes, bad: int, end: int) -> int | None:
        """Return the first number after `bad` from which on entries can be read; None: not below `end`. Bad bytes are a block of
        some hundred entries."""
        found = first_near(lambda number: self._can_read(prefix, number, end), bad, end)
        return None if found == end else found

    def _can_read(self, prefix: bytes, first: int, end: int) -> bool:
        return self.database().can_read(layout.ENTRY_FAMILY, entry_key(prefix, first), _stop(prefix, end))

    def close(self) -> None:
        """End the process; it is started again when it is needed."""
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None


def _stop(prefix: bytes, end: int) -> bytes:
    """Return the key before which the entries of that queue with numbers below `end` are."""
    return entry_key(prefix, end) if end <= MAX_LONG else after(prefix)


class KnownEntries:
    """Single entries for a fold, each read once. Raises EntryUnreadable if the bytes are bad."""

    def __init__(self, reader: EntryReader):
        self.reader = reader
        self._seen: dict[tuple[QueueKey, int], int | None] = {}

    def __call__(self, key: QueueKey, number: int) -> int | None:
        place = key, number
        if place not in self._seen:
            try:
                self._seen[place] = self.reader.phy_offset(key, number)
            except DatabaseDamaged as why:
                raise EntryUnreadable(str(why)) from why
        return self._seen[place]

    def close(self) -> None:
        self.reader.close()


class KeyedQueueStore:
    """The queues of a database as a scan of the CommitLog asks for them. keys: those that it has."""

    def __init__(self, source: ByteSource, database: StoredDatabase, keys: Collection[QueueKey]):
        self._reader, self._keys, self._folder = EntryReader(source, database), keys, database.folder

    @property
    def queue_count(self) -> int:
        return len(self._keys)

    @property
    def entries_at_once(self) -> int:
        return FETCHED_ENTRIES

    def has(self, key: QueueKey, batch: bool = False) -> bool:
        return not batch and key in self._keys

    def entries(self, key: QueueKey, batch: bool = False) -> KeyedEntries:
        return KeyedEntries(self._reader, key, self._folder)

    def ext_units(self, key: QueueKey) -> None:
        return None

    def close(self) -> None:
        self._reader.close()


class KeyedEntries:
    """The entries of one queue, as entries of queues in files are given: without their store times."""

    def __init__(self, reader: EntryReader, key: QueueKey, folder: str):
        self._reader, self._key, self._folder = reader, key, folder

    def read(self, first: int, count: int) -> np.ndarray:
        data = np.empty(count * STORED_ENTRY_DTYPE.itemsize, np.uint8)
        self.read_into(first, data)
        return data.view(STORED_ENTRY_DTYPE)

    def read_into(self, first: int, data: np.ndarray) -> None:
        data[:] = 0
        rows = data.view(STORED_ENTRY_DTYPE)
        for numbers, found in self._reader.windows(self._key, first, first + len(rows)):
            rows[numbers - first] = _without_times(found)

    def place(self, number: int) -> Place:
        return Place(self._folder, None)

    def entries_within(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        numbers, entries = [np.zeros(0, np.int64)], [np.zeros(0, STORED_ENTRY_DTYPE)]
        for number, found in self._reader.windows(self._key, 0, MAX_LONG + 1):
            phy = found["phy_offset"]
            kept = np.flatnonzero((phy >= low) & (phy < high) & (found["size"] != 0))
            numbers.append(number[kept])
            entries.append(_without_times(found[kept]))
        number, entry = np.concatenate(numbers), np.concatenate(entries)
        order = np.lexsort((number, entry["phy_offset"].astype(np.int64)))
        return number[order], entry[order]


def plain_entries(rows: np.ndarray) -> np.ndarray:
    """Return these rows as entries of a queue in files, in the machine's byte order."""
    return _without_times(rows).astype(ENTRY_DTYPE)


def _without_times(rows: np.ndarray) -> np.ndarray:
    found = np.empty(len(rows), STORED_ENTRY_DTYPE)
    for name in STORED_ENTRY_DTYPE.names or ():
        found[name] = rows[name]
    return found
