"""The checkpoint's fields stand one after the other and fit into the file."""

from __future__ import annotations

import struct

from schemas import checkpoint_layout as layout


def test_each_position_is_that_of_its_field() -> None:
    places = [value for name, value in vars(layout).items() if name.endswith("_POSITION")]
    packed = struct.pack(layout.FIELDS_FORMAT, *range(1, 7))
    assert [packed[place + 7] for place in places] == [1, 2, 3, 4, 5, 6]
    assert len(packed) <= layout.FILE_BYTES
