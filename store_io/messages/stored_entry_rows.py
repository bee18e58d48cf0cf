"""What is on disk beside the messages, as Arrow batches: ConsumeQueue and index entries, and the byte ranges of segments.

Columns: `schemas.sources`. Unwritten entries, which are zeros, are left out. Memory is bounded by the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa

from schemas.arrow import arrow_schema
from schemas.layouts import consumequeue_layout as queue_layout
from schemas.layouts import index_layout
from schemas.layouts.entries import INDEX_DTYPE, KEYED_ENTRY_DTYPE, STORED_INDEX_DTYPE
from schemas.rows import MappedFile, QueueKey
from schemas.sources import SOURCES
from store_io.base.errors import StoreChanged, StoreError
from store_io.base.java.java_compat import MAX_LONG
from store_io.base.ranges import inside
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.log.entries.file_entries import entries_of, unit_bytes, valid_entries
from store_io.log.entries.index_entries import entry_position, read_header
from store_io.log.entries.queue_keys import entry_key, queue_prefix
from store_io.log.entries.queue_store import ExtUnits
from store_io.log.entries.queue_table import QueueTable, read_queue_table
from store_io.log.entries.stored_entries import BadBytes, QueueRows, by_queue, entry_parts
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.messages.message_filter import ALL, MessageFilter
from store_io.messages.open_store import QueueFiles
from store_io.messages.scans import EntryScan
from store_io.messages.served_queues import KeyedQueues, Keys
from store_io.source.byte_source import ByteSource, OpenFiles, open_source
from store_io.wording.gaps import gap_text

WINDOW_BYTES = 1 << 20
SCHEMAS = {name: arrow_schema(columns) for name, columns in SOURCES.items() if name != "messages"}


# ---- ConsumeQueues ---------------------------------------------------------------------------------------------------


def scan_queue_entries(scan: EntryScan, queue: QueueFiles, source: ByteSource | None = None) -> Iterator[pa.RecordBatch]:
    """Yield a queue's entries in the order of its files. Raises StoreError if a file cannot be read or has changed."""
    source = source or open_source(scan.location)
    unit = unit_bytes(queue.batch)
    with closing(OpenFiles(source)) as opened:
        ext = ExtUnits(queue.ext, opened.open)
        for file in queue.files:
            for at, data in data_windows(source, file, unit):
                entries = entries_of(data, queue.batch)
                bytes_used = np.frombuffer(data, np.uint8)[: len(entries) * unit].reshape(-1, unit).any(axis=1)
                keep = np.flatnonzero(bytes_used & inside(entries["phy_offset"], scan.phy_offsets))
                if len(keep):
                    yield _queue_batch(queue, file, at + keep * unit, entries[keep], ext)


def _queue_batch(
    queue: QueueFiles, file: MappedFile, positions: np.ndarray, entries: np.ndarray, ext: ExtUnits
) -> pa.RecordBatch:
    topic, queue_id = queue.key
    count = len(entries)
    status = np.where(valid_entries(entries), "valid", "invalid").astype(object)
    if queue.batch:
        kind = "batch"
        offsets, times = entries["base"], pa.array(entries["store_time"])
        counts = entries["count"].astype(np.int32)
    else:
        kind = _kind_of(topic)
        offsets, times = file.start // unit_bytes(False) + positions // unit_bytes(False), pa.nulls(count, pa.int64())
        counts = np.ones(count, np.int32)
        status[(entries["phy_offset"] == 0) & (entries["size"] == queue_layout.PRE_BLANK_SIZE)] = "pre_blank"
    ext_codes, ext_times = (pa.nulls(count, pa.int64()),) * 2 if queue.batch else _ext_columns(entries["tags_code"], ext)
    values = {
        "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
        "queue_id": pa.array(np.full(count, queue_id, np.int32)),
        "queue_offset": pa.array(np.ascontiguousarray(offsets)),
        "phy_offset": pa.array(np.ascontiguousarray(entries["phy_offset"])),
        "size": pa.array(np.ascontiguousarray(entries["size"])),
        "tags_code": pa.array(np.ascontiguousarray(entries["tags_code"])),
        "ext_tags_code": ext_codes,
        "ext_store_time_ms": ext_times,
        "store_time_ms": times,
        "message_count": pa.array(counts),
        "kind": pa.repeat(pa.scalar(kind, pa.string()), count),
        "status": pa.array(status, pa.string()),
        "file": pa.repeat(pa.scalar(file.path, pa.string()), count),
        "position": pa.array(positions.astype(np.int64)),
    }
    return pa.RecordBatch.from_arrays([values[name] for name in SCHEMAS["consumequeue"].names], schema=SCHEMAS["consumequeue"])


