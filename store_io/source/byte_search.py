"""Where a text's bytes are in a file: many times faster than decoding the messages that may hold it.

A message can hold a key only where the key's bytes are. So a segment without them needs no decoding, one with them none after the
last of them, and only messages over one of them become rows. The bytes themselves prove that. An index file cannot: its entries
may be missing, or lead elsewhere.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from store_io.source.byte_file import ByteFile

WINDOW_BYTES = 4 << 20
PART_BYTES = 64 << 20  # of a file that a thread of its own is worth


def places_of(file: ByteFile, needles: Sequence[bytes], most: int) -> np.ndarray | None:
    """Return the positions, in order, at which any of the needles begins in the file; None if there are more than `most`.

    Raises as `ByteFile.read_into`. needles: none is empty, or of zeros alone.
    """
    threads = min(os.cpu_count() or 1, -(-file.size // PART_BYTES)) if file.descriptor() is not None else 1
    edges = [file.size * number // max(1, threads) for number in range(max(1, threads) + 1)]
    if threads < 2:
        found = [_places_between(file, needles, 0, file.size, most)]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(lambda low, high: _places_between(file, needles, low, high, most), edges, edges[1:]))
    places = np.unique(np.array([place for part in found for place in part], np.int64))
    return None if len(places) > most else places


def _places_between(file: ByteFile, needles: Sequence[bytes], low: int, high: int, most: int) -> list[int]:
    """The same of those that begin in [low, high), in any order; not all if there are more than `most`."""
    more = max(map(len, needles)) - 1  # of the next window, so that none is cut in two
    buffer = bytearray(WINDOW_BYTES + more)
    found: list[int] = []
    at = low
    while at < high and len(found) <= most:
        data = file.next_data(at)
        if data > at + more:  # a hole, but for what may end in the data after it
            at = min(data - more, high)
            continue
        own = min(WINDOW_BYTES, high - at)
        got = file.read_into(at, memoryview(buffer)[: own + more])
        for needle in needles:
            place = _find(buffer, 0, got, needle)
            while 0 <= place < own and len(found) <= most:
                found.append(at + place)
                place = _find(buffer, place + 1, got, needle)
        at += WINDOW_BYTES
    return found


def _system_search() -> Any:
    """The C library's memmem, which compares whole vectors and does not hold Python's lock; None where it has none."""
    function = getattr(ctypes.CDLL(None), "memmem", None)
    if function is not None:
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return function


_SEARCH = _system_search()


def _find(buffer: bytearray, low: int, high: int, needle: bytes) -> int:
    """`buffer.find(needle, low, high)`."""
    if _SEARCH is None:
        return buffer.find(needle, low, high)
    if high - low < len(needle):
        return -1
    start = ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))
    found = _SEARCH(start + low, high - low, needle, len(needle))
    return -1 if found is None else int(found) - start
