"""The positions of a record's fields, against one that was written field by field."""

from __future__ import annotations

import struct

import pytest

from schemas.layouts import commitlog_layout as layout
from tests.support.stores.builders import Message, Sizes, StoreBuilder, field_position


@pytest.mark.parametrize(
    ("name", "position"),
    [
        ("size", layout.TOTAL_SIZE_POSITION),
        ("magic", layout.MAGIC_POSITION),
        ("bodyCRC", layout.BODY_CRC_POSITION),
        ("queueId", layout.QUEUE_ID_POSITION),
        ("flag", layout.FLAG_POSITION),
        ("queueOffset", layout.QUEUE_OFFSET_POSITION),
        ("physOffset", layout.PHY_OFFSET_POSITION),
        ("sysFlag", layout.SYS_FLAG_POSITION),
        ("storeTimestamp", layout.STORE_TIMESTAMP_POSITION),
        ("body", layout.BODY_POSITION),
    ],
)
def test_fields_stand_where_they_are_written(name: str, position: int) -> None:
    record = StoreBuilder("5.3.3", Sizes(segment=4096)).put(Message("T", body=b"body"))
    assert field_position(record, name)[0] == position


def test_magics_as_numbers_and_as_bytes() -> None:
    for number, data in (
        (layout.MAGIC_V1, layout.MAGIC_V1_BYTES),
        (layout.MAGIC_V2, layout.MAGIC_V2_BYTES),
        (layout.MAGIC_BLANK, layout.MAGIC_BLANK_BYTES),
    ):
        assert struct.pack(">i", number) == data


def test_the_smallest_record_is_all_fields_without_their_contents() -> None:
    assert layout.MIN_SIZE_V1_BYTES == layout.BODY_POSITION + 1 + 2
    assert layout.MIN_SIZE_V2_BYTES == layout.MIN_SIZE_V1_BYTES + 1
    assert layout.PROPERTY_CRC_BYTES == len(layout.PROPERTY_CRC_NAME) + 1 + 10 + 1
