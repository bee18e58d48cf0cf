"""The readable reference decoder: segment bytes -> rows, one frame at a time, every verdict by `rules.message_verdict`.

Same contract as `commitlog_columns.decode`, some hundred times slower. It stands in where numba is missing, and tests hold
the fast decoder to it.
"""

from __future__ import annotations

import numpy as np

from schemas import commitlog_layout as layout
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
from store_io.rules.message_verdict import VALID, BufferFrames


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
    Never raises over the bytes. `Stop` says how to go on.
    """
    frames = BufferFrames(buffer.data, buffer_position)
    known = (layout.MAGIC_V1, layout.MAGIC_V2) if check.rules.knows_v2 else (layout.MAGIC_V1,)
    at = start
    while True:
        if columns.full:
            return Stop(FULL, at)
        if end - at < layout.FRAME_BYTES:
            return Stop(STOPPED, at) if final else Stop(NEED_MORE, at, layout.FRAME_BYTES)
        frame = frames.read(at, at + layout.FRAME_BYTES)
        total = int.from_bytes(frame[:4], "big", signed=True)
        magic = int.from_bytes(frame[4:], "big", signed=True)
        if not final and magic in known and total > end - at:
            return Stop(NEED_MORE, at, total)
        verdict = check.verdict(frames, at, end)
        if verdict.kind != VALID or verdict.message is None:
            return Stop(STOPPED, at)
        append_message(columns, topics, verdict.message, frames, check)
        at += verdict.size
