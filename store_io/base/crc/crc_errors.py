"""Finds the one wrong byte of a text from its checksum alone.

CRC-32 is linear: the stored CRC and that of the damaged text differ by the syndrome, the CRC of the error itself followed by as
many zeros as bytes come after it. What a zero byte does can be undone: so the syndrome is walked back from the text's end, one
byte at a time, and wherever it is what a single byte leaves, that byte at that place explains it. One pass finds all single
bytes, and with them all single bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from store_io.base.compiled.native import kept

CRC_BITS = 31  # of a stored checksum: its top bit is always cleared
MOST_ERRORS = 16  # that are given; more than one is too many already
_POLYNOMIAL = 0xEDB88320


def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Return (the register after each byte from an empty one, the byte by the top byte of that register)."""
    left, by_top = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        left[byte] = value
        by_top[value >> 24] = byte
    return left, by_top


_LEFT, _BY_TOP = _tables()


class ByteError(NamedTuple):
    """A wrong byte.

    at: its place in the text.
    mask: what to add to it (XOR).
    """

    at: int
    mask: int

    @property
    def one_bit(self) -> bool:
        return self.mask & (self.mask - 1) == 0


@kept()
def _walk_back(syndrome, length, left, by_top, found):  # type: ignore[no-untyped-def]
    """Fill `found` with (place, mask), the last place first; returns how many there are."""
    count, rest = 0, syndrome
    for at in range(length - 1, -1, -1):
        byte = by_top[rest >> 24]
        without = rest ^ left[byte]
        if without == 0:
            if count < len(found):
                found[count, 0], found[count, 1] = at, byte
            count += 1
        rest = (without << 8) | byte
    return count


def byte_errors(stored: int, actual: int, length: int) -> list[ByteError]:
    """Return every single byte whose error explains that a text of `length` bytes has the checksum `actual` instead of `stored`.

    Both with their top bit cleared; they must differ. At most MOST_ERRORS are given.
    """
    syndrome = (stored ^ actual) & 0x7FFFFFFF
    if not syndrome:
        raise ValueError("the checksums are equal")
    errors: list[ByteError] = []
    for whole in (syndrome, syndrome | 0x80000000):  # nobody stored the top bit
        found = np.zeros((MOST_ERRORS, 2), np.int64)
        count = int(_walk_back(whole, length, _LEFT, _BY_TOP, found))
        errors += [ByteError(at, mask) for at, mask in found[: min(count, MOST_ERRORS)].tolist()]
    return sorted(errors)[:MOST_ERRORS]
