"""The CRC-32 of much from the CRC-32s of its parts. Needs numba.

CRC-32 is linear: that of two parts one after the other is that of the first, times x^(8 * bytes of the second) mod P, plus that
of the second. The result is exactly the CRC-32 of the bytes, whatever they are.

What it saves of a segment task, whose digest needs the sum of all bytes: nothing with bodies of 200 bytes, 2 to 4 % with 1 KiB,
11 % with 16 KiB, where isal sums (Xeon with AVX-512); more where a slower library does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from store_io.base.compiled import native
from store_io.base.compiled.native import Address, compiled_helper, crc_product, full_crc32, kept, peek_i64, poke_i64
from store_io.base.crc import known_sums as layout
from store_io.base.crc.checksum import crc32_combine
from store_io.base.locks import made_once

_ONE = 1 << 31  # x^0, reflected
_SHIFT_BITS = (11, 7, 6)  # of a number of bytes, lowest first: how many of its bits a product takes


@compiled_helper()
def _shifted(crc: int, count: int, shifts: int) -> Any:
    """Return a CRC-32 times what so many bytes after it make of it."""
    place = shifts
    for bits in _SHIFT_BITS:
        low = count & (1 << bits) - 1
        if low:
            crc = crc_product(crc, peek_i64(place + 8 * low))
        count >>= bits
        place += 8 << bits
    return crc


@kept(native, layout)
def sum_pieces(
    address: Address, position: Any, end: int, piece: int, filled: Any, crc: Any, known: Address, shifts: Address, sums: Address
) -> tuple[int, int, int]:
    """Compute the CRC-32s of a file's pieces of `piece` bytes, for its bytes [position, end).

    address: the address of the first of these bytes.
    filled, crc: the bytes of the unfinished piece before them, and their CRC-32.
    known, shifts: `known_sums` and `shift_table`; a piece is shorter than `known_sums.MOST_BYTES`.
    Fills `sums` with those of finished pieces. Returns (the number of finished pieces, filled, crc) for the next bytes.
    """
    done: Any = np.int64(0)
    next_known = known + 8 * layout.FIRST
    known_end = next_known + 8 * layout.WORDS * peek_i64(known + 8 * layout.COUNT)
    while position < end:
        stop = min(end, position + piece - filled)
        while next_known < known_end and peek_i64(next_known) < position:
            next_known += 8 * layout.WORDS
        start, length = stop, np.int64(0)  # of the next part whose sum is known, if it ends in this piece
        if next_known < known_end and peek_i64(next_known) + peek_i64(next_known + 8) <= stop:
            start, length = peek_i64(next_known), peek_i64(next_known + 8)
        gap = start - position
        if length:  # one product more, but no sum waits for the one before it
            between = full_crc32(0, address, gap)
            crc = _shifted(crc, gap + length, shifts) ^ _shifted(between, length, shifts) ^ peek_i64(next_known + 16)
        else:
            crc = full_crc32(crc, address, gap)
        address += gap + length
        filled += gap + length
        position = start + length
        if filled == piece:
            poke_i64(sums + 8 * done, crc)
            done, filled, crc = done + 1, np.int64(0), np.int64(0)
    return done, filled, crc


@made_once()
def shift_table() -> np.ndarray:
    """Return the factors x^(8 * bytes) mod P that append zero bytes to a CRC-32.

    They are for 0 to 2^11 - 1 bytes, then for so many times 2^11, and so on by `_SHIFT_BITS`.
    """
    ones = [1 << sum(_SHIFT_BITS[:place]) for place in range(len(_SHIFT_BITS))]
    counts = [one * number for one, bits in zip(ones, _SHIFT_BITS, strict=True) for number in range(1 << bits)]
    return np.array([crc32_combine(_ONE, 0, count) for count in counts], np.int64)
