"""The database rocksdbstore/ of a new store, written from the messages of its log (rocksdb.md 10).

A `SpoolTask` reads one segment and writes what its messages have in index and transactions into a file that goes afterwards, as
frames for the process that writes the database. A `TablesTask` hands it all these files, in the order of the log, and what stays
of the old database.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from schemas.layouts import rocksdb_layout as layout
from store_io.base.errors import StoreError
from store_io.base.fingerprints import among
from store_io.base.tasks import OfScan
from store_io.kinds.rocksdb_tables.half_messages import told_by
from store_io.kinds.rocksdb_tables.index_fingerprints import index_entries, indexed_messages
from store_io.kinds.rocksdb_tables.transaction_table import is_sound
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.repair.writing.database_writer import (
    INDEX,
    KEPT,
    REMOVED,
    TABLE_FAMILIES,
    TRANSACTIONS,
    DatabaseWriter,
    Family,
    WrittenDatabase,
    frame,
)
from store_io.repair.writing.store_writer import StoreFileWriter, StoreWriter
from store_io.rocksdb.database import Database, DatabaseDamaged, find_database
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import StoreLocation, open_source
from store_io.wording.gaps import gap_text

FRAME_ENTRIES = 1 << 14
FRAME_BYTES = 8 << 20  # each key of a message holds its unique key again
PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class SpoolTask(OfScan):
    """One segment.

    path: the file, which is there and empty.
    index, transactions: which of the two are wanted.
    given_up: physical offsets of half messages that get no entry, ascending.
    most_bytes: of a message that gets one.
    """

    scan: SegmentTask
    writer: StoreWriter
    path: str
    index: bool
    transactions: bool
    given_up: np.ndarray
    most_bytes: int

    store: int = 0
    not_after: float = 0

    def run(self) -> int:
        """Write it: how many bytes. Raises StoreError."""
        with self.writer.open(self.path) as file:
            sink = _Sink(self, file)
            summary = scan_segment(self.scan, sink=sink)
            sink.flush()
        if summary.problem:
            raise StoreError(gap_text(summary.problem))
        return sink.written


class _Sink:
    """A `dataset_rows.DatasetSink` that writes frames instead of rows."""

    want_keys = False

    def __init__(self, task: SpoolTask, file: StoreFileWriter):
        self._task, self._file = task, file
        self.written = self._held = 0
        self._kind, self._keys, self._values = INDEX.kind, list[bytes](), list[bytes]()

    def add(self, scanned: ScannedRows) -> None:
        """Take the messages of one batch."""
        if self._task.index:
            rows = scanned.columns.rows[: scanned.columns.count]
            for message in indexed_messages(scanned, rows[rows["uniq_len"] > 0]):
                for key, value in index_entries(*message):
                    self._put(INDEX.kind, key, value)
        if self._task.transactions:
            self._add_halves(scanned)

    def _add_halves(self, scanned: ScannedRows) -> None:
        for told in told_by(scanned.columns, scanned.keys, scanned.window):
            if told.size > self._task.most_bytes:
                continue
            if told.done:
                self._put(REMOVED, told.key, b"")
            elif not among(np.array([told.phy_offset]), self._task.given_up)[0]:
                self._put(TRANSACTIONS.kind, told.key, struct.pack(">ii", 0, told.size))

    def _put(self, kind: bytes, key: bytes, value: bytes) -> None:
        if kind != self._kind or len(self._keys) >= FRAME_ENTRIES or self._held >= FRAME_BYTES:
            self.flush()
            self._kind = kind
        self._keys.append(key)
        self._values.append(value)
        self._held += len(key) + len(value)

    def flush(self) -> None:
        """Write the frame that is not full yet."""
        if self._keys:
            data = frame(self._kind, self._keys, self._values)
            self._task.writer.require(len(data), "the entries of rocksdbstore/ need")
            self._file.write(self.written, data)
            self.written += len(data)
            self._keys, self._values, self._held = [], [], 0


@dataclass(frozen=True)
class TablesTask:
    """The task that makes the tables in RocksDB.

    spools: of all segments, in their order.
    copied: families that stay as they are in the store.
    asked: whether it is known there how often producers were asked.
    marks: of each family that has one, its keys and values.
    """

    writer: StoreWriter
    spools: tuple[str, ...]
    copied: tuple[Family, ...]
    asked: bool
    marks: tuple[tuple[Family, tuple[tuple[bytes, bytes], ...]], ...]
    bytes: int = 0

    store: int = 0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.bytes

    @property
    def paths(self) -> tuple[str, ...]:
        return self.spools

    def run(self) -> WrittenDatabase:
        """Write it into the workshop. Raises StoreError."""
        source = open_source(self.writer.location)
        old = find_database(source.list_tree(layout.TABLES_FOLDER), layout.TABLES_FOLDER)
        with DatabaseWriter(self.writer.workshop(), TABLE_FAMILIES) as database:
            for path in self.spools:
                with open_source(StoreLocation(self.writer.root)).open(path) as file:
                    _send(database, file)
            if (self.copied or self.asked) and not old.absent:
                try:
                    with old.open(source) as entries:
                        self._take_over(database, entries)
                except DatabaseDamaged:  # what lies before the bad bytes is known; the audit of the new store sees the rest
                    pass
            for family, pairs in self.marks:
                database.add_pairs(family.kind, pairs)
            return database.finish(self.bytes // layout.INDEX_KEY_LEAST)

    def _take_over(self, database: DatabaseWriter, entries: Database) -> None:
        """Take entries over. Raises DatabaseDamaged if the old database cannot be read to its end."""
        for family in self.copied:
            for batch in entries.scan(family.name):
                database.add_batch(family.kind, batch)
        if self.asked:
            for batch in entries.scan(TRANSACTIONS.name):
                if pairs := [(key, value) for key, value in batch.pairs() if is_sound(key, value)]:
                    database.add_pairs(KEPT, pairs)


def _send(database: DatabaseWriter, file: ByteFile) -> None:
    for at in range(0, file.size, PIECE_BYTES):
        database.add_frames(bytes(file.read(at, min(PIECE_BYTES, file.size - at))))
