"""A walk through a small window: batches, frames that only the reference takes, and stray messages."""

from __future__ import annotations

import pytest

from store_io.broker.message_verdict import END, Verdict
from store_io.log.records import commitlog_columns, commitlog_reader
from store_io.log.records.message_columns import (
    HAS_MULTI_DISPATCH,
    MALFORMED_PROPERTIES,
    ODD_HEADER,
    Columns,
    RecordCheck,
    TopicTable,
)
from store_io.log.records.segment_walk import Decoder, Decoding, StrayChain, stray_chain, walk_batches, whole_messages_end
from store_io.source.segment_window import SegmentWindow
from tests.store_io.log.scan.test_segment_scan import MemoryFile
from tests.support.stores.builders import Message, Record, StoreBuilder

BASE, SIZE = 4096, 4096
CHECK = RecordCheck.audit(BASE)


def made(moved: int = -1) -> tuple[bytes, list[Record]]:
    """A full segment of equal messages, and its records. moved: that one and the next store other addresses."""
    builder = StoreBuilder("5.3.3", first_offset=BASE)
    for number in range(12):
        phy_offset = 77 if number in (moved, moved + 1) and moved >= 0 else None
        builder.put(Message(body=b"b" * 100, phy_offset=phy_offset))
    builder.roll()
    return bytes(builder.segments[BASE]), builder.records


def decoding(data: bytes, decode: Decoder, window: int = 512, rows: int = 3) -> Decoding:
    file = MemoryFile("segment", data)
    return Decoding(decode, SegmentWindow(file, len(data), window), Columns(rows), TopicTable())  # type: ignore[arg-type]


def batches_of(given: Decoding, gathered: int) -> list[tuple[int, bool]]:
    """Of each batch: how many messages, and whether the window still holds the first one's bytes."""
    met, window, rows = [], given.window, given.columns.rows
    for count in walk_batches(given, CHECK, 0, window.size, gathered):
        met.append((count, window.start <= int(rows["position"][0]) < window.end))
    return met


def walk(given: Decoding, start: int = 0) -> tuple[list[int], int, Verdict]:
    """(positions of the messages, where the walk ends, the verdict there)"""
    met: list[int] = []
    batches = walk_batches(given, CHECK, start, given.window.size)
    while True:
        try:
            met += given.columns.rows["position"][: next(batches)].tolist()
        except StopIteration as end:
            return met, *end.value


@pytest.mark.parametrize("decode", [commitlog_columns.decode, commitlog_reader.decode], ids=["fast", "reference"])
@pytest.mark.parametrize("window", [200, 512, 1 << 16])
def test_all_messages_are_met_whatever_the_window(decode: Decoder, window: int) -> None:
    data, records = made()
    places = [record.at - BASE for record in records]
    met, end, verdict = walk(decoding(data, decode, window))
    assert met == places and verdict.kind == END and end == places[-1] + records[-1].size
    assert walk(decoding(data, decode, window), places[4])[0] == places[4:]


def test_rows_of_several_windows_are_given_together_up_to_a_number() -> None:
    data, _ = made()
    apart = batches_of(decoding(data, commitlog_columns.decode, rows=100), 0)
    assert sum(count for count, _ in apart) == 12 and all(held for _, held in apart)
    per_window = apart[0][0]
    assert 1 < per_window < 5
    together = [count for count, _ in batches_of(decoding(data, commitlog_columns.decode, rows=100), 5)]
    assert sum(together) == 12 and all(5 <= count < 5 + per_window for count in together[:-1])
    full = [count for count, _ in batches_of(decoding(data, commitlog_columns.decode, rows=4), 100)]
    assert full == [4, 4, 4]


READ = {  # flags of messages whose bytes a scan reads, and such a message
    HAS_MULTI_DISPATCH: Message(body=b"b", properties=(("INNER_MULTI_DISPATCH", "%LMQ%a"), ("INNER_MULTI_QUEUE_OFFSET", "0"))),
    MALFORMED_PROPERTIES: Message(body=b"b", raw_properties=b"a\x00b\x01c\x02"),
    ODD_HEADER: Message(body=b"b" * 100, sys_flag=1),  # it says that its body is compressed
}


@pytest.mark.parametrize("decode", [commitlog_columns.decode, commitlog_reader.decode], ids=["fast", "reference"])
@pytest.mark.parametrize("flag", READ, ids=["light queues", "malformed properties", "an odd header"])
def test_a_message_whose_bytes_are_read_is_given_while_the_window_holds_them(flag: int, decode: Decoder) -> None:
    builder = StoreBuilder("5.3.3", first_offset=BASE)
    for number in range(12):
        builder.put(READ[flag] if number == 7 else Message(body=b"b" * 100))
    builder.roll()
    given = decoding(bytes(builder.segments[BASE]), decode, rows=100)
    met, seen = [], 0
    for count in walk_batches(given, CHECK, 0, given.window.size, 100):
        met.append(count)
        for row in given.columns.rows[:count][given.columns.rows["flags"][:count] & flag != 0]:
            start = int(row["position"])
            assert given.window.start <= start and start + int(row["total_size"]) <= given.window.end
            seen += 1
    assert seen == 1 and len(met) > 1 and sum(met) == 12


def test_stray_messages_end_where_one_has_its_own_address() -> None:
    data, records = made(moved=3)
    places = [record.at - BASE for record in records]
    given = decoding(data, commitlog_columns.decode)
    assert walk(given)[1] == places[3]
    assert stray_chain(given, CHECK, places[3]) == StrayChain(places[5], 2, True)
    last = made(moved=11)[0]
    assert stray_chain(decoding(last, commitlog_columns.decode), CHECK, places[11])[1:] == (1, False)


def test_whole_messages_end_before_the_limit() -> None:
    data, records = made()
    window = decoding(data, commitlog_columns.decode).window
    second = records[2].at - BASE
    assert whole_messages_end(CHECK, window, 0, second) == second == whole_messages_end(CHECK, window, 0, second + 1)
    assert whole_messages_end(CHECK, window, 1, second) == 1
