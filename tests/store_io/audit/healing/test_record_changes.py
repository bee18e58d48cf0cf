"""The single changes that make one record whole, and what is made of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from store_io.audit.healing import record_changes
from store_io.audit.healing.changes import Healing
from tests.support.answers.healing import SIZES, Damaged, healed
from tests.support.stores import builders
from tests.support.stores.builders import Message, Store, StoreBuilder

TIME = 1_700_000_000_000
MIDDLE = 3  # the record that is damaged
PACKED = Message(
    "TopicA", 0, zlib.compress(bytes(i * i * 7 % 251 for i in range(6000))), tags="a",
    sys_flag=builders.COMPRESSED["zlib"], born_time=TIME,
)  # fmt: skip


def damaged_store(folder: Path, *messages: Message) -> Damaged:
    """Five messages of which the one in the middle can be given."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(6):
        plain = Message("TopicA", 0, bytes([65 + number]) * 90, tags="a", uniq=f"{number:032X}", born_time=TIME)
        builder.put(messages[0] if messages and number == MIDDLE else plain)
    store: Store = builder.write(folder / "store")
    return Damaged(store)


def with_change(damaged: Damaged, change: Callable[[bytearray, builders.Record], None]) -> tuple[bytes, list[Healing]]:
    data = bytearray(damaged.bytes[0])
    change(data, damaged.records(0)[MIDDLE])
    assert bytes(data) != damaged.bytes[0]
    return bytes(data), damaged.search(0, bytes(data))


def xor(name: str, mask: int, byte: int = 0) -> Callable[[bytearray, builders.Record], None]:
    def change(data: bytearray, record: builders.Record) -> None:
        data[record.at + builders.field_position(record, name)[0] + byte] ^= mask

    return change


def test_what_is_said_of_a_change(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path)
    data, (healing,) = with_change(damaged, xor("physOffset", 0x41, 6))
    record = damaged.records(0)[MIDDLE]
    assert healing.heals and healing.change is not None
    assert healing.change.field == "PHYSICALOFFSET" and healing.change.position == record.at + 28 + 6
    assert (healing.start, healing.end, healing.phy_offset) == (record.at, record.at + record.size, record.at)
    assert (healing.topic, healing.queue_id, healing.queue_offset) == ("TopicA", 0, MIDDLE)
    assert "entry leads here" in healing.reason and healing.risk < 1e-9
    assert healed(data, [healing]) == damaged.bytes[0]


def test_without_an_entry_the_neighbours_in_the_queue_tell(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path)
    damaged.queues = replace(damaged.queues, queues={})
    data, healings = with_change(damaged, xor("magic", 0x10))
    assert healed(data, healings) == damaged.bytes[0] and "beside it in its queue" in healings[0].reason


def test_a_record_that_nothing_locates_stays(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path, Message("Alone", 0, b"x" * 90, born_time=TIME))
    damaged.queues = replace(damaged.queues, queues={})
    _, (healing,) = with_change(damaged, xor("magic", 0x10))
    assert healing.change is not None and not healing.heals and "neither a ConsumeQueue entry" in healing.why_not


def test_an_old_record_is_not_moved_to_where_it_lies(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path)
    first = damaged.records(0)[1]

    def put(data: bytearray, record: builders.Record) -> None:
        assert first.size == record.size
        data[record.at : record.at + record.size] = data[first.at : first.at + first.size]

    _, (healing,) = with_change(damaged, put)
    assert healing.change is not None and healing.change.field == "PHYSICALOFFSET" and not healing.heals
    assert "entry says otherwise" in healing.why_not and "contradict" in healing.why_not


def test_a_body_that_is_too_long_for_the_risk_stays(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path, Message("TopicA", 0, bytes(900), tags="a", born_time=TIME))

    def body(data: bytearray, record: builders.Record) -> None:
        data[record.at + 88 + 300] ^= 0x81

    data, (healing,) = with_change(damaged, body)
    assert not healing.heals and "the risk, 1 in 9,000, is not below 1 in 10,000" in healing.why_not
    damaged.risk = 1e-3
    assert healed(data, with_change(damaged, body)[1]) == damaged.bytes[0]


