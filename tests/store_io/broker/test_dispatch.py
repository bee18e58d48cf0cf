"""Which runs a walk dispatches, and what becomes of them (recovery.md 4, 5, 7.3)."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.rows import INDEX_RUN_DTYPE, RUN_DTYPE, RUN_LMQ, RUN_QUEUE, RUN_UNQUEUED, WALK_BROKER, Checkpoint, SegmentSummary
from store_io.broker.dispatch import EVERYTHING, Choice, Dispatch, recovery_choice
from store_io.broker.prediction import Needs, Refused, ScanId
from store_io.broker.releases import Setting, broker_rules
from tests.support.handmade.queue_states import Disk

SCAN = ScanId("segment", 0)


def of(release: str, unclean: bool, m: int = 1000, confirmed: int = 0, **settings: bool) -> Choice | None:
    rules = broker_rules(release, {key: Setting(value, "broker.conf") for key, value in settings.items()})
    return recovery_choice(rules, Checkpoint(confirm_phy_offset=confirmed), unclean, m)


def answers(choice: Choice | None, first: int, last: int, size: int = 10) -> tuple[bool, bool]:
    """(whether a run is dispatched, whether it must be cut first)."""
    assert choice is not None
    ends = [np.array([value], np.int64) for value in (first, last, first + size, last + size)]
    yes, inside = choice.accepts(*ends)
    return bool(yes[0]), bool(inside[0])


def test_a_clean_recovery_dispatches_since_5_3_2_what_lies_beyond_all_queues() -> None:
    assert of("5.3.1", False) is None
    choice = of("5.3.2", False)
    assert [answers(choice, *run) for run in ((1001, 1100), (900, 1000), (900, 1100))] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert choice is not None and choice.threshold == 1000 and choice.takes(1001) and not choice.takes(1000)


def test_an_unclean_recovery_dispatches_all_unless_confirm_offset_limits_it() -> None:
    assert of("5.5.0", True) is EVERYTHING and of("5.1.0", True, enableControllerMode=True) is EVERYTHING
    for setting in ("duplicationEnable", "enableControllerMode"):
        choice = of("5.1.1", True, confirmed=1000, **{setting: True})
        runs = ((900, 990), (900, 995), (995, 1100))
        assert [answers(choice, *run) for run in runs] == [(True, False), (False, True), (False, False)]
    assert answers(of("5.1.0", True, duplicationEnable=True), 0, 100) == (False, False)


def summary(*runs: tuple[int, int, int], faults: list[tuple[int, str]] | None = None) -> SegmentSummary:
    """(kind, queue offset, physical offset) of single messages of queue (T, 0)."""
    rows = np.zeros(len(runs), RUN_DTYPE)
    for row, (kind, offset, phy) in zip(rows, runs, strict=True):
        row["kind"], row["walk"], row["records"], row["messages"] = kind, WALK_BROKER, 1, 1
        row["queue_offset"], row["first_phy_offset"], row["last_phy_offset"] = offset, phy, phy
        row["first_size"] = row["last_size"] = 10
    found = SegmentSummary("commitlog/0", 0, 1 << 20, runs=rows, index_runs=np.zeros(0, INDEX_RUN_DTYPE), queues=[("T", 0)])
    found.lmq_faults = faults or []
    return found


def dispatch(multi: bool = False) -> Dispatch:
    rules = broker_rules("5.3.3", {"enableMultiDispatch": Setting(multi, "broker.conf")})
    return Dispatch(rules, frozenset(), Disk({}), Needs())


def test_a_message_in_no_queue_is_put_nowhere_and_light_queues_need_the_setting() -> None:
    runs = [(RUN_QUEUE, 0, 100), (RUN_UNQUEUED, 0, 200), (RUN_LMQ, 1, 300)]
    for multi, expected in ((False, (1, 110)), (True, (2, 310))):
        made = dispatch(multi)
        made.put(SCAN, summary(*runs), EVERYTHING)
        made.puts.settle()
        queue = made.queues["T", 0]
        assert (queue.max_offset, queue.max_phy) == expected
        assert not made.needs


def test_a_choice_inside_a_run_asks_for_a_cut() -> None:
    made = dispatch()
    found = summary((RUN_QUEUE, 0, 100))
    found.runs["last_phy_offset"], found.runs["records"] = 300, 3
    made.put(SCAN, found, Choice(lambda a, b, c, d: (a > 200, (a <= 200) & (b > 200)), 200))
    assert dict(made.needs.phy_cuts) == {SCAN: {200}} and not made.queues


def test_an_lmq_offset_that_is_no_number_ends_dispatch_there() -> None:
    made = dispatch(multi=True)
    with pytest.raises(Refused, match="light_offset") as raised:
        made.put(SCAN, summary((RUN_QUEUE, 0, 100), (RUN_QUEUE, 1, 200), (RUN_QUEUE, 2, 300), faults=[(200, "x")]), EVERYTHING)
    assert raised.value.refusal.phy_offset == 200
    assert made.queues["T", 0].max_offset == 2, "the message itself is in its own queue"
    dispatch().put(SCAN, summary((RUN_QUEUE, 0, 200), faults=[(200, "x")]), EVERYTHING)
