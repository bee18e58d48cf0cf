"""The smallest offset of a queue that leads into the CommitLog, release by release (recovery.md 7.4; pitfalls P11, P17)."""

from __future__ import annotations

import pytest

from schemas.advice import RefusalKind
from store_io.broker.queues.queue_minimum import correct_minimum
from store_io.broker.queues.queue_state import QueueRefusal
from tests.support.handmade.queue_states import queue, run


def test_an_old_broker_may_offer_blank_slots_when_the_log_begins_at_zero() -> None:
    state = queue("4.9.8")
    state.put_run(None, 0, run(8, 1, 400))
    correct_minimum(state, 0)
    assert state.min_offset == 5  # P11: slot 0 of the file passes, its physical offset is 0


@pytest.mark.parametrize(("release", "throws"), [("5.1.4", True), ("5.4.0", True), ("5.5.0", False), ("4.9.8", False)])
def test_an_empty_last_file_stops_5_0_to_5_4(release: str, throws: bool) -> None:
    state = queue(release, [(i * 100, 10) for i in range(5)], [], wrote=5, max_phy=410)
    if throws:
        with pytest.raises(QueueRefusal) as refused:
            correct_minimum(state, 0)
        assert refused.value.refusal.kind == RefusalKind.QUEUE_FILE_EMPTY
    else:
        correct_minimum(state, 0)
        assert state.min_offset == 0


@pytest.mark.parametrize(("release", "end"), [("4.9.8", 410), ("5.0.0", 410), ("5.5.0", 410), ("5.5.1", -1)])
def test_a_queue_that_lost_its_files_keeps_its_end_up_to_5_5_0(release: str, end: int) -> None:
    state = queue(release, [(i * 100, 10) for i in range(5)], wrote=5, max_phy=410)
    for file in list(state.files):
        state.delete(file)
    correct_minimum(state, 0)
    assert (state.min_logic, state.max_phy) == (0, end)


@pytest.mark.parametrize("release", ["4.8.0", "5.3.3"])
@pytest.mark.parametrize("min_phy", [0, 100, 150, 400])
def test_the_minimum_is_the_first_entry_at_or_above_the_logs(release: str, min_phy: int) -> None:
    state = queue(release, [(i * 100, 10) for i in range(5)], wrote=5, max_phy=410)
    correct_minimum(state, min_phy)
    assert state.min_offset == -(-min_phy // 100)


def test_a_queue_of_expired_entries_only() -> None:
    new, old = (queue(release, [(i * 100, 10) for i in range(5)], wrote=5, max_phy=410) for release in ("5.3.3", "4.9.8"))
    for state in (new, old):
        correct_minimum(state, 1000)
    assert (new.min_offset, old.min_offset) == (5, 0)  # P17
