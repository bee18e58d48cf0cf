"""Finds a text's bytes in a file: many times faster than decoding the messages that may hold it.

A message can hold a key only where the key's bytes are, so a segment without them needs no decoding, and one with them none after
the last of them. The bytes themselves prove that. An index file cannot: its entries may be missing, or lead elsewhere.
"""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from store_io.source.byte_file import ByteFile

WINDOW_BYTES = 4 << 20
PART_BYTES = 64 << 20  # of a file that a thread of its own is worth


def last_place(file: ByteFile, needle: bytes) -> int:
    """Return the position at which the bytes begin for the last time in the file, or -1.

    Raises as `ByteFile.read_into`.
    needle: not empty, and not of zeros alone.
    """
    threads = min(os.cpu_count() or 1, -(-file.size // PART_BYTES)) if file.descriptor() is not None else 1
    if threads < 2:
        return _last_between(file, needle, 0, file.size)
    edges = [file.size * number // threads for number in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(lambda low, high: _last_between(file, needle, low, high), edges, edges[1:]))


def _last_between(file: ByteFile, needle: bytes, low: int, high: int) -> int:
    """Return the last place of the bytes that begins in [low, high), or -1."""
    more = len(needle) - 1  # of the next window, so that none is cut in two
    buffer = bytearray(WINDOW_BYTES + more)
    found, at = -1, low
    while at < high:
        data = file.next_data(at)
        if data > at + more:  # a hole, but for what may end in the data after it
            at = min(data - more, high)
            continue
        wanted = min(WINDOW_BYTES, high - at) + more
        got = file.read_into(at, memoryview(buffer)[:wanted])
        if _is_in(buffer, got, needle):
            found = at + buffer.rfind(needle, 0, got)
        at += WINDOW_BYTES
    return found


def _system_search() -> Any:
    """Return the C library's memmem, which compares whole vectors and does not hold Python's lock; None without one."""
    function = getattr(ctypes.CDLL(None), "memmem", None)
    if function is not None:
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return function


_SEARCH = _system_search()


def _is_in(buffer: bytearray, size: int, needle: bytes) -> bool:
    if _SEARCH is None:
        return buffer.find(needle, 0, size) >= 0
    start = (ctypes.c_char * len(buffer)).from_buffer(buffer)
    return _SEARCH(ctypes.addressof(start), size, needle, len(needle)) is not None
