"""Keeps what an audit's scan has met in a segment, beside the new store.

So a rebuild need not read the segment once more. The rows have the form in which a rebuild takes them: queue entries
(`QUEUED_DTYPE`), queue by queue, and raw index entries, in the order of the log. They hold as long as the audit itself does: a
change of the log leads to another audit. Compiled code goes from row to row by address: NumPy's copies of single fields took
longer than decoding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from schemas import rows as rows_module
from schemas.layouts import commitlog_layout
from schemas.rows import RUN_UNQUEUED, QueueKey, SegmentSummary
from store_io.base.compiled import native
from store_io.base.compiled.native import Address, kept, peek_i32, peek_i64, poke_i32, poke_i64
from store_io.log.records import message_columns
from store_io.log.records import segment_items as item
from store_io.log.records.message_columns import HAS_TAGS, Columns
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.repair.writing.store_writer import StoreFileWriter, StoreWriter, WriteFailed

WAITING_ROWS = 1 << 18  # entries that are sorted by queue together: 15 MB, and as much in order

QUEUED_DTYPE = np.dtype(
    [
        ("topic_ref", "i4"), ("total_size", "i4"), ("queue_offset", "i8"), ("phy_offset", "i8"), ("tags_code", "i8"),
        ("store_time", "i8"), ("batch_base", "i8"), ("batch_count", "i4"), ("kind", "i4"),
    ],
    align=True,
)  # fmt: skip

RAW_DTYPE = np.dtype([("key_hash", "i4"), ("phy_offset", "i8"), ("store_time", "i8")])  # of the size of an index entry
_QUEUED = QUEUED_DTYPE.itemsize

_REF, _SIZE, _QUEUE_OFFSET, _PHY, _TAGS, _TIME, _BASE, _COUNT, _KIND = (
    int(QUEUED_DTYPE.fields[name][1]) for name in QUEUED_DTYPE.names or () if QUEUED_DTYPE.fields
)

_RAW = RAW_DTYPE.itemsize
_RAW_PHY, _RAW_TIME = 4, 12


class QueuedRows:
    """Rows (QUEUED_DTYPE) that wait for their entries to be written."""

    def __init__(self) -> None:
        self._rows = self._ordered = np.empty(0, QUEUED_DTYPE)
        self.count = 0

    def add(self, items: np.ndarray, kinds: np.ndarray) -> None:
        """Keep those of these items (ROW_DTYPE) that are in a queue. There is room for WAITING_ROWS at least."""
        if self.count + len(items) > len(self._rows):
            larger = np.empty(max(WAITING_ROWS, self.count + len(items)), QUEUED_DTYPE)
            larger[: self.count] = self._rows[: self.count]
            self._rows = larger
        self.count = _take(np.ascontiguousarray(items), kinds, self._rows, self.count)

    def room_for(self, count: int) -> np.ndarray:
        """Return room for so many rows in place of all that wait. What the caller puts there waits then."""
        if count > len(self._rows):
            self._rows = np.empty(max(WAITING_ROWS, count), QUEUED_DTYPE)
        self.count = count
        return self._rows[:count]

    def as_met(self) -> np.ndarray:
        """Return the rows in the order of the log, and nothing waits any more. They are good until the next call."""
        count, self.count = self.count, 0
        return self._rows[:count]

    def in_order(self, keys: Sequence[QueueKey]) -> tuple[np.ndarray, list[int]]:
        """Return (the rows queue by queue, the end of each queue's rows); nothing waits any more.

        Rows of a queue are in their own order. The rows are good until the next call.
        """
        if len(self._ordered) < self.count:
            self._ordered = np.empty(len(self._rows), QUEUED_DTYPE)
        ordered, ends = self._ordered[: self.count], np.zeros(len(keys), np.int64)
        _order(self._rows, self.count, ends, ordered)
        self.count = 0
        return ordered, ends.tolist()


def raw_index_entries(columns: Columns, tag_index: bool) -> np.ndarray:
    """Return the index entries of these messages as RAW_DTYPE, in the order of dispatch.

    tag_index: whether the release puts tags.
    """
    raw = np.empty(columns.key_hash_count, RAW_DTYPE)
    return raw[: _put_keys(columns.row_bytes, columns.count, int(tag_index), columns.key_hash, raw)]


@kept(rows_module, message_columns, item, native)
def _take(rows: Address, kinds, waiting: Address, used):  # type: ignore[no-untyped-def]
    """Copy what is kept of the rows to `waiting`, after `used` rows there; how many these are then."""
    for i in range(len(kinds)):
        if kinds[i] == RUN_UNQUEUED:
            continue
        row, to = rows + i * item.ROW, waiting + used * _QUEUED
        poke_i32(to + _REF, peek_i32(row + item.TOPIC_REF))
        poke_i32(to + _SIZE, peek_i32(row + item.TOTAL_SIZE))
        poke_i64(to + _QUEUE_OFFSET, peek_i64(row + item.QUEUE_OFFSET))
        poke_i64(to + _PHY, peek_i64(row + item.PHY_OFFSET))
        poke_i64(to + _TAGS, peek_i64(row + item.TAGS_CODE))
        poke_i64(to + _TIME, peek_i64(row + item.STORE_TIME))
        poke_i64(to + _BASE, peek_i64(row + item.BATCH_BASE))
        poke_i32(to + _COUNT, peek_i32(row + item.BATCH_COUNT))
        poke_i32(to + _KIND, np.int64(kinds[i]))
        used += 1
    return used


@kept(native)
def _order(rows: Address, count, ends, ordered: Address):  # type: ignore[no-untyped-def]
    """Copy the rows in the order of their queues.

    ends: gets the end of each queue's rows.
    """
    for i in range(count):
        ends[peek_i32(rows + i * _QUEUED + _REF)] += 1
    at = np.int64(0)
    for queue in range(len(ends)):
        many = ends[queue]
        ends[queue] = at
        at += many
    for i in range(count):
        row = rows + i * _QUEUED
        queue = peek_i32(row + _REF)
        to = ordered + ends[queue] * _QUEUED
        for word in range(0, _QUEUED, 8):
            poke_i64(to + word, peek_i64(row + word))
        ends[queue] += 1


@kept(commitlog_layout, message_columns, item, native)
def _put_keys(rows: Address, count, tag_index, hashes: Address, raw: Address):  # type: ignore[no-untyped-def]
    """Write the rows' index entries to `raw`; how many these are. Which a message has: recovery.md 8.2."""
    used = np.int64(0)
    for i in range(count):
        row = rows + i * item.ROW
        keys = peek_i32(row + item.KEY_COUNT)
        if tag_index and peek_i32(row + item.FLAGS) & HAS_TAGS:
            if peek_i32(row + item.SYS_FLAG) & commitlog_layout.SYS_TRANSACTION_MASK != commitlog_layout.SYS_ROLLBACK:
                keys += 1
        start = hashes + 4 * peek_i32(row + item.KEY_START)
        for key in range(keys):
            to = raw + used * _RAW
            poke_i32(to, peek_i32(start + 4 * key))
            poke_i64(to + _RAW_PHY, peek_i64(row + item.PHY_OFFSET))
            poke_i64(to + _RAW_TIME, peek_i64(row + item.STORE_TIME))
            used += 1
    return used


@dataclass(frozen=True)
class KeptRows:
    """Two files of `writer` with the rows of one segment.

    rows: the number of queue entries in the first file.
    queues: by their number in these rows.
    keys: the number of index entries in the second file.
    """

    writer: StoreWriter
    path: str
    rows: int
    queues: Sequence[QueueKey]
    keys_path: str
    keys: int


@dataclass(frozen=True)
class KeptScan:
    """A scan's summary and its kept rows; None if they could not be written, or the scan has failed."""

    summary: SegmentSummary
    kept: KeptRows | None


@dataclass(frozen=True, kw_only=True)
class KeepingTask(SegmentTask):
    """A whole scan that keeps its rows. aside: the writer of their files.  folder: the folder of these files."""

    aside: StoreWriter
    folder: str

    @classmethod
    def of(cls, task: SegmentTask, aside: StoreWriter, folder: str) -> KeepingTask:
        """Return the same scan as one that keeps its rows."""
        return cls(**{field.name: getattr(task, field.name) for field in fields(task)}, aside=aside, folder=folder)

    def run(self) -> KeptScan:  # type: ignore[override]
        sink = _Keeping(self)
        try:
            summary = scan_segment(self, sink=sink)
            return KeptScan(summary, sink.finished() if not summary.problem else None)
        finally:
            sink.close()


class _Keeping:
    """A `dataset_rows.DatasetSink` that writes the rows.

    A disk without room ends the keeping and not the audit. More bytes than the segment has do the same: room is looked for only
    once.
    """

    want_keys = True

    def __init__(self, task: KeepingTask):
        self._task, self._waiting = task, QueuedRows()
        self._paths = [f"{task.folder}/{task.path}.{what}" for what in ("rows", "keys")]
        self._files: list[StoreFileWriter] = []
        self._counts, self._room = [0, 0], task.size
        self._queues: Sequence[QueueKey] = ()
        self._going = True
        try:
            for path in self._paths:
                task.aside.create(path, 0)
                self._files.append(task.aside.open(path))
        except WriteFailed:
            self._going = False

    def close(self) -> None:
        for file in self._files:
            try:
                file.close()
            except WriteFailed:
                self._going = False

    def add(self, scanned: ScannedRows) -> None:
        if self._going:
            if self._waiting.count + len(scanned.items) > WAITING_ROWS:
                self._put(0, self._waiting.as_met())
            self._waiting.add(scanned.items, scanned.kinds)
            self._queues = scanned.keys
            self._put(1, raw_index_entries(scanned.columns, self._task.rules.tag_index))

    def finished(self) -> KeptRows | None:
        """Return the kept rows once the scan has ended."""
        self._put(0, self._waiting.as_met())
        self.close()
        if not self._going:
            with contextlib.suppress(WriteFailed):  # the room that they take is needed
                for path in self._paths:
                    self._task.aside.remove(path)
            return None
        (path, keys_path), (rows, keys) = self._paths, self._counts
        return KeptRows(self._task.aside, path, rows, tuple(self._queues), keys_path, keys)

    def _put(self, number: int, entries: np.ndarray) -> None:
        self._room -= entries.nbytes
        if not self._going or self._room < 0:
            self._going = False
            return
        try:
            self._files[number].write(self._counts[number] * entries.itemsize, entries.view(np.uint8))
        except WriteFailed:
            self._going = False
        self._counts[number] += len(entries)
