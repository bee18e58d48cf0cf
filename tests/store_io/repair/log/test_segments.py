"""What a repair asks of one segment."""

from __future__ import annotations

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, Extent, SegmentSummary
from store_io.repair.log.edits import filler, message_extents, segment_path


def test_names_fillers_and_messages() -> None:
    assert segment_path(4096) == "commitlog/00000000000000004096"
    assert filler(258) == b"\0\0\1\2\xcb\xd4\x31\x94"
    extents = [Extent(EXTENT_MESSAGE, 0, 10, 1), Extent(EXTENT_DAMAGED, 10, 20, 0)]
    assert message_extents(SegmentSummary("commitlog/0", 0, 20, extents=extents)) == extents[:1]
