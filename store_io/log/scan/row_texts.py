"""Texts and other pieces of decoded rows, taken from the window's bytes as Arrow arrays, without a Python object for each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from schemas.rows import QueueKey
from store_io.base.compiled.native import Address, copy_bytes, kept, load_u8, poke_u8
from store_io.base.java.java_compat import decode_utf8
from store_io.source.segment_window import SegmentWindow

LONG_BYTES = 256  # from here on a slice is copied faster than byte by byte

Pieces = tuple[np.ndarray, np.ndarray]  # (bytes, where each row's piece begins in them)


def topic_texts(refs: np.ndarray, keys: Sequence[QueueKey]) -> pa.Array:
    """Return topics by their references, as a dictionary."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.ascontiguousarray(refs)), pa.array([topic for topic, _ in keys], pa.string())
    )


def queue_ids(rows: np.ndarray, keys: Sequence[QueueKey]) -> pa.Array:
    """Return queue ids of rows."""
    return pa.array(np.array([queue_id for _, queue_id in keys], np.int32)[rows["topic_ref"]])


def in_window(window: SegmentWindow, rows: np.ndarray) -> bool:
    """Say whether the window holds these rows' records. One larger than the window may be among them."""
    first, last = int(rows["position"][0]), int(rows["position"][-1]) + int(rows["total_size"][-1])
    return window.start <= first and last <= window.end


def record_bytes(window: SegmentWindow, rows: np.ndarray, at: np.ndarray | int, size: np.ndarray) -> Pieces:
    """Return the bytes [at, at + size) of each record.

    They are in the window if it holds all of them; else each record is read by itself.
    """
    starts = rows["position"] + at
    if in_window(window, rows):
        return window.buffer, starts - window.start
    parts = [window.read(int(start), int(start) + int(length)) for start, length in zip(starts, size, strict=True)]
    ends = np.cumsum(np.array([len(part) for part in parts], np.int64))
    return np.frombuffer(b"".join(parts), np.uint8), ends - size


def properties_of(window: SegmentWindow, rows: np.ndarray) -> Pieces:
    """Return (bytes, origins): bytes with at least the properties of all rows.

    origins: per row, the number to take from a position in the segment to get the index in these bytes.
    """
    buffer, starts = record_bytes(window, rows, rows["props_at"], rows["props_len"])
    return buffer, rows["position"] + rows["props_at"] - starts


def part_texts(window: SegmentWindow, rows: np.ndarray, part: str) -> pa.Array:
    """Return one property of each row that the decoder has located (tags, keys, uniq); null for a row without it."""
    size = rows[part + "_len"].astype(np.int64)
    buffer, origin = properties_of(window, rows)
    return gather_texts(buffer, rows["position"] + rows[part + "_at"] - origin, size, size > 0)


def gather_texts(buffer: np.ndarray, start: np.ndarray, size: np.ndarray, valid: np.ndarray) -> pa.Array:
    """Return pieces of a buffer as texts, decoded as Java would."""
    raw = gather_bytes(buffer, start, size, valid)
    texts = raw.view(pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        texts = pa.array([None if piece is None else decode_utf8(piece) for piece in raw.to_pylist()], pa.string())
    return texts


def gather_bytes(buffer: np.ndarray, start: np.ndarray, size: np.ndarray, valid: np.ndarray) -> pa.Array:
    """Return pieces of a buffer, 2 GiB in all at most; null for each piece that is not valid."""
    ends = np.zeros(len(size) + 1, np.int32)
    np.cumsum(size, out=ends[1:])
    data = np.empty(int(ends[-1]), np.uint8)
    if buffer.dtype != np.uint8 or not buffer.flags.c_contiguous or len(start) != len(size) or not _inside(buffer, start, size):
        raise ValueError("pieces have to lie in a buffer of bytes")
    _copy_pieces(buffer, start, ends, data)
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(size), [nulls, pa.py_buffer(ends), pa.py_buffer(data)])


def _inside(buffer: np.ndarray, start: np.ndarray, size: np.ndarray) -> bool:
    """Say whether all pieces are parts of the buffer; empty ones are, wherever they begin."""
    some = size > 0
    return bool(np.all(size >= 0) and np.all(start[some] >= 0) and np.all((start + size)[some] <= len(buffer)))


@kept()
def _copy_pieces(source: Address, start, ends, target: Address):  # type: ignore[no-untyped-def]
    """Copy to [ends[i], ends[i + 1]) of the bytes of `target` what begins at start[i] of `source`."""
    for i in range(len(start)):
        at, low, size = source + start[i], target + np.int64(ends[i]), np.int64(ends[i + 1] - ends[i])
        if size > LONG_BYTES:
            copy_bytes(low, at, size)
        else:
            for k in range(size):
                poke_u8(low + k, load_u8(at + k))


@kept()
def find_in_pieces(buffer, start, size, needle, found):  # type: ignore[no-untyped-def]
    """Set found[row] for each row whose piece of the buffer holds the needle, which is not empty. Pieces lie in the buffer."""
    length = len(needle)
    for row in range(len(start)):
        at, end = start[row], start[row] + size[row] - length
        while not found[row] and at <= end:
            left = length
            while left > 0 and buffer[at + left - 1] == needle[left - 1]:  # from its end on: unique keys begin alike
                left -= 1
            found[row] = left == 0
            at += 1
