"""The map of a log whose segments' names are at the edge of what a physical offset can be."""

from __future__ import annotations

import numpy as np

from schemas.rows import EXTENT_MESSAGE, Extent, SegmentSummary
from store_io.model.log_map import BEYOND, MESSAGE, log_map


def segment(base: int, size: int = 4096) -> SegmentSummary:
    return SegmentSummary(f"commitlog/{base:020d}", base, size, extents=[Extent(EXTENT_MESSAGE, 0, 100, 1)])


def test_a_segment_beyond_the_largest_offset_is_no_part_of_the_log() -> None:
    for base in ((1 << 63) - 4096, 9223372036854775000, 1 << 63, 10**20 - 1):
        log = log_map([segment(base), segment(4096)], 4096)
        assert (log.start, log.end, log.data_end, log.bases) == (4096, 8192, 4196, (4096,))
        assert log.kind_at(np.array([4096, (1 << 63) - 1])).tolist() == [MESSAGE, BEYOND]
        assert log_map([segment(base)], 4096).end == 0
    assert log_map([segment((1 << 63) - 4097)], 4096).end == (1 << 63) - 1
