"""Sizes and positions of ConsumeQueue entries agree with each other and with the default file sizes."""

from __future__ import annotations

import struct

from schemas import consumequeue_layout as layout


def test_an_entry_is_its_fields() -> None:
    assert struct.calcsize(layout.ENTRY_FORMAT) == layout.ENTRY_BYTES
    assert struct.calcsize(layout.EXT_UNIT_FORMAT) == layout.EXT_UNIT_HEADER_BYTES
    assert struct.calcsize(">qiqqqhii") == layout.BATCH_ENTRY_BYTES
    packed = struct.pack(layout.ENTRY_FORMAT, 1, 2, 3)
    places = (layout.ENTRY_PHY_OFFSET_POSITION, layout.ENTRY_SIZE_POSITION, layout.ENTRY_TAGS_CODE_POSITION)
    assert [packed[end - 1] for end in (*places[1:], len(packed))] == [1, 2, 3]


def test_files_hold_whole_entries() -> None:
    assert layout.DEFAULT_FILE_BYTES % layout.ENTRY_BYTES == layout.DEFAULT_BATCH_FILE_BYTES % layout.BATCH_ENTRY_BYTES == 0


def test_an_ext_address_is_no_tags_code() -> None:
    """Tags codes are 32-bit hashes or times; every address in the first files lies below all of them."""
    assert layout.EXT_ADDRESS_BASE + layout.DEFAULT_EXT_FILE_BYTES < layout.EXT_ADDRESS_MAX < -(1 << 31)
