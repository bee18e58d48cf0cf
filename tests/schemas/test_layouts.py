"""The layouts of derived files: each position is that of its field, and sizes agree with each other."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest

from schemas.layouts import checkpoint_layout, consumequeue_layout, index_layout

QUEUE, INDEX, CHECKPOINT = consumequeue_layout, index_layout, checkpoint_layout


@pytest.mark.parametrize(
    ("form", "places"),
    [
        (QUEUE.ENTRY_FORMAT, [QUEUE.ENTRY_PHY_OFFSET_POSITION, QUEUE.ENTRY_SIZE_POSITION, QUEUE.ENTRY_TAGS_CODE_POSITION]),
        (
            INDEX.HEADER_FORMAT,
            [
                INDEX.BEGIN_TIMESTAMP_POSITION, INDEX.END_TIMESTAMP_POSITION, INDEX.BEGIN_PHY_OFFSET_POSITION,
                INDEX.END_PHY_OFFSET_POSITION, INDEX.HASH_SLOT_COUNT_POSITION, INDEX.INDEX_COUNT_POSITION,
            ],
        ),
        (CHECKPOINT.FIELDS_FORMAT, [value for name, value in vars(CHECKPOINT).items() if name.endswith("_POSITION")]),
    ],
    ids=["ConsumeQueue", "index", "checkpoint"],
)  # fmt: skip
def test_each_position_is_that_of_its_field(form: str, places: Sequence[int]) -> None:
    numbers = [*range(1, len(places) + 1)]
    packed = struct.pack(form, *numbers)
    assert [packed[end - 1] for end in (*places[1:], len(packed))] == numbers and places[0] == 0


def test_sizes_are_those_of_the_fields() -> None:
    assert struct.calcsize(QUEUE.ENTRY_FORMAT) == QUEUE.ENTRY_BYTES
    assert struct.calcsize(QUEUE.EXT_UNIT_FORMAT) == QUEUE.EXT_UNIT_HEADER_BYTES
    assert struct.calcsize(">qiqqqhii") == QUEUE.BATCH_ENTRY_BYTES
    assert (struct.calcsize(INDEX.HEADER_FORMAT), struct.calcsize(INDEX.ENTRY_FORMAT)) == (INDEX.HEADER_BYTES, INDEX.ENTRY_BYTES)
    assert struct.calcsize(CHECKPOINT.FIELDS_FORMAT) <= CHECKPOINT.FILE_BYTES


def test_files_are_as_long_as_brokers_make_them() -> None:
    assert QUEUE.DEFAULT_FILE_BYTES % QUEUE.ENTRY_BYTES == QUEUE.DEFAULT_BATCH_FILE_BYTES % QUEUE.BATCH_ENTRY_BYTES == 0
    size = INDEX.HEADER_BYTES + INDEX.SLOT_BYTES * INDEX.DEFAULT_HASH_SLOTS + INDEX.ENTRY_BYTES * INDEX.DEFAULT_MAX_INDEX
    assert size == 420_000_040


def test_an_ext_address_is_no_tags_code() -> None:
    """Tags codes are 32-bit hashes or times; every address in the first files lies below all of them."""
    assert QUEUE.EXT_ADDRESS_BASE + QUEUE.DEFAULT_EXT_FILE_BYTES < QUEUE.EXT_ADDRESS_MAX < -(1 << 31)
