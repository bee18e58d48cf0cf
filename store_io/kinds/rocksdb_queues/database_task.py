"""Writes the database of a new store's queues from raw entries. The tasks of a rebuild put these into one file, in the order
of the log (`rebuild_tasks.RawEntries`). One task, as one process writes a database; it holds a window of entries at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from schemas.layouts import rocksdb_layout as layout
from schemas.layouts.entries import STORED_KEYED_ENTRY_DTYPE
from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.broker.queues.rocksdb_queue_state import QueueEnd
from store_io.log.entries.queue_keys import mark_key, offset_key, queue_prefix
from store_io.repair.derived.queue_plan import Fill
from store_io.repair.derived.rebuild_tasks import RAW_ENTRY_DTYPE
from store_io.repair.writing.database_writer import ENDS, ENTRIES, DatabaseWriter, WrittenDatabase
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import StoreLocation, open_source

WINDOW_ENTRIES = 1 << 16


@dataclass(frozen=True)
class NewQueue:
    """One queue of the database. fills: entries that lead to no message."""

    key: QueueKey
    maximum: QueueEnd | None
    minimum: QueueEnd | None
    fills: tuple[Fill, ...] = ()


@dataclass(frozen=True)
class DatabaseTask:
    """The task that makes the database of queues.

    raw: the file with the entries.
    parts: (first, how many) of what was written into it.
    entries: how many the database must have.
    mark: its end mark.
    """

    writer: StoreWriter
    raw: str
    parts: tuple[tuple[int, int], ...]
    queues: tuple[NewQueue, ...]
    entries: int
    mark: int

    store: int = 0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.entries * RAW_ENTRY_DTYPE.itemsize

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.raw,)

    def run(self) -> WrittenDatabase:
        """Write it into the workshop. Raises StoreError."""
        with DatabaseWriter(self.writer.workshop()) as database:
            self._add_messages(database)
            for queue in self.queues:
                for fill in queue.fills:
                    _add_fill(database, queue.key, fill)
            ends = self._ends()
            while pairs := list(islice(ends, WINDOW_ENTRIES)):
                database.add_pairs(ENDS.kind, pairs)
            written = database.finish(self.entries)
        count = written.counts[ENTRIES.name]
        if count != self.entries:
            raise StoreError(
                f"the queues' database got {count} entries where the audit counted {self.entries}: a fault of this program"
            )
        return written

    def _add_messages(self, database: DatabaseWriter) -> None:
        prefixes = [np.frombuffer(queue_prefix(queue.key), np.uint8) for queue in self.queues]
        size = RAW_ENTRY_DTYPE.itemsize
        with open_source(StoreLocation(self.writer.root)).open(self.raw) as file:
            for first, count in self.parts:
                for at in range(first, first + count, WINDOW_ENTRIES):
                    many = min(WINDOW_ENTRIES, first + count - at)
                    rows = np.frombuffer(file.read(at * size, many * size), RAW_ENTRY_DTYPE)
                    _add_rows(database, prefixes, rows)

    def _ends(self) -> Iterator[tuple[bytes, bytes]]:
        if self.mark > 0:
            yield mark_key(), struct.pack(">q", self.mark)
        for queue in self.queues:
            for which, end in ((layout.MAXIMUM, queue.maximum), (layout.MINIMUM, queue.minimum)):
                if end is not None:
                    yield offset_key(which, queue.key), struct.pack(">qq", *end)


def _add_rows(database: DatabaseWriter, prefixes: Sequence[np.ndarray], rows: np.ndarray) -> None:
    rows = rows[np.argsort(rows["queue"], kind="stable")]
    edges = (np.flatnonzero(np.diff(rows["queue"])) + 1).tolist()
    keys = [
        _keys(prefixes[int(rows["queue"][low])], rows["number"][low:high])
        for low, high in zip([0, *edges], [*edges, len(rows)], strict=True)
    ]
    values = np.empty(len(rows), STORED_KEYED_ENTRY_DTYPE)
    for name in STORED_KEYED_ENTRY_DTYPE.names or ():
        values[name] = rows[name]
    database.add_entries(keys, values.view(np.uint8))


def _add_fill(database: DatabaseWriter, key: QueueKey, fill: Fill) -> None:
    prefix = np.frombuffer(queue_prefix(key), np.uint8)
    for at in range(fill.start, fill.end, WINDOW_ENTRIES):
        some = np.arange(at, min(fill.end, at + WINDOW_ENTRIES))
        database.add_entries([_keys(prefix, some)], np.frombuffer(fill.entry * len(some), np.uint8))


def _keys(prefix: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the keys of entries of one queue, a row of bytes for each."""
    found = np.empty((len(numbers), len(prefix) + layout.NUMBER_BYTES), np.uint8)
    found[:, : len(prefix)] = prefix
    found[:, len(prefix) :] = numbers.astype(">i8").view(np.uint8).reshape(-1, layout.NUMBER_BYTES)
    return found
