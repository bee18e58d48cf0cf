"""Runs into all queues at once give what the same runs give one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from schemas.rows import RUN_DTYPE, QueueKey, SegmentSummary
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.queues import queue_puts
from store_io.broker.queues.queue_puts import QueuePuts, end_of
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import Setting, broker_rules
from tests.support.handmade.queue_states import FILE_BYTES, Disk

SCAN, QUEUES = ScanId("segment", 0), 12


def runs(seed: int) -> SegmentSummary:
    """Runs of a dozen queues, mostly in line; some go back, leave a gap, or lie beyond any sane offset."""
    rng = random.Random(seed)
    ends = [0] * QUEUES
    rows = np.zeros(300, RUN_DTYPE)
    for number, row in enumerate(rows):
        queue, records = rng.randrange(QUEUES), rng.randrange(1, 4)
        offset = ends[queue] + rng.choice([0] * 20 + [2, -1, 1 << 58])
        row["queue"], row["queue_offset"], row["records"], row["messages"] = queue, max(0, offset), records, records
        row["first_phy_offset"], row["last_phy_offset"] = number * 1000, number * 1000 + (records - 1) * 100
        row["first_size"] = row["last_size"] = 10
        ends[queue] += records
    return SegmentSummary("commitlog/0", 0, 1 << 20, runs=rows, queues=[("T", i) for i in range(QUEUES)])


def put(summary: SegmentSummary) -> dict[QueueKey, QueueState]:
    rules = broker_rules("5.3.3", {"mappedFileSizeConsumeQueue": Setting(FILE_BYTES, "broker.conf")})
    found: dict[QueueKey, QueueState] = {}

    def find(key: QueueKey) -> QueueState:
        if key not in found:
            found[key] = QueueState(key, False, f"q/{key[1]}", rules, Disk({}))
            found[key].pieces.scans.append(SCAN)
        return found[key]

    puts = QueuePuts(find, Needs())
    for part in np.array_split(np.arange(len(summary.runs)), 3):
        puts.put(SCAN, 0, summary, part)
    puts.settle()
    return found


def test_queues_of_which_there_are_many_are_looked_at_and_changed_in_the_order_of_their_keys() -> None:
    summary = runs(1)
    summary.queues.reverse()
    looked: list[QueueKey] = []
    found: dict[QueueKey, QueueState] = {}
    rules = broker_rules("5.3.3", {"mappedFileSizeConsumeQueue": Setting(FILE_BYTES, "broker.conf")})

    def find(key: QueueKey) -> QueueState:
        looked.append(key)
        if key not in found:
            found[key] = QueueState(key, False, f"q/{key[1]}", rules, Disk({}))
            found[key].pieces.scans.append(SCAN)
        return found[key]

    puts = QueuePuts(find, Needs(), many=lambda: True)
    puts.put(SCAN, 0, summary, np.arange(len(summary.runs)))
    assert looked[:QUEUES] == sorted(found) and len(found) == QUEUES
    looked.clear()
    puts.settle()
    assert looked and looked == sorted({*looked})
    assert {key: said(queue) for key, queue in found.items()} == {key: said(queue) for key, queue in put(summary).items()}


def said(queue: QueueState) -> object:
    pieces = [(p.start, p.count, p.first_phy, p.last_phy, p.run) for p in queue.pieces]
    return queue.max_phy, queue.max_offset, [(f.start, f.wrote) for f in queue.files], pieces


@pytest.mark.parametrize("seed", range(5))
def test_together_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    together = put(runs(seed))
    monkeypatch.setattr(queue_puts, "FEW_ROWS", 1 << 30)
    single = put(runs(seed))
    assert {key: said(queue) for key, queue in together.items()} == {key: said(queue) for key, queue in single.items()}
    assert sum(len(queue.pieces) for queue in together.values()) > 100


@pytest.mark.parametrize(("rows", "slow"), [(1, 1), (40, 3)])
def test_pieces_that_are_many_go_to_their_queues_meanwhile(rows: int, slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = put(runs(2))
    monkeypatch.setattr(queue_puts, "MOST_ROWS", rows)
    monkeypatch.setattr(queue_puts, "MOST_SLOW", slow)
    assert {key: said(queue) for key, queue in put(runs(2)).items()} == {key: said(queue) for key, queue in plain.items()}


def test_an_end_beyond_all_numbers_is_the_largest_one() -> None:
    most = np.iinfo(np.int64).max
    assert end_of(np.array([5, most - 1, 5]), np.array([10, 10, -10])).tolist() == [15, most, -5]
