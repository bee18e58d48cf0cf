"""Placeholder records fill a range exactly, and every release takes them."""

from __future__ import annotations

import pytest

from schemas.layouts.store_names import BRIDGE_TOPIC
from store_io.broker.message_verdict import VALID, BufferFrames, audit_frame, check_frame
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.log.records import bridges
from store_io.log.records.message_columns import Columns, RecordCheck, TopicTable, append_message

BASE = 1 << 30


def rules(release: str, **settings: bool) -> BrokerRules:
    return broker_rules(release, {key: Setting(value, "broker.conf") for key, value in settings.items()})


RULES = [
    rules("4.8.0"),
    rules("5.5.0"),
    rules("5.3.3", duplicationEnable=True),
    rules("5.3.3", forceVerifyPropCRC=True),
    rules("5.3.3", forceVerifyPropCRC=True, duplicationEnable=True),
]


@pytest.mark.parametrize("given", RULES)
@pytest.mark.parametrize("more", [0, 1, 17, 18, 500])
def test_one_record_of_exactly_that_many_bytes_is_valid(given: BrokerRules, more: int) -> None:
    size = bridges.least_bytes(given) + more
    data = bridges.record(BASE, size, 1_700_000_000_000, given)
    assert len(data) == size
    frames = BufferFrames(data)
    assert audit_frame(frames, 0, size, BASE).kind == VALID
    verdict = check_frame(frames, 0, size, given)
    assert (verdict.kind, verdict.size) == (VALID, size)
    message = verdict.message
    assert message is not None and not message.in_queue
    columns = Columns()
    append_message(columns, TopicTable(), message, frames, RecordCheck.broker(given))
    row = columns.rows[0]
    assert bridges.is_bridge(message.topic, row) and not bridges.is_bridge("T", row)
    assert bridges.topics(0, size, given) == {message.topic: 1} and message.topic == BRIDGE_TOPIC[:more]
    for name in ("flag", "sys_flag", "store_host", "queue_offset", "prepared_offset", "born_time"):
        other = row.copy()
        other[name] = 9
        assert not bridges.is_bridge(message.topic, other), name


@pytest.mark.parametrize("length", [0, 1, 90, 91, 92, 1000])
def test_a_long_range_is_filled_without_a_rest(length: int) -> None:
    given = rules("5.3.3")
    start, end = 4096, 4096 + bridges.MAX_BYTES + bridges.least_bytes(given) - 91 + length
    at = start
    for bridge in bridges.bridges(BASE, start, end, 5, given):
        assert bridge.position == at and bridges.least_bytes(given) <= bridge.size <= bridges.MAX_BYTES
        written = bytearray(bridge.size)
        for position, data in bridge.parts():
            written[position - at : position - at + len(data)] = data
        assert bytes(written) == bridge.record, "what is left out is zero"
        at += bridge.size
    assert at == end


def test_a_pad_is_in_a_queue_where_it_has_an_entry() -> None:
    given = rules("5.3.3")
    for queued in (False, True):
        data = bridges.pad(BASE, 5, given, queued)
        message = audit_frame(BufferFrames(data), 0, len(data), BASE).message
        assert message is not None and message.in_queue is queued and message.topic == BRIDGE_TOPIC
