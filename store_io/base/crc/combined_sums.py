"""The CRC-32 of much from the CRC-32s of its parts. Needs numba.

CRC-32 is linear: that of two parts one after the other is that of the first, times x^(8 * bytes of the second) mod P, plus that
of the second. The result is exactly the CRC-32 of the bytes, whatever they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from store_io.base.compiled import native
from store_io.base.compiled.native import compiled_helper, full_crc32, kept
from store_io.base.crc import known_sums as layout
from store_io.base.crc.checksum import crc32_combine

_POLYNOMIAL, _ONE = 0xEDB88320, 1 << 31  # both reflected


@compiled_helper()
def _product(one: Any, other: Any) -> Any:
    """Of two polynomials mod P."""
    found = np.int64(0)
    for bit in range(31, -1, -1):
        found ^= other & -(one >> bit & 1)
        other = other >> 1 ^ _POLYNOMIAL & -(other & 1)
    return found


@kept(native, layout)
def sum_pieces(address, position, end, piece, filled, crc, known, shifts, sums):  # type: ignore[no-untyped-def]
    """The CRC-32s of the pieces of `piece` bytes into which a file is cut, for its bytes [position, end),
    of which the first is at `address`.

    filled, crc: bytes of the unfinished piece before them, and their CRC-32.  known: as in `known_sums`.  shifts: `shift_table`.
    Fills `sums` with those of finished pieces. Returns (how many these are, filled, crc) for what follows.
    """
    done, number = 0, 0
    while position < end:
        stop = min(end, position + piece - filled)
        while number < known[layout.COUNT] and known[layout.FIRST + layout.WORDS * number] < position:
            number += 1
        start, length = stop, np.int64(0)  # of the next part whose sum is known, if it ends in this piece
        if number < known[layout.COUNT]:
            at, size = known[layout.FIRST + layout.WORDS * number], known[layout.FIRST + layout.WORDS * number + 1]
            if at + size <= stop:
                start, length = at, size
        if position < start:
            crc = full_crc32(crc, address, start - position)
        if length:
            for place in range(3):
                number_of_bytes = length >> 8 * place & 255
                if number_of_bytes:
                    crc = _product(crc, shifts[place, number_of_bytes])
            crc ^= known[layout.FIRST + layout.WORDS * number + 2]
        address += start + length - position
        filled += start + length - position
        position = start + length
        if filled == piece:
            sums[done] = crc
            done, filled, crc = done + 1, 0, 0
    return done, filled, crc


@cache
def shift_table() -> np.ndarray:
    """[place, b]: x^(8 * b * 256^place) mod P, which is 1 with so many zero bytes after it."""
    return np.array([[crc32_combine(_ONE, 0, b << 8 * place) for b in range(256)] for place in range(3)], np.int64)
