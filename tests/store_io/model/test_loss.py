"""Which messages a start would lose: behind the cut, or without an entry that leads to them."""

from __future__ import annotations

import numpy as np

from schemas.rows import MATCH_MISSING, MappedFile, QueueKey, QueueSummary, SegmentSummary
from store_io.broker.prediction import Memory
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import broker_rules
from store_io.model.loss import Loss, compute_loss
from store_io.model.queue_views import KnownQueues, queue_views
from tests.support.handmade.evidence import QUEUE_FILE, queue_path, segment

KEY: QueueKey = ("T", 0)
FILE = MappedFile(queue_path(0), 0, QUEUE_FILE)


def lost(log: SegmentSummary, cut: int, entries: int) -> Loss:
    """The loss where a start cuts the log there and keeps so many entries."""
    state = QueueState(KEY, False, "consumequeue/T/0", broker_rules(), lambda *_: np.zeros(0))
    state.set_recovered([FILE], 20 * entries, -1)
    known = KnownQueues({KEY: QueueSummary(KEY, used=[(0, entries)])}, {KEY: (FILE,)}, {KEY: "consumequeue/T/0"})
    return compute_loss(Memory([], {KEY: state}, []), cut, [log], queue_views([log], known))


TIMES = {"first_store_time": 50, "last_store_time": 60}


def test_messages_behind_the_cut_are_lost_with_their_times() -> None:
    found = lost(segment(0, {"records": 5, "bytes": 500}, {"queue_offset": 5, "first_position": 500, **TIMES}), 500, 5)
    assert found.messages == 1 and found.bytes == 100 and not found.cuts
    queue = found.by_queue[KEY]
    assert (queue.cut, queue.first_store_time, queue.last_store_time) == (1, 50, 60)


def test_a_message_before_the_cut_without_an_entry_is_lost_and_not_cut() -> None:
    found = lost(segment(0, {"records": 5}, {"queue_offset": 5, "match": MATCH_MISSING}), 1000, 5)
    assert (found.messages, found.by_queue[KEY].cut) == (1, 0)


def test_where_the_queue_ends_inside_of_a_run_the_scan_is_asked_to_cut_there() -> None:
    found = lost(segment(0, {"records": 5}), 1000, 3)
    assert found.cuts == {0: {KEY: {3}}} and found.messages == 0


def test_nothing_is_lost_where_all_entries_stay() -> None:
    assert lost(segment(0, {"records": 5}), 1000, 5) == Loss()
