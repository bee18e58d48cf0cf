"""The fast decoder: segment bytes -> rows in one compiled pass. Same contract as the reference in `commitlog_reader`.

Without numba this is the reference itself: the same rows, some hundred times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from store_io.base.crc import checksum
from store_io.log.records import commitlog_reader
from store_io.log.records.message_columns import FULL, NEED_MORE, STOPPED, Columns, RecordCheck, Stop, Stretch, TopicTable

_kernel: Any
try:
    from store_io.log.records import commitlog_kernel

    _kernel = commitlog_kernel
except ImportError:
    _kernel = None


def decode(stretch: Stretch, check: RecordCheck, columns: Columns, topics: TopicTable) -> Stop:
    """Append the stretch's messages to `columns`, up to the first frame that is not accepted.

    STOPPED also for something valid that is too rare for compiled code: ask `check.verdict`; if that says VALID, use
    `append_message` and continue after the frame. Never raises over the bytes, only over arguments that contradict each other.
    """
    buffer, origin, start, end = stretch.buffer, stretch.buffer_position, stretch.start, stretch.end
    if _kernel is None or not -(1 << 63) <= check.base_offset < (1 << 63) - end:  # addresses that wrap are never met
        return commitlog_reader.decode(stretch, check, columns, topics)
    if buffer.dtype != np.uint8 or buffer.ndim != 1 or not buffer.flags.c_contiguous:
        raise ValueError("the buffer has to be one contiguous dimension of bytes")
    if not origin <= start <= end <= origin + len(buffer):
        raise ValueError(f"[{start}, {end}) is not in a buffer of {len(buffer)} bytes at {origin}")
    layouts = columns.layouts.get(check.settings)
    if layouts is None:
        layouts = columns.layouts[check.settings] = np.zeros(_kernel.LAYOUT_WORDS, np.int64)
    delays, header, known = check.delay_table, int(check.framing.header_bytes), columns.count
    # Other types would have the code compiled again.
    origin, record, end, final = int(origin), int(start) + header, int(end), bool(stretch.final)
    while True:
        ended, record, need, columns.count, columns.key_hash_count, topics.count, topics.text_used, flags = _kernel.decode_window(
            buffer, record - origin, end - origin, final, record, header, check.base_offset, check.settings,
            delays, len(delays), columns.row_bytes, columns.capacity, columns.count,
            columns.key_hash, len(columns.key_hash), columns.key_hash_count,
            topics.entries, len(topics.entries), topics.text, len(topics.text),
            topics.slots, len(topics.slots), topics.count, topics.text_used, topics.seed, layouts,
        )  # fmt: skip
        columns.flags |= flags
        if ended != _kernel.ENDED_NO_TOPIC_ROOM:
            break
        topics.reserve(need)
    if header and check.reads_header and (refused := _first_refused(stretch, check, columns, known)) is not None:
        return Stop(STOPPED, refused)
    if ended == _kernel.ENDED_NEED_MORE:
        return Stop(NEED_MORE, record - header, need + header)
    return Stop(FULL if ended == _kernel.ENDED_FULL else STOPPED, record - header)


def _first_refused(stretch: Stretch, check: RecordCheck, columns: Columns, known: int) -> int | None:
    """Return the position of the first frame whose header is refused, among the rows from `known` on.

    Its row and all rows after it go.
    """
    rows, header = columns.rows[known : columns.count], check.framing.header_bytes
    places = rows["position"][:, None] - stretch.buffer_position - header + np.arange(header)
    accepted = check.framing.accepts(stretch.buffer[places], rows["total_size"].astype(np.int64), rows["phy_offset"])
    if accepted.all():
        return None
    first = rows[int(np.argmin(accepted))]
    columns.count = known + int(np.argmin(accepted))
    columns.key_hash_count = int(first["key_start"]) if columns.want_keys else columns.key_hash_count
    return int(first["position"]) - header


def warm_up_decoder() -> None:
    """Decode nothing, with arguments of the types that every scan has.

    So compiled code is in memory before there is anything to decode: loading it from numba's cache takes 0.2 s.
    """
    checksum.trust()
    nothing = Stretch(np.zeros(1, np.uint8), 0, 0, 0, True)
    decode(nothing, RecordCheck.audit(0), Columns(1), TopicTable())
