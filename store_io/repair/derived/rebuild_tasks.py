"""Queue and index entries written straight from the scan of a segment, and index files linked into chains afterwards.

A `BuildTask` reads one segment of the new store and writes the entries of its messages to where they belong: their places are
known before, so that all segments can be done at once. An index entry is written raw first (hash, physical offset, store time);
a `LinkTask` goes through one index file in order, makes the chains of its slots, and writes slots and header.
Source: ConsumeQueue.putMessagePositionInfo, BatchConsumeQueue.putBatchMessagePositionInfo, IndexFile.putKey, IndexHeader.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from schemas import commitlog_layout, consumequeue_layout, index_layout
from schemas.rows import RUN_UNQUEUED, QueueKey
from store_io.base.errors import StoreError
from store_io.formats.commitlog.message_columns import HAS_TAGS, Columns
from store_io.formats.commitlog.segment_items import KIND_BATCH
from store_io.repair.derived.queue_plan import Shift
from store_io.repair.writing.writer import FileWriter, Writer
from store_io.rules.releases import BrokerRules
from store_io.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

OPEN_FILES = 256
WAITING_ROWS = 1 << 18  # entries that are sorted by queue together: 10 MB
LINK_ENTRIES = 1 << 18
SLOT_BLOCK = 1 << 18
_ENTRY = np.dtype([("phy_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_BATCH = np.dtype(
    [
        ("phy_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8"), ("store_time", ">i8"), ("base", ">i8"), ("count", ">i2"),
        ("compacted", ">i4"), ("reserved", ">i4"),
    ]
)  # fmt: skip
_ITEM = np.dtype(
    [
        ("topic_ref", "i4"), ("total_size", "i4"), ("queue_offset", "i8"), ("phy_offset", "i8"), ("tags_code", "i8"),
        ("store_time", "i8"), ("batch_base", "i8"), ("batch_count", "i4"), ("kind", "u1"),
    ]
)  # fmt: skip
_RAW = np.dtype([("key_hash", ">i4"), ("phy_offset", ">i8"), ("store_time", ">i8")])
_INDEX = np.dtype([("key_hash", ">i4"), ("phy_offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])


@dataclass(frozen=True)
class QueueBuild:
    """Where a segment's messages of one queue go. shifts: those that do not stand at their own queue offset.
    batch_start: entry number of the segment's first message of a BatchConsumeQueue, -1 for an ordinary queue."""

    folder: str
    file_bytes: int
    shifts: tuple[Shift, ...] = ()
    batch_start: int = -1


@dataclass(frozen=True)
class BuildTask:
    """The entries of one segment's messages. first_key: number (from 1) of its first index entry; index_paths: the new index
    files in order, none where no index is built."""

    scan: SegmentTask
    writer: Writer
    queues: Mapping[QueueKey, QueueBuild]
    index_paths: tuple[str, ...] = ()
    first_key: int = 1

    store: int = 0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.scan.size

    @property
    def paths(self) -> tuple[str, ...]:
        return self.scan.paths

    def run(self) -> BuildResult:
        """Write them. Raises StoreError."""
        sink = _Sink(self)
        try:
            summary = scan_segment(self.scan, sink=sink)
            sink.flush()
        finally:
            sink.close()
        if summary.problem:
            raise StoreError(summary.problem)
        return BuildResult(sink.entries, sink.keys)


@dataclass(frozen=True)
class BuildResult:
    """How many queue entries and index entries were written."""

    entries: int
    keys: int


