"""Tasks of several audits: equal ones run once, scans that differ in rules alone run together."""

from __future__ import annotations

from dataclasses import replace

from schemas.advice import Cause, Gap
from schemas.rows import BrokerStop, Cuts, FirstRecord, OtherWalk, SegmentSummary
from store_io.audit.compared.shared_tasks import SharedRound
from store_io.base.tasks import NotRead
from store_io.broker.releases import broker_rules
from store_io.kinds.index.index_reader import IndexTask
from store_io.kinds.timers.timer_records import TimerCollector
from store_io.log.scan.segment_scan import PartialWalk, SegmentTask
from store_io.source.byte_source import StoreLocation

PLACE = StoreLocation("/s")
SCAN = SegmentTask(0, "commitlog/0", 0, 100, PLACE, broker_rules("5.5.0"))
OLD = replace(SCAN, rules=broker_rules("5.0.0"))
WALK = OtherWalk(FirstRecord(), BrokerStop("bad", 0, "magic"), 1)
GONE = Gap(Cause.UNREADABLE, "commitlog/0", ("gone",))


def test_scans_are_joined_and_their_cuts_are_kept_apart() -> None:
    cut = replace(SCAN, cuts=Cuts((5,), {}, {("T", 0): (1,)}))
    other = replace(OLD, cuts=Cuts((5, 7), {}, {("T", 0): (2,)}), timers=TimerCollector(9))
    shared = SharedRound([[cut], [other], [replace(OLD, rules=broker_rules("5.4.0"))]])
    [task] = shared.tasks
    assert isinstance(task, SegmentTask)
    assert task.cuts == Cuts((5,), {}, {("T", 0): (1, 2)}, (7,)) and task.timers == TimerCollector(9)
    assert [rules.release for rules in task.others] == ["5.0.0"]  # 5.4.0 checks records as 5.5.0 does
    assert shared.take([SegmentSummary("commitlog/0", 0, 100, others=[WALK], timers_dropped=3)]) == []
    own, old, same = (answers[0] for answers in shared.answers)
    assert (own.broker.reason, old.broker.reason, same.broker.reason) == ("empty", "magic", "empty")
    assert (own.timers_dropped, old.timers_dropped) == (0, 3)


def test_a_walk_that_leaves_the_audits_is_scanned_by_itself_once() -> None:
    shared = SharedRound([[SCAN], [OLD], [replace(OLD)]])
    again = shared.take([SegmentSummary("commitlog/0", 0, 100, others=[None])])
    assert again == [OLD] and shared.answers[0][0] is not None
    alone = SegmentSummary("commitlog/0", 0, 100, bytes_read=7)
    assert shared.take([alone]) == [] and [shared.answers[n][0].bytes_read for n in (1, 2)] == [7, 7]


def test_what_differs_in_more_than_rules_is_scanned_apart() -> None:
    queues = replace(OLD, batch_topics=frozenset({"T"}))
    walk = replace(OLD, only=PartialWalk("reput", 0, 100))
    assert len(SharedRound([[SCAN], [queues], [walk], [replace(walk)]]).tasks) == 3


def test_other_tasks_run_once_where_they_are_equal() -> None:
    index = IndexTask(0, PLACE, 10, 40, "index/1", 40)
    shared = SharedRound([[index], [replace(index)], [replace(index, newest=True)]])
    assert len(shared.tasks) == 2 and shared.take(["a", "b"]) == []
    assert shared.answers == [["a"], ["a"], ["b"]]


def test_what_is_no_summary_goes_to_all() -> None:
    shared = SharedRound([[SCAN], [OLD]])
    assert shared.take([NotRead()]) == [] and shared.answers == [[NotRead()], [NotRead()]]
    failed = SharedRound([[SCAN], [OLD]])
    assert failed.take([SegmentSummary("commitlog/0", 0, 100, problem=GONE)]) == []
    assert [answers[0].problem for answers in failed.answers] == [GONE, GONE]
