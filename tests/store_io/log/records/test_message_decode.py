"""A record as clients decode it: without any check, up to where it cannot be read on."""

from __future__ import annotations

import pytest

from schemas.layouts import commitlog_layout as layout
from store_io.broker.releases import broker_rules
from store_io.log.records.message_decode import decode_message, field_place, host_text, names_place, stored_fields
from tests.support.stores.builders import Message, Sizes, StoreBuilder, field_position

RULES = broker_rules("5.3.3")


def record(**fields: object) -> tuple[bytes, object]:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096))
    made = builder.put(Message("T", body=b"body", keys="k", tags="t", **fields))  # type: ignore[arg-type]
    return bytes(builder.segments[0])[: made.size], made


def test_every_field_of_a_healthy_record() -> None:
    data, _ = record(queue_id=3)
    message = decode_message(data, RULES)
    assert message is not None
    assert (message.topic, message.queue_id, message.properties["KEYS"], message.properties["TAGS"]) == ("T", 3, "k", "t")
    assert data[message.body_position : message.body_position + message.body_length] == b"body"
    assert (message.total_size, message.phy_offset) == (len(data), 0)
    assert host_text(message.store_host).count(":") == 1


def test_a_wrong_checksum_is_nobodys_business_here() -> None:
    data, made = record()
    broken = bytearray(data)
    broken[field_position(made, "bodyCRC")[0]] ^= 0xFF  # type: ignore[arg-type]
    assert decode_message(bytes(broken), RULES) is not None


@pytest.mark.parametrize("kept", [0, 3, 40, 90])
def test_a_record_that_is_cut_off_is_none(kept: int) -> None:
    assert decode_message(record()[0][:kept], RULES) is None


def test_a_magic_counts_since_5_1_0() -> None:
    data = bytearray(record()[0])
    data[4] ^= 0xFF
    assert decode_message(bytes(data), RULES) is None
    assert decode_message(bytes(data), broker_rules("5.0.0")) is not None


def test_hosts_as_text() -> None:
    assert host_text(bytes([10, 0, 0, 7]) + (10911).to_bytes(4, "big")) == "10.0.0.7:10911"
    assert host_text(bytes(15) + b"\x01" + (9).to_bytes(4, "big")) == "[::1]:9"


def test_the_first_fields_are_given_as_they_are_stored() -> None:
    data, made = record(store_time=1_700_000_000_123, queue_id=3)
    fields = stored_fields(data)
    assert (fields["TOTALSIZE"], fields["QUEUEID"], fields["STORETIMESTAMP"]) == (len(data), 3, 1_700_000_000_123)
    low, high = field_place("BODYCRC", fields["SYSFLAG"])
    start, size = field_position(made, "bodyCRC")  # type: ignore[arg-type]
    assert (low, high) == (start, start + size) and fields["BODYCRC"] == int.from_bytes(data[low:high], "big", signed=True)
    assert stored_fields(data[:60])["STORETIMESTAMP"] == int.from_bytes(data[56:60] + bytes(4), "big")
    moved = layout.STORE_TIMESTAMP_POSITION + layout.IPV6_EXTRA_BYTES
    assert field_place("STORETIMESTAMP", layout.SYS_BORN_HOST_V6) == (moved, moved + 8)


def test_a_record_names_its_place_by_magic_and_physical_offset() -> None:
    data = bytearray(record()[0])
    assert names_place(bytes(data), 0) and not names_place(bytes(data), 1) and not names_place(bytes(data[:4]), 0)
    data[8] ^= 0xFF  # whatever else is wrong
    assert names_place(bytes(data), 0)
    data[4] ^= 0xFF
    assert not names_place(bytes(data), 0)
