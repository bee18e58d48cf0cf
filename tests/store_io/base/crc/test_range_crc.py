"""The CRC-32 of any range, in any order, from few bytes."""

from __future__ import annotations

import random
import zlib

import pytest

from store_io.base.crc.range_crc import PAGE_BYTES, RangeCrc

DATA = random.Random(5).randbytes(9 * PAGE_BYTES + 123)


def ranges(seed: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    found = [tuple(sorted((rng.randrange(len(DATA) + 1), rng.randrange(len(DATA) + 1)))) for _ in range(40)]
    return [*found, (0, len(DATA)), (PAGE_BYTES, 2 * PAGE_BYTES), (7, 7), (len(DATA), len(DATA))]  # type: ignore[list-item]


@pytest.mark.parametrize("seed", range(3))
def test_every_range_has_the_crc_of_its_bytes(seed: int) -> None:
    found = RangeCrc(lambda start, end: DATA[start:end])
    for start, end in ranges(seed):
        assert found.crc32(start, end) == zlib.crc32(DATA[start:end]), (start, end)


def test_overlapping_ranges_sum_up_the_file_about_once() -> None:
    found = RangeCrc(lambda start, end: DATA[start:end])
    for start in range(200):
        assert found.crc32(start, len(DATA)) == zlib.crc32(DATA[start:])
    assert found.summed < len(DATA) + 200 * 2 * PAGE_BYTES
