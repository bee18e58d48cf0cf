"""Bodies as producers sent them: uncompressed, and inner batches as single messages. Bounded; bad bytes never raise.

Source: MessageDecoder.decode, CompressorFactory, MessageDecoder.decodeMessages (which fields an inner message has),
MessageSysFlag.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import lz4.frame
import zstandard

from schemas.layouts import commitlog_layout as layout

STORED, DECODED, TOO_LARGE, DAMAGED, UNKNOWN = range(5)
STATUS_NAMES = ("stored", "decoded", "too_large", "damaged", "unknown")
MAX_INNER_MESSAGES = 32_767  # a count is a Java short
MAX_ZSTD_WINDOW = 1 << 27  # what the format asks every decoder to be able to

_LZ4_PIECE_BYTES = 1 << 18  # made at a time: room for so many is laid out before each call
_ZSTD_PIECE_BYTES = 256  # a call gives all that its input makes: 4 bytes make a block of 128 KiB, so these make 8 MiB at most


class _TooLarge(Exception):
    pass


def decode_body(body: bytes, sys_flag: int, limit: int) -> tuple[bytes | None, int]:
    """Return (the body as the producer sent it, DECODED or STORED), or (None, the reason) if it cannot be decoded.

    limit: the most bytes that the body may have; no more are ever made.
    """
    if not sys_flag & layout.SYS_COMPRESSED or not body:
        return body, STORED
    unpack = _ENGINES.get((sys_flag & layout.SYS_COMPRESSION_MASK) >> layout.SYS_COMPRESSION_SHIFT)
    if unpack is None:
        return None, UNKNOWN
    try:
        return unpack(body, limit), DECODED
    except _TooLarge:
        return None, TOO_LARGE
    except (zlib.error, RuntimeError, EOFError, zstandard.ZstdError, MemoryError, ValueError):
        return None, DAMAGED


def _from_zlib(body: bytes, limit: int) -> bytes:
    engine = zlib.decompressobj()
    found = engine.decompress(body, limit + 1)
    if len(found) > limit:
        raise _TooLarge
    if not engine.eof:
        raise EOFError
    return found


def _from_lz4(body: bytes, limit: int) -> bytes:
    # Not LZ4FrameDecompressor: it copies all that is after a frame, and a body may be nothing but empty frames of 11 bytes.
    parts, size, at, left = [], 0, 0, memoryview(body)
    context = lz4.frame.create_decompression_context()
    while at < len(body):  # frames may follow one another
        ended = False
        while not ended:
            piece, taken, ended = lz4.frame.decompress_chunk(
                context, left[at:], max_length=min(limit + 1 - size, _LZ4_PIECE_BYTES)
            )
            at, size = at + taken, size + len(piece)
            if piece:
                parts.append(piece)
            if size > limit:
                raise _TooLarge
            if not (ended or piece or taken):
                raise EOFError
        lz4.frame.reset_decompression_context(context)
    return b"".join(parts)


def _from_zstd(body: bytes, limit: int) -> bytes:
    parts, size, at = [], 0, 0
    decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
    while at < len(body):  # frames may follow one another
        engine = decompressor.decompressobj()
        while not engine.eof:
            if at >= len(body):
                raise EOFError
            piece = body[at : at + _ZSTD_PIECE_BYTES]
            parts.append(engine.decompress(piece))
            at += len(piece) - len(engine.unused_data)
            size += len(parts[-1])
            if size > limit:
                raise _TooLarge
    return b"".join(parts)


_ENGINES: Mapping[int, Callable[[bytes, int], bytes]] = {0: _from_zlib, 1: _from_lz4, 2: _from_zstd, 3: _from_zlib}


# ---- inner batches -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InnerMessage:
    """One message of an inner batch: what it has of its own. Parts are ranges of the batch's uncompressed body."""

    flag: int
    body: tuple[int, int]
    properties: tuple[int, int]


def inner_messages(body: bytes) -> list[InnerMessage] | None:
    """Return the messages in the body of an inner batch, in their order; None for any other body.

    A body that holds more messages than a batch can gives None, too.
    """
    found: list[InnerMessage] = []
    at = 0

    def number(position: int, size: int) -> int:
        return int.from_bytes(body[position : position + size], "big", signed=True)

    while at < len(body):
        body_at = at + layout.INNER_BODY_POSITION
        if len(found) >= MAX_INNER_MESSAGES or body_at > len(body):
            return None
        body_end = body_at + number(at + layout.INNER_BODY_LENGTH_POSITION, 4)
        properties_at = body_end + 2
        if body_end < body_at or properties_at > len(body):
            return None
        end = properties_at + number(body_end, 2)
        if end < properties_at or end > len(body) or number(at, 4) != end - at:
            return None
        found.append(InnerMessage(number(at + layout.INNER_FLAG_POSITION, 4), (body_at, body_end), (properties_at, end)))
        at = end
    return found or None
