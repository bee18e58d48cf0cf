"""One frame through the reference check: what differs by who checks it and by release (recovery.md 3)."""

from __future__ import annotations

import pytest

from store_io.base.java.java_compat import int32
from store_io.broker.message_verdict import (
    AUDIT,
    BAD,
    BROKER,
    END,
    REPUT,
    VALID,
    BufferFrames,
    audit_frame,
    check_frame,
    parse_properties,
    properties_fault,
    property_crc_value,
    tags_code_of,
)
from store_io.broker.releases import Setting, broker_rules
from tests.support.stores.builders import Message, Sizes, StoreBuilder

PHY = 4096


def frame() -> bytearray:
    """One message at physical offset 4096, and unwritten bytes."""
    builder = StoreBuilder("5.3.3", Sizes(segment=4096), first_offset=PHY)
    builder.put(Message("T", body=b"body", keys="k", tags="t"))
    return bytearray(builder.segments[PHY])


def verdict(data: bytes, mode: str, release: str = "5.3.3", **settings: bool) -> tuple[str, str]:
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in settings.items()})
    found = check_frame(BufferFrames(data), 0, len(data), rules, mode)
    return found.kind, found.reason


@pytest.mark.parametrize("mode", [BROKER, AUDIT, REPUT])
def test_a_healthy_message_is_valid_for_everybody(mode: str) -> None:
    assert verdict(frame(), mode) == (VALID, "")


def test_only_who_reads_bodies_sees_a_changed_one() -> None:
    data = frame()
    data[data.index(b"body")] ^= 1
    assert [verdict(data, mode) for mode in (BROKER, AUDIT)] == [(BAD, "body_crc")] * 2
    assert verdict(data, REPUT) == (VALID, "")
    assert verdict(data, BROKER, checkCRCOnRecover=False) == (VALID, "")
    assert verdict(data, AUDIT, checkCRCOnRecover=False) == (BAD, "body_crc")


def test_the_audit_alone_compares_the_address() -> None:
    data = frame()
    assert audit_frame(BufferFrames(data), 0, len(data), PHY).kind == VALID
    moved = audit_frame(BufferFrames(data), 0, len(data), PHY + 1)
    assert (moved.kind, moved.reason, moved.expected, moved.actual) == (BAD, "phy_offset", str(PHY + 1), str(PHY))


def test_a_filler_ends_the_segment_and_a_size_beyond_the_file_is_told_since_5_3_2() -> None:
    filler = (100).to_bytes(4, "big") + b"\xcb\xd4\x31\x94" + bytes(92)
    assert verdict(filler, BROKER)[0] == END
    turned = b"\x80" + filler[1:]  # its sign bit
    assert [verdict(turned, BROKER, release) for release in ("5.3.1", "5.5.0", "5.5.1")] == [
        (END, "filler"),
        (END, "filler"),
        (BAD, "negative_size"),
    ]
    assert verdict(turned, AUDIT, "5.5.0")[0] == END
    data = frame()
    data[:4] = (len(data) + 1).to_bytes(4, "big")
    assert [verdict(data, BROKER, release) for release in ("5.3.1", "5.3.2")] == [
        ("half", "size_mismatch"),
        (BAD, "size_beyond_file"),
    ]


@pytest.mark.parametrize(
    ("text", "new", "old"),
    [
        ("a\x01b\x02", {"a": "b"}, {"a": "b"}),
        ("a\x01b\x01c\x02", {"a": "b\x01c"}, {}),
        ("a\x01\x02b\x01c\x02", {"b": "c"}, {"b": "c"}),
        ("a\x01b\x02a\x01c", {"a": "c"}, {"a": "c"}),
        ("\x01b\x02", {}, {"": "b"}),
    ],
)
def test_both_parsers_of_properties(text: str, new: dict[str, str], old: dict[str, str]) -> None:
    assert (parse_properties(text), parse_properties(text, old_parser=True)) == (new, old)


def test_tags_codes() -> None:
    delays = {1: 1000, 2: 5000}
    schedule = "SCHEDULE_TOPIC_XXXX"
    assert tags_code_of("T", {"TAGS": "a"}, 7, delays) == 97
    assert tags_code_of("T", {"DELAY": "2"}, 7, delays) == 0
    assert tags_code_of(schedule, {"DELAY": "2", "TAGS": "a"}, 7, delays) == 5007
    assert tags_code_of(schedule, {"DELAY": "9"}, 7, delays) == 5007, "capped to the highest level"
    assert tags_code_of(schedule, {"DELAY": "2", "TAGS": "a"}, 7, {}) == 97, "without a table the hash stays"
    assert tags_code_of(schedule, {"DELAY": "x"}, 7, delays) is None


def test_a_property_crc_has_its_digits_backwards() -> None:
    assert property_crc_value("7654321000") == 1234567
    assert property_crc_value("0987654321") == int32(1234567890)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", ""),
        (b"a\x01b\x02", ""),
        (b"a\x01b", ""),
        (b"a\x00\x01b\x02", "NUL bytes"),
        (b"\xff\x01b\x02", "not UTF-8"),
        (b"ab\x02", "a part"),
    ],
)
def test_what_no_broker_writes_as_properties(data: bytes, why: str) -> None:
    assert properties_fault(data).startswith(why) and bool(properties_fault(data)) is bool(why)
