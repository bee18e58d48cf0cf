"""Queues beyond a topic's numbers of queues: at most a note."""

from __future__ import annotations

import pytest

from schemas.rows import NOTE
from store_io.kinds.config.against_queues import narrow_topics
from store_io.kinds.config.config_reader import StoreConfig
from store_io.outcome.final_findings import completed
from tests.support.handmade.evidence import copy_of, evidence_of

HELD = {("T", 0): 4, ("T", 2): 5, ("T", 3): 6, ("unknown", 9): 1}


@pytest.mark.parametrize(("read", "write", "count"), [(4, 4, None), (4, 2, None), (2, 4, None), (3, 2, 6), (1, 2, 11)], ids=str)
def test_only_what_neither_number_covers_is_noted(read: int, write: int, count: int | None) -> None:
    config = StoreConfig(topics={"T": {"readQueueNums": read, "writeQueueNums": write}})
    found = [completed(f) for f in narrow_topics(evidence_of(copy_of({"config/topics.json": 9}, config=config)), HELD)]
    assert [f.count for f in found] == ([count] if count else [])
    assert all((f.code, f.severity, f.topic, f.file) == ("queue_beyond_topic", NOTE, "T", "config/topics.json") for f in found)


@pytest.mark.parametrize("number", [999, 1000, 1001, 10_000])
def test_topics_beyond_the_bound_are_counted(number: int) -> None:
    config = StoreConfig(topics={f"T{n}": {"readQueueNums": 1, "writeQueueNums": 1} for n in range(number)})
    held = {(f"T{n}", 1): 2 for n in range(number)}
    found = narrow_topics(evidence_of(copy_of({"config/topics.json": 9}, config=config)), held)
    assert len(found) == min(number, 1000) and sum(f.count + f.more for f in found) == 2 * number


def test_topics_that_every_broker_has_are_left_out() -> None:
    config = StoreConfig(topics={"T": {"readQueueNums": 1, "writeQueueNums": 1}}, built_in_topics=frozenset({"T"}))
    assert list(narrow_topics(evidence_of(copy_of(config=config)), HELD)) == []
