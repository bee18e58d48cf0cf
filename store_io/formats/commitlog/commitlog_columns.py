"""The fast decoder: segment bytes -> rows in one compiled pass. Same contract as the reference in `commitlog_reader`.

Without numba the reference itself stands here: the same rows, some hundred times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from store_io.formats.commitlog import commitlog_reader
from store_io.formats.commitlog.message_columns import (
    FULL,
    NEED_MORE,
    STOPPED,
    Columns,
    RecordCheck,
    Stop,
    TopicTable,
    append_message,
)

_kernel: Any
try:
    from store_io.formats.commitlog import commitlog_kernel

    _kernel = commitlog_kernel
except ImportError:
    _kernel = None

__all__ = ["Columns", "RecordCheck", "Stop", "TopicTable", "append_message", "decode"]


def decode(
    buffer: np.ndarray,
    buffer_position: int,
    start: int,
    end: int,
    final: bool,
    check: RecordCheck,
    columns: Columns,
    topics: TopicTable,
) -> Stop:
    """Append the messages from segment position `start` on to `columns`, up to the first frame that is not accepted.

    buffer: uint8, C-contiguous; its first byte stands at segment position `buffer_position` <= start.
    end: the buffer holds the segment's bytes up to this position.  final: nothing follows them in the segment.
    STOPPED also where something valid is too rare for compiled code: ask `check.verdict`, and go on behind the frame with
    `append_message` where it says VALID. Never raises over the bytes, only over arguments that contradict each other.
    """
    if _kernel is None or not -(1 << 63) <= check.base_offset < (1 << 63) - end:  # addresses that wrap are never met
        return commitlog_reader.decode(buffer, buffer_position, start, end, final, check, columns, topics)
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        raise ValueError("the buffer has to be one contiguous dimension of bytes")
    if not buffer_position <= start <= end <= buffer_position + len(buffer):
        raise ValueError(f"[{start}, {end}) is not in a buffer of {len(buffer)} bytes at {buffer_position}")
    layouts = np.zeros(_kernel.LAYOUT_WORDS, np.int64)
    delays = check.delay_table
    address = buffer.ctypes.data - int(buffer_position)
    at, end, final = int(start), int(end), bool(final)  # other types would have the code compiled once more
    while True:
        ended, at, need, columns.count, columns.key_hash_count, topics.count, topics.text_used = _kernel.run(
            address + at, address + end, final, at, check.base_offset, check.settings, delays.ctypes.data, len(delays),
            columns.rows.ctypes.data, columns.capacity, columns.count,
            columns.key_hash.ctypes.data, len(columns.key_hash), columns.key_hash_count,
            topics.entries.ctypes.data, len(topics.entries), topics.text.ctypes.data, len(topics.text),
            topics.slots.ctypes.data, len(topics.slots), topics.count, topics.text_used, layouts.ctypes.data,
        )  # fmt: skip
        if ended == _kernel.ENDED_NO_TOPIC_ROOM:
            topics.reserve(need)
            continue
        if ended == _kernel.ENDED_NEED_MORE:
            return Stop(NEED_MORE, at, need)
        return Stop(FULL if ended == _kernel.ENDED_FULL else STOPPED, at)
