"""Sizes and positions of the index file agree with each other."""

from __future__ import annotations

import struct

from schemas import index_layout as layout


def test_header_and_entries_are_their_fields() -> None:
    assert struct.calcsize(layout.HEADER_FORMAT) == layout.HEADER_BYTES
    assert struct.calcsize(layout.ENTRY_FORMAT) == layout.ENTRY_BYTES
    places = (
        layout.BEGIN_TIMESTAMP_POSITION, layout.END_TIMESTAMP_POSITION, layout.BEGIN_PHY_OFFSET_POSITION,
        layout.END_PHY_OFFSET_POSITION, layout.HASH_SLOT_COUNT_POSITION, layout.INDEX_COUNT_POSITION,
    )  # fmt: skip
    packed = struct.pack(layout.HEADER_FORMAT, 1, 2, 3, 4, 5, 6)
    assert [packed[end - 1] for end in (*places[1:], len(packed))] == [1, 2, 3, 4, 5, 6]


def test_the_default_file_is_as_long_as_brokers_make_it() -> None:
    size = layout.HEADER_BYTES + layout.SLOT_BYTES * layout.DEFAULT_HASH_SLOTS + layout.ENTRY_BYTES * layout.DEFAULT_MAX_INDEX
    assert size == 420_000_040
