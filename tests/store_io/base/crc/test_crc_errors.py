from __future__ import annotations

import random
import zlib

import pytest

from store_io.base.crc.crc_errors import MOST_ERRORS, byte_errors


def crc(data: bytes) -> int:
    return zlib.crc32(data) & 0x7FFFFFFF


@pytest.mark.parametrize("size", [1, 2, 5, 64, 1000])
def test_the_wrong_byte_is_among_those_that_explain_the_checksum(size: int) -> None:
    at = random.Random(size)
    for _ in range(50):
        data = at.randbytes(size)
        place, mask = at.randrange(size), at.randrange(1, 256)
        damaged = bytearray(data)
        damaged[place] ^= mask
        found = byte_errors(crc(data), crc(damaged), size)
        assert (place, mask) in found
        for error in found:  # each of them does explain it
            other = bytearray(damaged)
            other[error.at] ^= error.mask
            assert crc(other) == crc(data)


def test_two_wrong_bytes_are_mostly_explained_by_none() -> None:
    at, explained = random.Random(3), 0
    for _ in range(500):
        data = at.randbytes(200)
        damaged = bytearray(data)
        for place in at.sample(range(200), 2):
            damaged[place] ^= at.randrange(1, 256)
        explained += bool(byte_errors(crc(data), crc(damaged), 200))
    assert explained <= 1  # 500 times 255 * 200 / 2^31 is 0.01


def test_a_bit_is_told_from_a_byte() -> None:
    data = bytes(100)
    for mask, one_bit in ((4, True), (5, False)):
        damaged = bytearray(data)
        damaged[40] ^= mask
        (error,) = byte_errors(crc(data), crc(damaged), 100)
        assert (error.at, error.mask, error.one_bit) == (40, mask, one_bit)


def test_equal_checksums_have_no_error_and_a_bound_holds() -> None:
    with pytest.raises(ValueError, match="equal"):
        byte_errors(5, 5, 10)
    assert len(byte_errors(1, 2, 1 << 20)) <= MOST_ERRORS