def test_a_packed_body_that_unpacks_lowers_the_risk(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path, PACKED)
    assert 255 * len(PACKED.body) / 2**31 > 2e-5

    def in_body(data: bytearray, record: builders.Record) -> None:
        data[record.at + 88 + 100] ^= 0x81

    data, (healing,) = with_change(damaged, in_body)
    assert healing.heals and "unpacks" in healing.reason and healing.risk < 1e-8
    assert healed(data, [healing]) == damaged.bytes[0]


def test_two_records_beside_one_another_each_with_a_fault(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path)

    def both(data: bytearray, record: builders.Record) -> None:
        data[record.at + 88] ^= 2
        data[record.at + record.size + 4] ^= 8

    data, healings = with_change(damaged, both)
    assert [h.change.field for h in healings if h.change is not None] == ["BODY", "MAGICCODE"]
    assert healed(data, healings) == damaged.bytes[0]


@pytest.mark.parametrize("place", [12, 17, 45, 52, 60, 66, -30, -3])
def test_an_appended_checksum_leads_to_any_byte(place: int, tmp_path: Path) -> None:
    """Of the queue id, the producer's flag, times, hosts, properties, and of the checksum's own digits."""
    message = Message("TopicA", 0, b"x" * 90, tags="a", born_time=TIME, properties=(("p", "value"),), property_crc=True)
    damaged = damaged_store(tmp_path, message)

    def change(data: bytearray, record: builders.Record) -> None:
        data[record.at + place % record.size] ^= 1

    data, healings = with_change(damaged, change)
    assert healed(data, healings) == damaged.bytes[0]


def test_a_byte_that_no_check_covers_beside_a_healed_one_forbids_it_where_it_shows(tmp_path: Path) -> None:
    for name, byte in (("storeTimestamp", 4), ("bornHost", 4), ("preparedOffset", 7), ("reconsumeTimes", 0), ("queueId", 3)):
        damaged = damaged_store(tmp_path / name)

        def two(data: bytearray, record: builders.Record, name: str = name, byte: int = byte) -> None:
            data[record.at + 90] ^= 2
            data[record.at + builders.field_position(record, name)[0] + byte] ^= 0x41

        _, healings = with_change(damaged, two)
        assert not any(h.heals for h in healings), name


