"""Which timer messages wait, and where their units lie."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.kinds.timers.new_timers import OVERDUE_OF_SLOT, Clock, unit_times, waiting
from store_io.kinds.timers.timer_records import DELETES, ROLLED, TIMER_ROW
from store_io.kinds.timers.timer_records import DELIVERED as COPY

CLOCK = Clock(now=1_000_500, precision=1000, roll_slots=12)


def rows(*given: tuple[int, int, int, int]) -> np.ndarray:
    """(identity, unique key, time, flags) of each, in the order of the log."""
    return np.array([(*keys, i * 100, i, time, 0, 0, flags) for i, (*keys, time, flags) in enumerate(given)], TIMER_ROW)


def chosen(*given: tuple[int, int, int, int]) -> tuple[list[int], list[int]]:
    found = waiting(rows(*given), CLOCK)
    return np.flatnonzero(found.chosen).tolist(), np.flatnonzero(found.counted).tolist()


def test_a_copy_means_that_its_message_is_delivered() -> None:
    assert chosen((1, 1, 5000, 0), (2, 2, 6000, 0), (1, 1, 5000, COPY)) == ([1], [1])


def test_of_a_message_that_was_rolled_on_the_newest_waits() -> None:
    assert chosen((1, 1, 9_000_000, 0), (1, 1, 9_000_000, ROLLED), (1, 1, 9_000_000, ROLLED)) == ([2], [2])
    assert chosen((1, 1, 9_000_000, ROLLED), (1, 1, 9_000_000, ROLLED)) == ([1], [1])  # the first one has expired


def test_of_equal_messages_without_a_key_as_many_wait_as_have_no_copy() -> None:
    assert chosen((1, 0, 5000, 0), (1, 0, 5000, 0), (1, 0, 5000, 0), (1, 0, 5000, COPY)) == ([1, 2], [1, 2])


def test_a_deleted_message_does_not_come_back() -> None:
    """While both are to come, both have a unit, as a broker deletes when it reads them."""
    assert chosen((1, 7, 5000, 0), (2, 7, 5000, DELETES)) == ([], [])
    assert chosen((1, 7, 2_000_000, 0), (2, 7, 2_000_000, DELETES)) == ([0, 1], [])
    assert chosen((1, 7, 5000, 0), (2, 7, 6000, DELETES)) == ([0], [0])  # another slot: a broker would not meet it


def test_a_time_that_is_no_number_is_passed_over() -> None:
    assert chosen((1, 1, -1, 0)) == ([], [])


@pytest.mark.parametrize(
    ("out", "time", "magic"),
    [
        (999_999, 999_000, 9),  # due: in the slot before this one
        (1_000_400, 1_000_400, 1),
        (1_011_999, 1_011_999, 1),
        (1_012_000, 1_006_000, 3),  # near the window's end: time is left for the next roll
        (1_016_000, 1_012_000, 3),
        (1 << 50, 1_012_000, 3),
    ],
)
def test_the_time_of_a_unit(out: int, time: int, magic: int) -> None:
    found = unit_times(np.array([out]), np.array([False]), CLOCK)
    assert (found.time.tolist(), found.magic.tolist()) == ([time], [magic])
    assert found.read_slot == (999 if out < 1_000_000 else 1000)
    assert unit_times(np.array([out]), np.array([True]), CLOCK).magic.tolist() == [magic | 4]


def test_overdue_messages_lie_in_slots_of_bounded_length() -> None:
    found = unit_times(np.full(OVERDUE_OF_SLOT + 1, 5), np.zeros(OVERDUE_OF_SLOT + 1, bool), CLOCK)
    assert np.unique(found.time, return_counts=True)[1].tolist() == [OVERDUE_OF_SLOT, 1]
    assert found.read_slot == 998 and int(found.time.max()) == 999_000
