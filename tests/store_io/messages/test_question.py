"""One question: which segments it leaves out, what it says of them, and what travels to a task."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.sources import LOST
from store_io.messages.choice.by_tables import EarlierTimes, KnownSegment
from store_io.messages.lost.lost_places import LostPlaces
from store_io.messages.lost.segment_loss import SegmentLoss
from store_io.messages.message_filter import Contents, MessageFilter
from store_io.messages.message_search import search
from store_io.messages.open_store import OpenStore, first_store_time, open_store
from store_io.messages.question import ByTimes, Narrowing, Question, open_search
from store_io.source.byte_source import StoreLocation
from tests.support.damage import invert_byte
from tests.support.stores import builders
from tests.support.stores.builders import Message, Store, StoreBuilder


@pytest.fixture
def opened(small: Store) -> OpenStore:
    return open_store(StoreLocation(str(small.root)), small.release, small.broker_conf)


def _nothing(fact: Narrowing) -> None:
    raise AssertionError(fact)


def test_a_question_is_told_what_an_earlier_audit_rules_out(opened: OpenStore) -> None:
    first, second = opened.segments()
    times = EarlierTimes("run", {first.path: KnownSegment(first.size, 1, "", 10, 20)})
    told: list[Narrowing] = []
    for bounds, left in (((30, None), [second]), ((None, 11), [first, second]), ((20, 21), [first, second])):
        asked = replace(open_search(opened, Question(MessageFilter(store_times=bounds))), earlier=times)
        assert [part.file for part in asked.parts(told.append)] == left
        assert told.pop() == ByTimes(times, len(left), 2)
    without_times = replace(open_search(opened, Question(MessageFilter(phy_offsets=(1024, None)))), earlier=times)
    assert [part.file for part in without_times.parts(_nothing)] == [second]


def test_tasks_read_no_segment_that_keeps_all(opened: OpenStore) -> None:
    places = LostPlaces("5.3.3", 0, 1, 0, 0, {opened.segments()[1].path: SegmentLoss(cut=0)})
    for columns, only_lost, count in ((("phy_offset", LOST), False, 2), (("phy_offset",), True, 1)):
        question = Question(columns=columns, only_lost=only_lost)
        assert question.needs_audit and not Question().needs_audit
        asked = replace(open_search(opened, question), places=places)
        assert len(asked.parts(_nothing)) == 2  # an export names each of them
        pieces = asked.pieces(_nothing, 1)
        assert len(pieces) == count and [bool(part.loss) for part in pieces].count(True) == 1


def test_parts_travel_and_give_the_rows(small: Store, opened: OpenStore) -> None:
    question = Question(MessageFilter(topics=frozenset({"TopicA"})), columns=("phy_offset",)).narrowed(
        MessageFilter(queue_offsets=(2, 11)), Contents(in_keys=("k",))
    )
    asked = open_search(opened, question)
    scan, contents = pickle.loads(pickle.dumps((asked.scan, asked.question.contents)))
    found = [
        row["phy_offset"]
        for part in asked.parts(_nothing)
        for batch in search(pickle.loads(pickle.dumps(part)).scan(scan), contents)
        for row in batch.to_pylist()
    ]
    assert found == [r.at for n, r in enumerate(small.records) if 2 <= n < 11 and n != 7]


def test_the_first_few_suffice_only_of_a_queue_s_range() -> None:
    queue = MessageFilter(frozenset({"T"}), frozenset({0}), (3, None))
    assert Question(queue, limit=2).enough == 3 and Question(queue).enough is None
    for other in (
        Question(replace(queue, tags=frozenset({"t"})), limit=2),
        Question(replace(queue, store_times=(0, None)), limit=2),
        Question(replace(queue, phy_offsets=(0, None)), limit=2),
        Question(queue, Contents(key="k"), limit=2),
        Question(queue, unpack=True, limit=2),
    ):
        assert other.enough is None


def test_segments_by_their_first_times(tmp_path: Path) -> None:
    hour = 3_600_000
    b = StoreBuilder(sizes=builders.Sizes(segment=512))
    for i in range(5):  # one message a segment, ten hours apart
        b.put(Message(body=b"x" * 300, store_time=1_700_000_000_000 + 10 * i * hour))
        b.roll()
    written = b.write(tmp_path / "store", spare=True)
    store = open_store(StoreLocation(str(written.root)), "5.3.3", written.broker_conf)

    def chosen(low: int | None, high: int | None) -> list[int]:
        ends = tuple(None if n is None else 1_700_000_000_000 + n * hour for n in (low, high))
        asked = Question(MessageFilter(store_times=(ends[0], ends[1])), trust_clock=True)
        return [part.file.start // 512 for part in open_search(store, asked).parts(_nothing)]

    assert chosen(None, None) == chosen(0, 100) == [0, 1, 2, 3, 4, 5]
    assert chosen(20, 21) == [1, 2, 5]  # a segment without a message is never skipped; the hour's margin keeps the one before
    assert chosen(22, 29) == [2, 5]
    assert chosen(None, 5) == [0, 5]
    first = written.root / "commitlog" / f"{1024:020d}"
    invert_byte(first, 4, 1)
    assert first_store_time(store.source(), store.rules, store.segments()[2]) is None
    assert chosen(40, 41) == [1, 2, 3, 4, 5]
