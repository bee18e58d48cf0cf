"""Decoded rows -> Arrow batches of the record-level datasets: messages, and the ConsumeQueue and index entries they make.

Source of the entries: ConsumeQueue.putMessagePositionInfo, BatchConsumeQueue.putBatchMessagePositionInfo,
IndexService.buildIndex.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from schemas.arrow import DATASET_SCHEMAS
from schemas.rows import RUN_LMQ, RUN_UNQUEUED, QueueKey
from schemas.tables import DATASETS
from store_io.base.compiled.native import kept
from store_io.base.times import timestamps
from store_io.log.records import message_columns
from store_io.log.records.message_columns import HAS_KEYS, HAS_UNIQ, Columns, entry_counts, puts_tag_key
from store_io.log.records.segment_items import KIND_BATCH
from store_io.log.scan.row_texts import gather_texts, part_texts, properties_of, queue_ids, topic_texts
from store_io.source.segment_window import SegmentWindow

_UNIQUE, _KEY, _TAG = 0, 1, 2
_INDEX_KINDS = ["unique", "key", "tag"]  # an Arrow array made at import would import pandas, half a second for every process
_QUEUE_KINDS = ["queue", "batch", "lmq"]


class ScannedRows(NamedTuple):
    """One batch of messages that the audit's walk accepts.

    columns: the messages.
    items, kinds: the rows by dispatch, with a further row for each multi-dispatch queue of a message.
    keys: (topic, queue id) by topic_ref.
    """

    columns: Columns
    items: np.ndarray
    kinds: np.ndarray
    keys: Sequence[QueueKey]
    window: SegmentWindow
    plausible: bool


class DatasetSink(Protocol):
    """Takes what the audit's walk of a segment accepts, batch by batch, in scan order."""

    want_keys: bool  # whether `Columns.key_hash` must be filled

    def add(self, scanned: ScannedRows) -> None:
        """Add rows; the window may move on afterwards."""


def messages_batch(base_offset: int, scanned: ScannedRows) -> pa.RecordBatch:
    """Return the messages themselves."""
    rows, window, keys = scanned.columns.rows[: scanned.columns.count], scanned.window, scanned.keys
    values: dict[str, Any] = {
        "segment": pa.array(np.full(len(rows), base_offset, np.int64)),
        "topic": topic_texts(rows["topic_ref"], keys),
        "queue_id": queue_ids(rows, keys),
        "tags": part_texts(window, rows, "tags"),
        "keys": part_texts(window, rows, "keys"),
        "unique_key": part_texts(window, rows, "uniq"),
        "plausible": _flags(len(rows), scanned.plausible),
    }
    return _batch("messages", rows, values)


def consumequeue_batch(scanned: ScannedRows, lmq: bool) -> pa.RecordBatch:
    """Return the ConsumeQueue entries that dispatch makes. lmq: whether multi-dispatch is on."""
    items, kinds, keys = scanned.items, scanned.kinds, scanned.keys
    batch = kinds == KIND_BATCH
    # A batch queue ignores a base or a count below 0.
    wanted = (kinds != RUN_UNQUEUED) & ~(batch & ((items["batch_base"] < 0) | (items["batch_count"] < 0)))
    if not lmq:
        wanted &= kinds != RUN_LMQ
    rows, kinds, batch = items[wanted], kinds[wanted], batch[wanted]
    kind = np.where(batch, 1, np.where(kinds == RUN_LMQ, 2, 0)).astype(np.int8)
    values: dict[str, Any] = {
        "topic": topic_texts(rows["topic_ref"], keys),
        "queue_id": queue_ids(rows, keys),
        "queue_offset": pa.array(np.where(batch, rows["batch_base"], rows["queue_offset"])),
        "message_count": pa.array(np.where(batch, rows["batch_count"], 1).astype(np.int32)),
        "kind": pa.DictionaryArray.from_arrays(pa.array(kind), pa.array(_QUEUE_KINDS)),
        "plausible": _flags(len(rows), scanned.plausible),
    }
    return _batch("consumequeue", rows, values)


def index_batch(scanned: ScannedRows, tag_index: bool) -> pa.RecordBatch:
    """Return the index entries that dispatch puts, in its order.

    The columns must hold hashes. tag_index: whether tags are keys.
    """
    columns = scanned.columns
    rows = columns.rows[: columns.count]
    total = int(entry_counts(rows, tag_index).sum())
    of, number, kind, key_hash = (np.empty(total, t) for t in (np.int64, np.int32, np.int8, np.int32))
    start, size = np.empty(total, np.int64), np.empty(total, np.int64)
    buffer, origin = properties_of(scanned.window, rows)
    _list_keys(rows, puts_tag_key(rows, tag_index), buffer, origin, columns.key_hash, of, number, kind, key_hash, start, size)
    values: dict[str, Any] = {
        "phy_offset": pa.array(rows["phy_offset"][of]),
        "number": pa.array(number),
        "key_hash": pa.array(key_hash),
        "topic": topic_texts(rows["topic_ref"][of], scanned.keys),
        "key": gather_texts(buffer, start, size, np.ones(total, bool)),
        "kind": pa.DictionaryArray.from_arrays(pa.array(kind), pa.array(_INDEX_KINDS)),
        "store_time_ms": pa.array(rows["store_time"][of]),
        "plausible": _flags(total, scanned.plausible),
    }
    return _batch("index", rows, values)


def _batch(name: str, rows: np.ndarray, values: dict[str, Any]) -> pa.RecordBatch:
    """Return the columns as a batch; those not given are the rows' own (`Column.of`). Texts of few values stay dictionaries."""
    schema = DATASET_SCHEMAS[name]
    for column in DATASETS[name]:
        if column.ms:
            values[column.name] = timestamps(values[column.ms].to_numpy())
        elif column.name not in values:
            values[column.name] = pa.array(np.ascontiguousarray(rows[column.of or column.name]))
    arrays = [values[field.name] for field in schema]
    fields = [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _flags(count: int, value: bool) -> pa.Array:
    return pa.array(np.full(count, value))


@kept(message_columns)
def _list_keys(rows, tagged, buffer, origin, hashes, of, number, kind, key_hash, start, size):  # type: ignore[no-untyped-def]
    """Fill an element per index entry.

    An element has the entry's row, place, kind and hash, and the place of its text in the buffer.
    """
    at = 0
    for i in range(len(rows)):
        row = rows[i]
        first = at
        left = row.key_count
        begin = row.position - origin[i]
        if left > 0 and row.flags & HAS_UNIQ:
            kind[at], start[at], size[at] = _UNIQUE, begin + row.uniq_at, row.uniq_len
            at += 1
            left -= 1
        if left > 0 and row.flags & HAS_KEYS:
            low = begin + row.keys_at
            end = low + row.keys_len
            while low < end and left > 0:
                high = low
                while high < end and buffer[high] != 0x20:
                    high += 1
                if high > low:
                    kind[at], start[at], size[at] = _KEY, low, high - low
                    at += 1
                    left -= 1
                low = high + 1
        if tagged[i]:
            kind[at], start[at], size[at] = _TAG, begin + row.tags_at, row.tags_len
            at += 1
        for k in range(first, at):
            of[k], number[k], key_hash[k] = i, k - first, hashes[row.key_start + k - first]
