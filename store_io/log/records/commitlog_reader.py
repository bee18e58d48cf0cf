"""The readable reference decoder: segment bytes -> rows, one frame at a time, every verdict by `broker.message_verdict`.

Same contract as `commitlog_columns.decode`, some hundred times slower. It is used where numba is missing, and tests hold
the fast decoder to it.
"""

from __future__ import annotations

from schemas.layouts import commitlog_layout as layout
from store_io.broker.message_verdict import VALID, BufferFrames
from store_io.log.records.message_columns import (
    FULL,
    NEED_MORE,
    STOPPED,
    Columns,
    RecordCheck,
    Stop,
    Stretch,
    TopicTable,
    append_message,
)


def decode(stretch: Stretch, check: RecordCheck, columns: Columns, topics: TopicTable) -> Stop:
    """Append the stretch's messages to `columns`, up to the first frame that is not accepted. Never raises over the bytes.

    `Stop` says how to continue.
    """
    frames, end = BufferFrames(stretch.buffer.data, stretch.buffer_position), stretch.end
    known = (layout.MAGIC_V1, layout.MAGIC_V2) if check.rules.knows_v2 else (layout.MAGIC_V1,)
    header = check.framing.header_bytes
    least = header + layout.FRAME_BYTES
    at = stretch.start
    while True:
        if columns.full:
            return Stop(FULL, at)
        if end - at < least:
            return Stop(STOPPED, at) if stretch.final else Stop(NEED_MORE, at, least)
        frame = frames.read(at + header, at + least)
        total = int.from_bytes(frame[:4], "big", signed=True)
        magic = int.from_bytes(frame[4:], "big", signed=True)
        if not stretch.final and magic in known and header + total > end - at:
            return Stop(NEED_MORE, at, header + total)
        verdict = check.verdict(frames, at, end)
        if verdict.kind != VALID or verdict.message is None:
            return Stop(STOPPED, at)
        append_message(columns, topics, verdict.message, frames, check)
        at += verdict.size
