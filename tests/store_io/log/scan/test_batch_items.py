"""What a batch's messages are to queues: rows for light queues in dispatch order, faults, uneven properties, flags met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from schemas.rows import RUN_LMQ, RUN_QUEUE, RUN_UNQUEUED
from store_io.broker.releases import broker_rules
from store_io.log.records import bridges
from store_io.log.records.message_columns import HAS_MULTI_DISPATCH, Columns, RecordCheck, TopicTable
from store_io.log.records.segment_items import BATCH_ROWS, BRIDGE_FLAGS, HOST_CHANGES, KIND_BATCH
from store_io.log.records.segment_walk import FAST, Decoding, capacity_for, decoder_of, walk_batches
from store_io.log.scan.batch_items import BatchItems
from store_io.source.segment_window import SegmentWindow
from tests.store_io.log.scan.test_segment_scan import BASE, FIVE, SEGMENT, MemoryFile, segment
from tests.support.stores.builders import PREPARED, Message, Record

PLAIN = FIVE[0]
LIGHT = replace(PLAIN, lmq=("%LMQ%a", "plain"))


def read_by_hand(names: str, offsets: str) -> Message:
    return Message(properties=(("INNER_MULTI_DISPATCH", names), ("INNER_MULTI_QUEUE_OFFSET", offsets)))


def batch_of(messages: Sequence[Message], *batch_topics: str) -> tuple[BatchItems, Decoding, list[Record]]:
    """Items of one batch that holds these messages, and what it was decoded with."""
    data, records = segment(messages)
    window = SegmentWindow(MemoryFile(SEGMENT, bytes(data)), len(data), len(data))  # type: ignore[arg-type]
    decoding = Decoding(decoder_of(FAST), window, Columns(capacity_for(len(window.buffer)), False), TopicTable())
    rules = broker_rules("5.3.3")
    batch = BatchItems(rules, decoding, batch_topics)
    assert next(walk_batches(decoding, RecordCheck.audit_of(BASE, rules), 0, len(data))) == len(messages)
    return batch, decoding, records


def test_each_light_queue_has_a_row_right_after_its_message() -> None:
    batch, decoding, records = batch_of([LIGHT, PLAIN, LIGHT])
    rows, kinds = batch.read(3)
    found = [(*decoding.topics.keys[row["topic_ref"]], int(row["queue_offset"]), int(row["phy_offset"])) for row in rows]
    first, second, third = (record.phy_offset for record in records)
    assert found == [
        ("TopicA", 0, 0, first), ("%LMQ%a", 0, 0, first), ("plain", 0, 0, first),
        ("TopicA", 0, 1, second),
        ("TopicA", 0, 2, third), ("%LMQ%a", 0, 1, third), ("plain", 0, 1, third),
    ]  # fmt: skip
    assert kinds.tolist() == [RUN_QUEUE, RUN_LMQ, RUN_LMQ, RUN_QUEUE, RUN_QUEUE, RUN_LMQ, RUN_LMQ]
    assert batch.met & HAS_MULTI_DISPATCH and not batch.faults and not batch.uneven


def test_a_light_offset_that_is_no_number_ends_the_entries_of_its_message_alone() -> None:
    batch, decoding, records = batch_of([PLAIN, read_by_hand("%LMQ%a,%LMQ%b,%LMQ%c", "7,x,9"), LIGHT])
    rows, _ = batch.read(3)
    assert [(int(row["phy_offset"]), text) for row, text in batch.faults] == [(records[1].phy_offset, "x")]
    entered = [decoding.topics.keys[row["topic_ref"]][0] for row in rows]
    assert entered == ["TopicA", "TopicA", "%LMQ%a", "TopicA", "%LMQ%a", "plain"] and int(rows[2]["queue_offset"]) == 7
    batch.read(1)
    assert batch.faults == []  # those of the last batch


def test_more_names_than_offsets_are_no_entries_and_no_fault() -> None:
    batch, _, records = batch_of([read_by_hand("%LMQ%a,%LMQ%b", "7")])
    rows, kinds = batch.read(1)
    ((row, text),) = batch.uneven
    assert int(row["phy_offset"]) == records[0].phy_offset and text.startswith("2 multi-dispatch queues and 1 offsets")
    assert len(rows) == 1 and kinds.tolist() == [RUN_QUEUE] and batch.faults == []
    batch.read(0)
    assert batch.uneven == []


def test_a_message_in_no_queue_enters_no_light_queue() -> None:
    batch, _, _ = batch_of([replace(LIGHT, sys_flag=PREPARED)])
    rows, kinds = batch.read(1)
    assert len(rows) == 1 and kinds.tolist() == [RUN_UNQUEUED]


@pytest.mark.parametrize(
    ("other", "met"),
    [
        ({}, 0),
        ({"topic": "Batches"}, BATCH_ROWS),
        ({"store_host": b"\x7f\x00\x00\x02\x00\x00\x2a\x9f"}, HOST_CHANGES),
        ({"flag": bridges.FLAG}, BRIDGE_FLAGS),
    ],
)
def test_met_says_what_is_among_the_messages(other: dict[str, object], met: int) -> None:
    batch, _, _ = batch_of([PLAIN, replace(PLAIN, **other)], "Batches")  # type: ignore[arg-type]
    _, kinds = batch.read(2)
    assert batch.met & (HAS_MULTI_DISPATCH | BATCH_ROWS | HOST_CHANGES | BRIDGE_FLAGS) == met
    assert (kinds[1] == KIND_BATCH) == (met == BATCH_ROWS)
    batch.read(1)
    assert not batch.met & (BATCH_ROWS | HOST_CHANGES | BRIDGE_FLAGS)
