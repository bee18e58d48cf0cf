"""Columns, the table of topics, and how the reference's messages become rows."""

from __future__ import annotations

import pytest

from store_io.base.java_compat import string_hash
from store_io.broker.message_verdict import BufferFrames
from store_io.broker.releases import broker_rules
from store_io.log.records.message_columns import (
    CHECK_BODY_CRC,
    CHECK_PHY_OFFSET,
    HAS_KEYS,
    HAS_TAGS,
    KNOWS_V2,
    Columns,
    RecordCheck,
    TopicTable,
    append_message,
    host_number,
    locate_properties,
    pair_hash,
)
from tests.support.stores.builders import Message, StoreBuilder, encode


def test_a_pair_keeps_its_number_when_the_table_grows() -> None:
    table = TopicTable()
    pairs = [(f"topic-{number}", number % 4) for number in range(300)]
    assert [table.number_of(*pair) for pair in pairs] == list(range(300))
    assert [table.number_of(*pair) for pair in reversed(pairs)] == list(reversed(range(300)))
    assert table.keys == pairs and len(table) == 300
    assert table.entries[7]["prefix_hash"] == string_hash("topic-7#") & 0xFFFFFFFF
    assert pair_hash(b"a", 1) != pair_hash(b"a", 2) != pair_hash(b"b", 2)


def test_a_message_becomes_a_row_and_a_full_table_refuses_one() -> None:
    record = StoreBuilder("5.3.3").put(Message("T", 3, b"body", tags="t", keys="k1 k2", born_time=5))
    frames, columns, topics, check = BufferFrames(encode(record)), Columns(1, want_keys=True), TopicTable(), RecordCheck.audit(0)
    message = check.verdict(frames, 0, record.size).message
    assert message is not None
    append_message(columns, topics, message, frames, check)
    row = columns.rows[0]
    assert (row["total_size"], row["born_time"], row["key_count"], row["body_len"]) == (record.size, 5, len(["k1", "k2"]), 4)
    assert row["flags"] & HAS_TAGS and row["flags"] & HAS_KEYS and topics.keys == [("T", 3)]
    assert row["tags_code"] == string_hash("t") and columns.key_hash_count == 3  # two keys and the tag key
    with pytest.raises(ValueError, match="no room"):
        append_message(columns, topics, message, frames, check)
    columns.clear()
    assert columns.count == columns.key_hash_count == 0 and not columns.full


def test_a_check_is_bits_for_compiled_code() -> None:
    audit, old = RecordCheck.audit(0).settings, RecordCheck.broker(broker_rules("4.8.0")).settings
    assert audit & CHECK_PHY_OFFSET and audit & CHECK_BODY_CRC and audit & KNOWS_V2
    assert not old & CHECK_PHY_OFFSET and old & CHECK_BODY_CRC and not old & KNOWS_V2
    assert not RecordCheck.reput(broker_rules("5.3.3")).settings & CHECK_BODY_CRC


def test_properties_are_located_as_they_are_parsed() -> None:
    data = b"TAGS\x01a\x02KEYS\x01b c\x02TAGS\x01d"
    assert {name: data[at : at + size] for name, (at, size) in locate_properties(data).items()} == {
        b"TAGS": b"d",
        b"KEYS": b"b c",
    }
    assert host_number(bytes(8)) == 0 and host_number(bytes(19) + b"\x05") == 5
