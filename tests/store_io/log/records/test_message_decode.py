"""A record as clients decode it: without any check, up to where it cannot be read on."""

from __future__ import annotations

import pytest

from store_io.broker.releases import broker_rules
from store_io.log.records.message_decode import decode_message, host_text
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
