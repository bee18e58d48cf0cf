"""The CRC-32 of much from the CRC-32s of its parts: bytes whose checksum was just found are not read again for a digest.

CRC-32 is linear: that of two parts one after the other is that of the first, times x^(8 * bytes of the second) mod P, plus that
of the second. The result is exactly the CRC-32 of the bytes, whatever they are. Needs numba.

`known` is an int64 array: how many sums it holds, how many it has room for, then (position in the file, bytes, CRC-32) of each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from store_io.base.compiled import native
from store_io.base.compiled.native import compiled_helper, full_crc32, kept

LEAST_BYTES = 4096  # of a part: a shorter one is summed again as quickly as its sum is added
MOST_BYTES = 1 << 24  # less than that
COUNT, ROOM, FIRST, WORDS = 0, 1, 2, 3  # places in `known`; how many words a sum takes there
_POLYNOMIAL, _ONE = 0xEDB88320, 1 << 31  # both reflected


def no_sums(room: int) -> np.ndarray:
    """An empty `known`."""
    known = np.zeros(FIRST + WORDS * room, np.int64)
    known[ROOM] = room
    return known


@compiled_helper()
def _product(one: Any, other: Any) -> Any:
    """Of two polynomials mod P."""
    found = np.int64(0)
    for bit in range(31, -1, -1):
        found ^= other & -(one >> bit & 1)
        other = other >> 1 ^ _POLYNOMIAL & -(other & 1)
    return found


@kept(native)
def sum_pieces(address, position, end, piece, filled, crc, known, powers, sums):  # type: ignore[no-untyped-def]
    """The CRC-32s of the pieces of `piece` bytes into which a file is cut, for its bytes [position, end),
    of which the first is at `address`.

    filled, crc: bytes of the unfinished piece before them, and their CRC-32.  powers: those of `powers`.  Fills `sums`
    with those of finished pieces. Returns (how many these are, filled, crc) for what follows.
    """
    done, number = 0, 0
    while position < end:
        stop = min(end, position + piece - filled)
        while number < known[COUNT] and known[FIRST + WORDS * number] < position:
            number += 1
        start, length = stop, np.int64(0)  # of the next part whose sum is known, if it ends in this piece
        if number < known[COUNT]:
            at, size = known[FIRST + WORDS * number], known[FIRST + WORDS * number + 1]
            if at + size <= stop:
                start, length = at, size
        if position < start:
            crc = full_crc32(crc, address, start - position)
        if length:
            for place in range(3):
                number_of_bytes = length >> 8 * place & 255
                if number_of_bytes:
                    crc = _product(crc, powers[place, number_of_bytes])
            crc ^= known[FIRST + WORDS * number + 2]
        address += start + length - position
        filled += start + length - position
        position = start + length
        if filled == piece:
            sums[done] = crc
            done, filled, crc = done + 1, 0, 0
    return done, filled, crc


@cache
def powers() -> np.ndarray:
    """[place, b]: x^(8 * b * 256^place) mod P."""
    table = np.zeros((3, 256), np.int64)
    step = _ONE
    for _ in range(8):
        step = step >> 1 ^ (_POLYNOMIAL if step & 1 else 0)
    for place in range(3):
        value = _ONE
        for number in range(256):
            table[place, number] = value
            value = _multiplied(value, step)
        step = value
    return table


def _multiplied(one: int, other: int) -> int:
    """`_product`, not compiled."""
    found = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            found ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return found