def to_checksum(body: bytes, wanted: int, at: int) -> bytes:
    """The body with four bytes at that place that give it this checksum."""
    made = bytearray(body)
    made[at : at + 4] = bytes(4)
    base, columns = zlib.crc32(made), {}
    for bit in range(32):
        made[at + bit // 8] ^= 1 << bit % 8
        column, mask = zlib.crc32(made) ^ base, 1 << bit
        made[at + bit // 8] ^= 1 << bit % 8
        while column and column.bit_length() in columns:
            other, its = columns[column.bit_length()]
            column, mask = column ^ other, mask ^ its
        columns[column.bit_length()] = column, mask
    rest, bits = base ^ wanted, 0
    while rest:
        column, mask = columns[rest.bit_length()]
        rest, bits = rest ^ column, bits ^ mask
    made[at : at + 4] = bits.to_bytes(4, "little")
    assert zlib.crc32(made) == wanted
    return bytes(made)


def forged(data: bytearray, record: builders.Record) -> None:
    """A body with 34 wrong bytes whose checksum differs from the stored one in a single byte."""
    body = builders.field_position(record, "bodyLength")[0] + 4
    at = slice(record.at + body, record.at + body + len(record.body))
    wanted = zlib.crc32(record.body) & 0x7FFFFFFF ^ 0x5500
    data[at] = to_checksum(bytes(90 - i for i in range(30)) + bytes(data[at])[30:], wanted, 40)


def test_nothing_beside_the_body_speaks_for_its_checksum_field(tmp_path: Path) -> None:
    """Its entry and its neighbours say the same whichever of the two is wrong; and more often it is the body, which is longer."""
    damaged = damaged_store(tmp_path)
    damaged.risk = 1e-8
    _, (healing,) = with_change(damaged, forged)
    assert healing.change is not None and healing.change.field == "BODYCRC" and not healing.heals
    assert healing.risk == 255 * 90 / 2**31 and "the risk, 1 in 90,000" in healing.why_not


def test_a_packed_body_says_whether_it_or_its_checksum_field_is_wrong(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path, PACKED)
    data, (healing,) = with_change(damaged, xor("bodyCRC", 0x41, 2))
    assert healing.heals and healing.risk == 255 * len(PACKED.body) / 2**47 and healed(data, [healing]) == damaged.bytes[0]
    assert not any(h.heals for h in with_change(damaged, forged)[1])


@pytest.mark.parametrize(
    ("name", "byte", "bits"),
    [("size", 2, 16 + 32), ("magic", 1, 16 + 48), ("physOffset", 6, 48), ("bodyLength", 3, 16 + 31), ("bodyCRC", 1, 31)],
)
def test_only_what_speaks_of_the_field_lowers_its_risk(name: str, byte: int, bits: int, tmp_path: Path) -> None:
    """heal.md 3: bits by what holds with the change and not before, which did not give the value."""
    damaged = damaged_store(tmp_path)
    _, (healing,) = with_change(damaged, xor(name, 0x41, byte))
    tried = healing.risk * 2**bits
    assert healing.heals and tried == int(tried) and 1 <= tried <= 255 * 90


def test_each_length_that_a_long_topic_could_have_counts_as_tried(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path, Message("L" * 200, 0, b"x" * 90, tags="a", uniq="0" * 32, born_time=TIME))
    data, (healing,) = with_change(damaged, xor("topicLength", 0x21, 1))
    assert healed(data, [healing]) == damaged.bytes[0] and healing.risk * 2**48 > 200


def test_properties_that_are_not_there_prove_no_length(tmp_path: Path) -> None:
    """The lengths' sum gave the value, so it is no evidence; the first property's name would be."""
    damaged = damaged_store(tmp_path, Message("TopicA", 0, b"x" * 90, born_time=TIME))
    _, (healing,) = with_change(damaged, xor("propsLength", 0x01, 1))
    assert healing.change is not None and healing.risk == 1 and not healing.heals
    _, (healing,) = with_change(damaged_store(tmp_path / "named"), xor("propsLength", 0x01, 1))
    assert healing.heals and healing.risk == 2**-16


def test_what_unpacked_before_the_change_too_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes after the packed body's end are covered by its own checksum as little as those of another message."""
    body = PACKED.body + b"more" * 10
    damaged = damaged_store(tmp_path, replace(PACKED, body=body))

    def behind(data: bytearray, record: builders.Record) -> None:
        data[record.at + 88 + len(body) - 5] ^= 0x81

    _, (healing,) = with_change(damaged, behind)
    assert healing.risk == 255 * len(body) / 2**31 and "unpacks" not in healing.reason
    monkeypatch.setattr(record_changes, "MOST_INFLATED", 1000)  # nor one that becomes too large
    _, (healing,) = with_change(damaged_store(tmp_path / "large", PACKED), xor("bodyCRC", 0x41, 2))
    assert healing.risk == 255 * len(PACKED.body) / 2**31


def test_an_empty_body_has_no_checksum_that_could_agree(tmp_path: Path) -> None:
    """The checksum field of an empty body is 0, and that speaks for its length; any other value says nothing."""
    damaged = damaged_store(tmp_path, Message("TopicA", 0, b"", tags="a", born_time=TIME))
    data, (healing,) = with_change(damaged, xor("bodyLength", 1, 3))
    assert healed(data, [healing]) == damaged.bytes[0]


def test_an_entry_with_an_ext_address_is_no_comparison_of_tags_codes(tmp_path: Path) -> None:
    damaged = damaged_store(tmp_path)
    path = next(iter(damaged.store.root.glob("consumequeue/TopicA/0/*")))
    entries = bytearray(path.read_bytes())
    entries[MIDDLE * 20 + 12 : MIDDLE * 20 + 20] = (-(1 << 63) + 5).to_bytes(8, "big", signed=True)
    path.write_bytes(bytes(entries))
    _, (healing,) = with_change(damaged, xor("physOffset", 0x41, 6))
    assert healing.heals and "its tags code, which is not compared" in healing.reason and "and tags code" not in healing.reason