class _Sink:
    """A `dataset_rows.DatasetSink` that writes entries instead of rows."""

    def __init__(self, task: BuildTask):
        self.task = task
        self.want_keys = bool(task.index_paths)
        self.entries = self.keys = 0
        self._open: OrderedDict[str, FileWriter] = OrderedDict()
        self._next_batch: dict[QueueKey, int] = {}
        self._waiting: list[np.ndarray] = []
        self._waiting_rows = 0
        self._keys: Sequence[QueueKey] = ()
        rules = task.scan.rules
        self._capacity = rules.index_max - 1
        self._table = index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * rules.index_slots

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _file(self, path: str) -> FileWriter:
        file = self._open.pop(path, None)
        if file is None:
            if len(self._open) >= OPEN_FILES:
                self._open.popitem(last=False)[1].close()
            file = self.task.writer.open(path)
        self._open[path] = file
        return file

    def add(
        self,
        columns: Columns,
        items: np.ndarray,
        kinds: np.ndarray,
        keys: Sequence[QueueKey],
        window: SegmentWindow,
        plausible: bool,
    ) -> None:
        if self.task.queues:
            self._wait(items, kinds)
            self._keys = keys
            if self._waiting_rows >= WAITING_ROWS:
                self.flush()
        if self.want_keys:
            self._put_keys(columns)

    def _wait(self, items: np.ndarray, kinds: np.ndarray) -> None:
        wanted = np.flatnonzero(kinds != RUN_UNQUEUED)
        kept = np.empty(len(wanted), _ITEM)
        for name in _ITEM.names or ():
            kept[name] = (kinds if name == "kind" else items[name])[wanted]
        self._waiting.append(kept)
        self._waiting_rows += len(kept)

    def flush(self) -> None:
        """Write what waits, queue by queue."""
        if not self._waiting_rows:
            return
        rows = np.concatenate(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        rows = rows[np.argsort(rows["topic_ref"], kind="stable")]
        edges = (np.flatnonzero(np.diff(rows["topic_ref"])) + 1).tolist()
        for low, high in zip([0, *edges], [*edges, len(rows)], strict=True):
            key = self._keys[int(rows["topic_ref"][low])]
            build = self.task.queues.get(key)
            if build is not None:
                self._put_queue(build, key, rows[low:high])

    def _put_queue(self, build: QueueBuild, key: QueueKey, rows: np.ndarray) -> None:
        if build.batch_start >= 0:
            good = (rows["kind"] == KIND_BATCH) & (rows["batch_base"] >= 0) & (rows["batch_count"] > 0)
            rows = rows[good]
            first = self._next_batch.get(key, build.batch_start)
            places = np.arange(first, first + len(rows), dtype=np.int64)
            self._next_batch[key] = first + len(rows)
            entries = np.zeros(len(rows), _BATCH)
            entries["store_time"], entries["base"] = rows["store_time"], rows["batch_base"]
            entries["count"], entries["compacted"] = rows["batch_count"], -1
        else:
            places = rows["queue_offset"].copy()
            wanted = np.ones(len(rows), bool)
            for shift in build.shifts:
                met = (rows["phy_offset"] >= shift.first) & (rows["phy_offset"] <= shift.last)
                if shift.shift is None:
                    wanted &= ~met
                else:
                    places[met] += shift.shift
            rows, places = rows[wanted], places[wanted]
            entries = np.zeros(len(rows), _ENTRY)
        entries["phy_offset"], entries["size"], entries["tags_code"] = rows["phy_offset"], rows["total_size"], rows["tags_code"]
        self.entries += len(entries)
        per_file = build.file_bytes // entries.itemsize
        edges = (np.flatnonzero((np.diff(places) != 1) | (places[1:] % per_file == 0)) + 1).tolist() if len(places) else []
        for low, high in zip([0, *edges], [*edges, len(places)], strict=True):
            if low < high:
                number, at = divmod(int(places[low]), per_file)
                path = f"{build.folder}/{number * build.file_bytes:020d}"
                self._file(path).write(at * entries.itemsize, entries[low:high].view(np.uint8))

    def _put_keys(self, columns: Columns) -> None:
        rows = columns.rows[: columns.count]
        tagged = (rows["flags"] & HAS_TAGS != 0) & (
            rows["sys_flag"] & commitlog_layout.SYS_TRANSACTION_MASK != commitlog_layout.SYS_ROLLBACK
        )
        counts = rows["key_count"] + (tagged & self.task.scan.rules.tag_index)
        total = int(counts.sum())
        if not total:
            return
        of = np.repeat(np.arange(len(rows)), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        raw = np.empty(total, _RAW)
        raw["key_hash"] = columns.key_hash[rows["key_start"][of] + within]
        raw["phy_offset"], raw["store_time"] = rows["phy_offset"][of], rows["store_time"][of]
        done = 0
        while done < total:
            number = self.task.first_key + self.keys - 1
            file, entry = divmod(number, self._capacity)
            count = min(total - done, self._capacity - entry)
            position = self._table + index_layout.ENTRY_BYTES * (entry + 1)
            self._file(self.task.index_paths[file]).write(position, raw[done : done + count].view(np.uint8))
            self.keys += count
            done += count


# ---- index files -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkTask:
    """One new index file whose entries stand in it raw.

    count: how many.  previous_end_time: of the file before, 0 for the first."""

    writer: Writer
    rules: BrokerRules
    path: str
    count: int
    previous_end_time: int

    store: int = 0
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return index_layout.ENTRY_BYTES * self.count

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def run(self) -> None:
        """Make the chains. Raises StoreError."""
        slots = np.zeros(self.rules.index_slots, np.int32)
        table = index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * len(slots) + index_layout.ENTRY_BYTES
        source = open_source(StoreLocation(self.writer.root))
        used, begin = 0, self.previous_end_time
        first: np.ndarray | None = None
        last: np.ndarray | None = None
        with source.open(self.path) as file, self.writer.open(self.path) as out:
            for at in range(0, self.count, LINK_ENTRIES):
                many = min(LINK_ENTRIES, self.count - at)
                position = table + index_layout.ENTRY_BYTES * at
                raw = np.frombuffer(file.read(position, many * index_layout.ENTRY_BYTES), _RAW)
                hashes, times = raw["key_hash"].astype(np.int32), raw["store_time"].astype(np.int64)
                seconds, previous = np.empty(many, np.int32), np.empty(many, np.int32)
                used += _link(hashes, times, slots, at + 1, begin, int(times[0]) if at == 0 else begin, seconds, previous)
                linked = np.empty(many, _INDEX)
                linked["key_hash"], linked["phy_offset"] = hashes, raw["phy_offset"]
                linked["seconds"], linked["previous"] = seconds, previous
                if first is None:
                    first, begin = raw[0].copy(), int(times[0])
                last = raw[-1].copy()
                out.write(position, linked.view(np.uint8))
            assert first is not None and last is not None
            for at in range(0, len(slots), SLOT_BLOCK):
                block = slots[at : at + SLOT_BLOCK]
                if block.any():
                    out.write(index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * at, block.astype(">i4").view(np.uint8))
            header = struct.pack(
                index_layout.HEADER_FORMAT, int(first["store_time"]), int(last["store_time"]), int(first["phy_offset"]),
                int(last["phy_offset"]), used, self.count + 1,
            )  # fmt: skip
            out.write(0, header)


@njit(cache=True, nogil=True)
def _link(hashes, times, slots, number, first_begin, begin, seconds, previous):  # type: ignore[no-untyped-def]
    """Chain entries from `number` on; how many slots came into use. first_begin: what entry 1's time counts from."""
    used = 0
    for i in range(len(hashes)):
        slot = hashes[i] % len(slots)
        before = slots[slot]
        if before == 0:
            used += 1
        previous[i] = before
        slots[slot] = number + i
        origin = first_begin if number + i == 1 else begin
        difference = times[i] - origin
        count = difference // 1000 if difference >= 0 else 0
        if origin <= 0:
            count = 0
        seconds[i] = min(count, 2147483647)
    return used


def last_store_time(root: str, rules: BrokerRules, path: str, number: int) -> int:
    """Store time of a raw entry, by its number in its file."""
    position = index_layout.HEADER_BYTES + index_layout.SLOT_BYTES * rules.index_slots + index_layout.ENTRY_BYTES * number
    with open_source(StoreLocation(root)).open(path) as file:
        return int(np.frombuffer(file.read(position, index_layout.ENTRY_BYTES), _RAW)["store_time"][0])


def fill_entries(writer: Writer, folder: str, file_bytes: int, first: int, end: int, entry: bytes) -> None:
    """Write one entry to every place [first, end) of an ordinary queue."""
    unit = consumequeue_layout.ENTRY_BYTES
    per_file = file_bytes // unit
    at = first
    while at < end:
        number, place = divmod(at, per_file)
        count = min(end - at, per_file - place, 1 << 16)
        writer.write(f"{folder}/{number * file_bytes:020d}", place * unit, entry * count)
        at += count
