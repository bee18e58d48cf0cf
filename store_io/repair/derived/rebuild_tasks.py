"""Writes queue and index entries straight from the scan of a segment.

A `BuildTask` reads one segment of the new store and writes the entries of its messages to where they belong: their places are
known before, so that all segments can be done at once. An index entry is written raw (`index_rebuild` links it), and so are
entries of a database (`database_task`), which may have the same queues as the files.
Source: ConsumeQueue.putMessagePositionInfo, BatchConsumeQueue.putBatchMessagePositionInfo.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schemas.layouts.entries import STORED_BATCH_DTYPE, STORED_ENTRY_DTYPE, STORED_KEYED_ENTRY_DTYPE
from schemas.rows import WALK_AUDIT, QueueKey, SegmentSummary
from store_io.base.errors import StoreChanged, StoreError
from store_io.base.tasks import OfScan
from store_io.log.entries.index_entries import entry_position
from store_io.log.records.segment_items import KIND_BATCH
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.repair.derived.kept_rows import RAW_DTYPE, WAITING_ROWS, KeptRows, QueuedRows, raw_index_entries
from store_io.repair.derived.queue_plan import QueueBuild, Shift
from store_io.repair.writing.store_writer import StoreFileWriter, StoreWriter
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import open_source
from store_io.wording.gaps import gap_text

OPEN_FILES = 256


RAW_ENTRY_DTYPE = np.dtype([("queue", "<i4"), ("number", "<i8"), *STORED_KEYED_ENTRY_DTYPE.descr])


class RawQueue(NamedTuple):
    """A queue of the database: its number among them, and its messages that are not at their own queue offset."""

    number: int
    shifts: tuple[Shift, ...]


@dataclass(frozen=True)
class RawEntries:
    """The target of a segment's entries of a database, in the order of the log.

    path: a file that goes when the database is written.
    first: the number of the first entry.
    """

    path: str
    first: int
    queues: Mapping[QueueKey, RawQueue]


@dataclass(frozen=True)
class RawFile:
    """The file in which the entries of a database wait.

    firsts: the number of the first entry of each segment.
    """

    path: str
    firsts: tuple[int, ...]
    queues: Mapping[QueueKey, RawQueue]

    def of_segment(self, number: int, keys: Iterable[QueueKey]) -> RawEntries:
        """Return the part that the task of that segment needs. keys: its queues."""
        return RawEntries(self.path, self.firsts[number], {key: self.queues[key] for key in keys if key in self.queues})


@dataclass(frozen=True)
class Built:
    """The counts of a task's output.

    keys: index entries.
    entries: those of a database.
    """

    keys: int
    entries: int


@dataclass(frozen=True)
class BuildTask(OfScan):
    """The entries of one segment's messages.

    queues: those in files.
    index_paths: the new index files in order, none where no index is built.
    first_key: number (from 1) of its first index entry.
    raw: of queues in a database.
    """

    scan: SegmentTask
    writer: StoreWriter
    queues: Mapping[QueueKey, QueueBuild]
    index_paths: tuple[str, ...] = ()
    first_key: int = 1
    raw: RawEntries | None = None
    kept: KeptRows | None = None

    store: int = 0
    not_after: float = 0

    def run(self) -> Built:
        """Write them. Raises StoreError."""
        sink = _Sink(self)
        try:
            if self.kept is not None:
                sink.take(self.kept)
            else:
                summary = scan_segment(self.scan, sink=sink)
                sink.flush()
                if summary.problem:
                    raise StoreError(gap_text(summary.problem))
        finally:
            sink.close()
        return Built(sink.keys, sink.entries)


class _Sink:
    """A `dataset_rows.DatasetSink` that writes entries instead of rows."""

    def __init__(self, task: BuildTask):
        self.task = task
        self.want_keys, self._want_queues = bool(task.index_paths), bool(task.queues or task.raw is not None and task.raw.queues)
        self.keys = self.entries = 0
        self._open: OrderedDict[str, StoreFileWriter] = OrderedDict()
        self._next_batch: dict[QueueKey, int] = {}
        self._waiting = QueuedRows()
        self._keys: Sequence[QueueKey] = ()

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _file(self, path: str) -> StoreFileWriter:
        file = self._open.pop(path, None)
        if file is None:
            if len(self._open) >= OPEN_FILES:
                self._open.popitem(last=False)[1].close()
            file = self.task.writer.open(path)
        self._open[path] = file
        return file

    def add(self, scanned: ScannedRows) -> None:
        if self._want_queues:
            if self._waiting.count + len(scanned.items) > WAITING_ROWS:
                self.flush()
            self._waiting.add(scanned.items, scanned.kinds)
            self._keys = scanned.keys
        if self.want_keys:
            self._put_keys(raw_index_entries(scanned.columns, self.task.scan.rules.tag_index))

    def take(self, kept: KeptRows) -> None:
        """Take in all that an earlier scan has kept. Raises StoreError."""
        source, self._keys = open_source(kept.writer.location), kept.queues
        if self._want_queues:
            with source.open(kept.path) as file:
                for at in range(0, kept.rows, WAITING_ROWS):
                    rows = self._waiting.room_for(min(WAITING_ROWS, kept.rows - at))
                    _fill(rows, file, at)
                    self.flush()
        if self.want_keys:
            raw = np.empty(min(WAITING_ROWS, kept.keys), RAW_DTYPE)
            with source.open(kept.keys_path) as file:
                for at in range(0, kept.keys, WAITING_ROWS):
                    part = raw[: min(WAITING_ROWS, kept.keys - at)]
                    _fill(part, file, at)
                    self._put_keys(part)

    def flush(self) -> None:
        """Write what waits, queue by queue."""
        if not self._waiting.count:
            return
        rows, ends = self._waiting.in_order(self._keys)
        low, raw = 0, self.task.raw
        for key, high in zip(self._keys, ends, strict=True):
            if low < high and key in self.task.queues:
                self._put_queue(self.task.queues[key], key, rows[low:high])
            if low < high and raw is not None and key in raw.queues:
                self._put_raw(raw, raw.queues[key], rows[low:high])
            low = high

    def _put_queue(self, build: QueueBuild, key: QueueKey, rows: np.ndarray) -> None:
        rows, places = _placed(build.shifts, rows)
        if build.batch_start >= 0:
            good = (rows["kind"] == KIND_BATCH) & (rows["batch_base"] >= 0) & (rows["batch_count"] > 0)
            rows = rows[good]
            first = self._next_batch.get(key, build.batch_start)
            places = np.arange(first, first + len(rows), dtype=np.int64)
            self._next_batch[key] = first + len(rows)
            entries = np.zeros(len(rows), STORED_BATCH_DTYPE)
            entries["store_time"], entries["base"] = rows["store_time"], rows["batch_base"]
            entries["count"], entries["compacted"] = rows["batch_count"], -1
        else:
            entries = np.zeros(len(rows), STORED_ENTRY_DTYPE)
        entries["phy_offset"], entries["size"], entries["tags_code"] = rows["phy_offset"], rows["total_size"], rows["tags_code"]
        per_file = build.file_bytes // entries.itemsize
        edges = (np.flatnonzero((np.diff(places) != 1) | (places[1:] % per_file == 0)) + 1).tolist() if len(places) else []
        for low, high in zip([0, *edges], [*edges, len(places)], strict=True):
            if low < high:
                number, at = divmod(int(places[low]), per_file)
                path = f"{build.folder}/{number * build.file_bytes:020d}"
                self._file(path).write(at * entries.itemsize, entries[low:high].view(np.uint8))

    def _put_raw(self, raw: RawEntries, queue: RawQueue, rows: np.ndarray) -> None:
        rows, places = _placed(queue.shifts, rows)
        entries = np.empty(len(rows), RAW_ENTRY_DTYPE)
        entries["queue"], entries["number"], entries["size"] = queue.number, places, rows["total_size"]
        for name in ("phy_offset", "tags_code", "store_time"):
            entries[name] = rows[name]
        self._file(raw.path).write((raw.first + self.entries) * RAW_ENTRY_DTYPE.itemsize, entries.view(np.uint8))
        self.entries += len(entries)

    def _put_keys(self, raw: np.ndarray) -> None:
        rules = self.task.scan.rules
        capacity, done = rules.index_max - 1, 0
        while done < len(raw):
            number, entry = divmod(self.task.first_key + self.keys - 1, capacity)
            part = raw[done : done + capacity - entry]
            self._file(self.task.index_paths[number]).write(entry_position(rules.index_slots, entry + 1), part.view(np.uint8))
            self.keys += len(part)
            done += len(part)


def keys_of(segment: SegmentSummary) -> int:
    """Return how many index entries the segment's messages have."""
    runs = segment.index_runs[segment.index_runs["walk"] & WALK_AUDIT != 0]
    return int(runs["keys"].sum()) if len(runs) else 0


def _fill(entries: np.ndarray, file: ByteFile, first: int) -> None:
    """Read entries from number `first` of the file on."""
    if file.read_into(first * entries.itemsize, entries.view(np.uint8)) != entries.nbytes:
        raise StoreChanged(f"{file.path}: ended at {file.size} bytes while it was read")


def _placed(shifts: Sequence[Shift], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (rows that get an entry, its number)."""
    if not shifts:
        return rows, rows["queue_offset"]
    places = rows["queue_offset"].copy()
    wanted = np.ones(len(rows), bool)
    for shift in shifts:
        met = (rows["phy_offset"] >= shift.first) & (rows["phy_offset"] <= shift.last)
        if shift.shift is None:
            wanted &= ~met
        else:
            places[met] += shift.shift
    return rows[wanted], places[wanted]
