"""Runs of a whole store as columns: ranges, runs by queue, pickles, and that a large store costs what it must."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from schemas.rows import (
    MATCH_MISSING,
    RUN_DTYPE,
    RUN_LMQ,
    RUN_QUEUE,
    RUN_UNQUEUED,
    WALK_AUDIT,
    WALK_BROKER,
    QueueKey,
    SegmentSummary,
)
from store_io.broker.releases import broker_rules
from store_io.kinds.queues.queue_entries import missing_findings
from store_io.log.scan import stored_runs as module
from store_io.log.scan.stored_runs import RunShelf, StoredSummary
from store_io.model import queue_runs
from store_io.model.loss import QueueLoss
from store_io.model.queue_runs import BLOCK_QUEUES, StoreRuns, message_runs, stored_runs, stretches
from store_io.model.queue_views import KnownQueues, queue_views

LARGEST = (1 << 63) - 1


def ranges(first: list[int], count: list[int]) -> list[tuple[int, int]]:
    return stretches(np.array(first, np.int64), np.array(count, np.int64))


def test_neighbouring_runs_become_one_range() -> None:
    assert ranges([5, 8, 20, 22, 1], [3, 12, 2, 1, 4]) == [(5, 23), (1, 5)]
    assert ranges([], []) == []


def test_a_range_at_the_largest_number_is_exact() -> None:
    assert ranges([LARGEST - 1, -(LARGEST + 1) + 1], [3, 2]) == [(LARGEST - 1, LARGEST + 2), (-LARGEST, -LARGEST + 2)]


def segment(base: int, rows: list[tuple[int, int, int, int]], queues: list[QueueKey]) -> SegmentSummary:
    """rows: (queue, walk, kind, position)."""
    runs = np.zeros(len(rows), RUN_DTYPE)
    for run, (queue, walk, kind, position) in zip(runs, rows, strict=True):
        run["queue"], run["walk"], run["kind"], run["first_position"] = queue, walk, kind, position
    return SegmentSummary(f"commitlog/{base:020d}", base, 1000, queues=queues, runs=runs)


def test_runs_of_each_queue_in_the_order_of_the_log() -> None:
    a, b, lmq = ("A", 0), ("B", 1), ("%LMQ%x", 0)
    segments = [
        segment(0, [(0, 3, 0, 10), (1, 3, 0, 20), (0, WALK_BROKER, 0, 30), (0, 3, RUN_UNQUEUED, 40), (0, 3, 0, 50)], [b, a]),
        segment(1000, [(0, WALK_AUDIT, 0, 5), (1, 3, RUN_LMQ, 6), (2, 3, 0, 7)], [a, lmq, b]),
    ]
    for by_queue in (StoreRuns(segments).by_queue, stored_runs):
        found = {key: runs.positions.tolist() for key, runs in by_queue(segments, False, {}).items()}
        assert found == {a: [20, 1005], b: [10, 50, 1007]}
        found = {key: runs.segments.tolist() for key, runs in by_queue(segments, True, {}).items()}
        assert found == {a: [0, 1], b: [0, 0, 1], lmq: [1]}
        known = dict(by_queue(segments, False, {lmq: ""}))
        assert known[lmq].rows["first_position"].tolist() == [6]


@pytest.mark.parametrize("most", [queue_runs.BLOCK_RUNS, 40, 1])
def test_more_queues_than_are_gathered_together(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_runs, "BLOCK_RUNS", most)
    count = 3 * BLOCK_QUEUES + 5
    keys: list[QueueKey] = [("T", number) for number in range(count)]
    segments = [segment(base, [(q, 3, 0, q) for q in range(count)], keys) for base in (0, 1000, 2000)]
    for found in (dict(StoreRuns(segments).by_queue(segments, False, {})), dict(stored_runs(segments, False, {}))):
        for number in (count - 1, 0, BLOCK_QUEUES, BLOCK_QUEUES - 1, count - 1):  # in any order
            assert found["T", number].positions.tolist() == [number, 1000 + number, 2000 + number]


def test_runs_of_the_first_segments_stay_and_those_of_all_others_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 5)
    shelf, keys = RunShelf(), [("T", number) for number in range(4)]
    plain = [segment(base, [(q, 3, 0, base + q) for q in range(count)], keys) for base, count in ((0, 3), (1000, 4), (2000, 2))]
    held = [shelf.of(summary) for summary in plain]
    assert [isinstance(summary, StoredSummary) for summary in held] == [False, True, False]
    for one, other in zip([*held, *held[::-1]], [*plain, *plain[::-1]], strict=True):
        assert (one.runs == other.runs).all() and (one.path, one.base_offset, one.queues) == (other.path, other.base_offset, keys)
    again = pickle.loads(pickle.dumps(held[1]))
    assert type(again) is SegmentSummary and (again.runs == plain[1].runs).all()
    views = [queue_views(segments, KnownQueues()) for segments in (plain, held)]
    assert [(key, view.missing, view.covered, len(view.runs)) for key, view in views[0].items()] == [
        (key, view.missing, view.covered, len(view.runs)) for key, view in views[1].items()
    ]


def test_segments_without_runs_have_no_queues() -> None:
    assert dict(stored_runs([segment(0, [], []), segment(1000, [], [("T", 0)])], True, {})) == {}


def test_a_batch_that_no_broker_dispatches_misses_no_entry_and_no_number_is_negative() -> None:
    rows = np.zeros(3, RUN_DTYPE)
    rows["walk"], rows["match"], rows["records"], rows["bytes"] = WALK_AUDIT, MATCH_MISSING, 1, 100
    rows["queue_offset"], rows["messages"] = (-7, 4, 9), (5, -3, 2)
    summary = SegmentSummary("commitlog/0", 0, 1000, queues=[("B", 0)], runs=rows)
    for batch_topics, missing in ((frozenset({"B"}), 1), (frozenset(), 2)):
        (view,) = queue_views([summary], KnownQueues(batch_topics=batch_topics)).values()
        found = missing_findings(view, broker_rules("5.3.3"), [])
        assert sum(finding.count for finding in found) == missing
    assert found[0].queue_offset == 4
    loss = QueueLoss()
    loss.add(rows, True)
    assert (loss.messages, loss.cut, loss.bytes) == (7, 7, 300)


def test_each_message_is_in_one_run() -> None:
    runs = np.zeros(4, RUN_DTYPE)
    runs["walk"] = [WALK_AUDIT, WALK_AUDIT | WALK_BROKER, WALK_BROKER, WALK_AUDIT]
    runs["kind"] = [RUN_QUEUE, RUN_QUEUE, RUN_QUEUE, RUN_LMQ]
    runs["first_position"] = [0, 100, 200, 100]
    summary = SegmentSummary("commitlog/00000000000000000000", 0, 4096, runs=runs)
    assert message_runs(summary)["first_position"].tolist() == [0, 100]
    assert message_runs(summary, 100)["first_position"].tolist() == [100] and not len(message_runs(summary, 101))
