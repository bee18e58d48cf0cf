"""The machine operations, each against what Python says of the same bytes."""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from numba import njit

from store_io.base import native

DATA = np.frombuffer(random.Random(7).randbytes(256), np.uint8)


@njit
def _loads(at: Any) -> Any:
    return native.load_u8(at), native.load_i8(at), native.load_i16(at), native.load_i32(at), native.load_i64(at)


@njit
def _masks(at: Any, other: Any) -> Any:
    return native.equal_mask(at, 7), native.unequal_mask(at, other), native.block_masks(at)


@njit
def _bits(word: Any) -> Any:
    return native.lowest_bit(word), native.count_bits(word)


@njit
def _crc(at: Any, length: Any) -> Any:
    return native.masked_crc32(at, length)


def test_loads_are_big_endian_and_signed() -> None:
    for start in range(64):
        raw = DATA[start : start + 8].tobytes()
        wanted = (raw[0], *(int.from_bytes(raw[:size], "big", signed=True) for size in (1, 2, 4, 8)))
        assert _loads(DATA.ctypes.data + start) == wanted


def test_masks_name_bytes_of_a_block_by_bits() -> None:
    left, right = DATA[:64].copy(), DATA[:64].copy()
    left[[3, 40]], right[[3, 41]] = 7, 7
    left[[5, 6, 8]] = 1, 2, 0

    def mask(found: np.ndarray) -> int:
        return sum(1 << int(i) for i in np.flatnonzero(found))

    equal, unequal, kinds = _masks(left.ctypes.data, right.ctypes.data)
    assert (equal, unequal) == (mask(left == 7), mask(left != right))
    assert tuple(kinds) == (mask(left == 1), mask(left == 2), mask(left == 0), mask(left > 127))


def test_bits_and_checksums() -> None:
    assert _bits(np.uint64(0b10100)) == (2, 2) and _bits(np.uint64(0)) == (64, 0)
    for length in (0, 1, 5, 63, 64, 65, 255):
        assert _crc(DATA.ctypes.data, length) == zlib.crc32(DATA[:length].tobytes()) & 0x7FFFFFFF
    assert native.CRC_ENGINE