def _ext_columns(codes: np.ndarray, ext: ExtUnits) -> tuple[pa.Array, pa.Array]:
    """Return (tags codes, store times in ms) of the ext units to which these tags codes lead. A code without a unit has null."""
    found = np.zeros((2, len(codes)), np.int64)
    missing = np.ones(len(codes), bool)
    addresses = np.flatnonzero(codes <= queue_layout.EXT_ADDRESS_MAX)
    offsets = codes[addresses] - queue_layout.EXT_ADDRESS_BASE
    for i in np.argsort(offsets, kind="stable").tolist():  # ascending, for the units' read-ahead
        unit = ext.at(int(offsets[i]))
        if unit is not None:
            missing[addresses[i]], found[:, addresses[i]] = False, unit
    return pa.array(found[0], mask=missing), pa.array(found[1], mask=missing)


# ---- ConsumeQueues in RocksDB ---------------------------------------------------------------------------------------


def scan_keyed_entries(
    scan: EntryScan, queues: KeyedQueues, ranges: Sequence[Keys], wanted: MessageFilter, source: ByteSource | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of these queues with keys in the ranges. Bad bytes give a row for each queue that they may concern.

    Raises StoreError if the database cannot be opened, or not be read here.
    """
    source = source or open_source(scan.location)
    table: QueueTable | None = None
    with queues.database.open(source) as database:
        for first, end in ranges:
            for part in entry_parts(database, first, end):
                if isinstance(part, BadBytes):
                    table = table or read_queue_table(source, queues.database)
                    concerned = _concerned(table, part, end)
                    rows = [_unreadable(key, number, part) for key, number in concerned if _holds(wanted, queues, key)]
                    if rows:
                        yield pa.RecordBatch.from_pylist(rows, SCHEMAS["consumequeue"])
                    continue
                found = [rows for rows in by_queue(part) if rows.key is not None and _holds(wanted, queues, rows.key)]
                batch = _keyed_batch(found, queues.database.folder, scan) if found else None
                if batch:
                    yield batch


def _holds(wanted: MessageFilter, queues: KeyedQueues, key: QueueKey) -> bool:
    return wanted.holds_queue(*key) and (not queues.light or key[0].startswith(LMQ_PREFIX))


def _keyed_batch(found: Sequence[QueueRows], folder: str, scan: EntryScan) -> pa.RecordBatch:
    entries, whole = (np.concatenate([getattr(one, name) for one in found]) for name in ("rows", "whole"))
    entries = entries.astype(KEYED_ENTRY_DTYPE)
    keep = np.ones(len(entries), bool) if scan.phy_offsets == ALL else whole & inside(entries["phy_offset"], scan.phy_offsets)
    counts = [len(one.rows) for one in found]
    keys = [one.key for one in found if one.key is not None]
    kinds = [_kind_of(topic) for topic, _ in keys]
    topics, kind = (np.repeat(np.array(texts, object), counts)[keep] for texts in ([topic for topic, _ in keys], kinds))
    entries, whole, count = entries[keep], whole[keep], int(keep.sum())
    stored = {name: pa.array(np.ascontiguousarray(entries[name]), mask=~whole) for name in entries.dtype.names or ()}
    values = {
        "topic": pa.array(topics, pa.string()),
        "queue_id": pa.array(np.repeat(np.array([queue_id for _, queue_id in keys], np.int32), counts)[keep]),
        "queue_offset": pa.array(np.concatenate([one.numbers for one in found])[keep]),
        **{name: stored[name] for name in ("phy_offset", "size", "tags_code")},
        "store_time_ms": stored["store_time"],
        "kind": pa.array(kind, pa.string()),
        "status": pa.array(np.where(whole & valid_entries(entries), "valid", "invalid").astype(object), pa.string()),
        "file": pa.repeat(pa.scalar(folder, pa.string()), count),
    }
    schema = SCHEMAS["consumequeue"]
    columns = [values.get(f.name, pa.nulls(count, f.type)) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _kind_of(topic: str) -> str:
    return "lmq" if topic.startswith(LMQ_PREFIX) else "queue"


def _unreadable(key: QueueKey, number: int, bad: BadBytes) -> dict[str, object]:
    (topic, queue_id), kind = key, _kind_of(key[0])
    place = {"topic": topic, "queue_id": queue_id, "queue_offset": number, "kind": kind, "status": "unreadable", "file": bad.path}
    return {name: place.get(name) for name in SCHEMAS["consumequeue"].names}


def _concerned(table: QueueTable, bad: BadBytes, end: bytes | None) -> list[tuple[QueueKey, int]]:
    """Return the queues that may have entries in these bad bytes, by their ends, and their first number there."""
    found = []
    until = bad.until if bad.until is not None else end
    for key in sorted(table.queues):
        prefix, maximum, minimum = queue_prefix(key), table.ends.maxima.get(key), table.ends.minima.get(key)
        first = max(0, minimum.queue_offset) if minimum is not None else 0
        if bad.after.startswith(prefix) and len(bad.after) == len(entry_key(prefix, 0)):
            first = int.from_bytes(bad.after[len(prefix) :], "big", signed=True) + 1
        last = maximum.queue_offset if maximum is not None else MAX_LONG
        if 0 <= first <= last and bad.after < entry_key(prefix, last) and (until is None or entry_key(prefix, first) < until):
            found.append((key, first))
    return found


# ---- index files -----------------------------------------------------------------------------------------------------


def scan_index_entries(scan: EntryScan, file: MappedFile, source: ByteSource | None = None) -> Iterator[pa.RecordBatch]:
    """Yield an index file's entries by number. Raises StoreError if it cannot be read or has changed."""
    source = source or open_source(scan.location)
    slots = scan.rules.index_slots
    header = read_header(source, file.path)
    first = entry_position(slots, 1)
    unit, schema = index_layout.ENTRY_BYTES, SCHEMAS["index"]
    for at, data in data_windows(source, file, unit, first):
        count = len(data) // unit
        entries = np.frombuffer(data, STORED_INDEX_DTYPE, count=count).astype(INDEX_DTYPE)
        numbers = (at - first) // unit + 1 + np.arange(count)
        used = np.frombuffer(data, np.uint8)[: count * unit].reshape(-1, unit).any(axis=1)
        keep = used & inside(entries["phy_offset"], scan.phy_offsets)
        entries, numbers = entries[keep], numbers[keep]
        if not len(entries):
            continue
        begin = header.begin_timestamp
        with np.errstate(over="ignore"):
            times = begin + entries["time_difference"].astype(np.int64) * 1000
        values = {
            "file": pa.repeat(pa.scalar(file.path, pa.string()), len(entries)),
            "number": pa.array(numbers.astype(np.int32)),
            "key_hash": pa.array(np.ascontiguousarray(entries["key_hash"])),
            "phy_offset": pa.array(np.ascontiguousarray(entries["phy_offset"])),
            "time_difference_s": pa.array(np.ascontiguousarray(entries["time_difference"])),
            "store_time_ms": pa.array(times, mask=np.full(len(times), begin <= 0)),
            "previous": pa.array(np.ascontiguousarray(entries["previous"])),
            "slot": pa.array((entries["key_hash"] % slots).astype(np.int32)),
            "status": pa.array(np.where(numbers < header.index_count, "counted", "beyond_count").astype(object), pa.string()),
            "position": pa.array(entry_position(slots, 0) + numbers.astype(np.int64) * unit),
        }
        yield pa.RecordBatch.from_arrays([values[name] for name in schema.names], schema=schema)


# ---- segments --------------------------------------------------------------------------------------------------------


def scan_extents(scan: EntryScan, file: MappedFile) -> Iterator[pa.RecordBatch]:
    """Yield the kind of each byte range of a segment, ascending; the ranges tile the file. Raises StoreError as above."""
    task = SegmentTask(0, file.path, file.start, file.size, scan.location, scan.rules, probe=False, digest=False)
    summary = scan_segment(task)
    if summary.problem:
        raise StoreError(gap_text(summary.problem))
    rows = [
        {
            "file": file.path,
            "start": e.start,
            "end": e.end,
            "phy_offset": file.start + e.start,
            "size_bytes": e.end - e.start,
            "kind": e.kind,
            "message_count": e.message_count,
            "plausible": e.plausible,
            "reason": e.reason or None,
        }
        for e in summary.extents
    ]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, SCHEMAS["extents"])


def data_windows(source: ByteSource, file: MappedFile, unit: int, first: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of a file's content from `first` on, in whole units of windows.

    Holes of a sparse file are left out.
    """
    window = WINDOW_BYTES // unit * unit
    with source.open(file.path) as stream:
        if stream.size != file.size:
            raise StoreChanged.in_size(file.path, stream.size, file.size)
        at = first
        while at + unit <= file.size:
            data_at = stream.next_data(at)
            if data_at - at >= unit:
                at += (data_at - at) // unit * unit
                continue
            yield at, stream.read(at, min(window, (file.size - at) // unit * unit))
            at += window
