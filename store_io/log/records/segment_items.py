"""The meaning of a decoded row for its queue, and the places of its fields, for compiled code that works by address."""

from __future__ import annotations

import numpy as np

from schemas import rows as rows_module
from schemas.layouts import commitlog_layout
from schemas.rows import RUN_QUEUE, RUN_UNQUEUED
from store_io.base.compiled import native
from store_io.base.compiled.native import Address, kept, peek_i32, peek_i64
from store_io.log.records import bridges, message_columns
from store_io.log.records.message_columns import ROW_DTYPE

KIND_BATCH = 3  # beside RUN_*: in a BatchConsumeQueue, where messages count, not entries
BATCH_ROWS = 1 << 32  # beside the rows' own flags: one of them belongs to a BatchConsumeQueue
HOST_CHANGES = 1 << 33  # beside them: one has another store host than the first
BRIDGE_FLAGS = 1 << 34  # beside them: one has a bridge's flag
FAR = 1 << 56  # no queue offset reaches it; keeps sums from wrapping
ROW = ROW_DTYPE.itemsize
# Where a row's fields are, in the order of ROW_DTYPE.
(
    POSITION, PHY_OFFSET, QUEUE_OFFSET, STORE_TIME, TAGS_CODE, TOTAL_SIZE, TOPIC_REF, SYS_FLAG, FLAGS, STORE_HOST, BATCH_BASE,
    BATCH_COUNT, KEY_COUNT, KEY_START, FLAG, BORN_TIME, PREPARED_OFFSET, BODY_CRC, RECONSUME_TIMES, BODY_AT, BODY_LEN, TOPIC_AT,
    TOPIC_LEN, PROPS_AT, PROPS_LEN, UNIQ_AT, UNIQ_LEN, KEYS_AT, KEYS_LEN, TAGS_AT, TAGS_LEN,
) = (int(ROW_DTYPE.fields[name][1]) for name in ROW_DTYPE.names or () if ROW_DTYPE.fields)  # fmt: skip


@kept(commitlog_layout, rows_module, bridges, message_columns, native)
def row_kinds(rows: Address, count, batch_refs, kinds):  # type: ignore[no-untyped-def]
    """Fill `kinds` for these rows; gives all their flags, BATCH_ROWS, HOST_CHANGES and BRIDGE_FLAGS.

    batch_refs: per topic ref, whether it is a BatchConsumeQueue's.
    """
    met = np.int64(0)
    host = peek_i64(rows + STORE_HOST) if count else np.int64(0)
    for i in range(count):
        row = rows + i * ROW
        transaction = peek_i32(row + SYS_FLAG) & commitlog_layout.SYS_TRANSACTION_MASK
        if transaction == commitlog_layout.SYS_PREPARED or transaction == commitlog_layout.SYS_ROLLBACK:
            kinds[i] = RUN_UNQUEUED
        elif batch_refs[peek_i32(row + TOPIC_REF)]:
            kinds[i] = KIND_BATCH
            met |= BATCH_ROWS
        else:
            kinds[i] = RUN_QUEUE
        met |= peek_i32(row + FLAGS)
        if peek_i64(row + STORE_HOST) != host:
            met |= HOST_CHANGES
        if peek_i32(row + FLAG) == bridges.FLAG:
            met |= BRIDGE_FLAGS
    return met


def grown(array: np.ndarray, size: int, fill: int) -> np.ndarray:
    """Return the array, at least `size` long; what is new holds `fill`."""
    if len(array) >= size:
        return array
    larger = np.full((max(size, 2 * len(array)), *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger
