"""Which units of the timer log a start finds."""

from __future__ import annotations

import numpy as np

from schemas.layouts import timer_layout as layout
from store_io.kinds.timers.timer_recovery import Chains, Reach, Slots, Walk, reach_after

SLOT = 1_700_000_100


def chains(newest: int, oldest: int, linked_from: int) -> Chains:
    """One slot with units."""
    arrays = [np.full(layout.SLOTS, value, np.int64) for value in (0, -1, -1, -1)]
    for array, value in zip(arrays, (SLOT * 1000, newest, oldest, linked_from), strict=True):
        array[SLOT % layout.SLOTS] = value
    return Chains(*arrays)


def slots(first: int, last: int, time: int = SLOT) -> Slots:
    return Slots(*(np.array([value], np.int64) for value in (SLOT % layout.SLOTS, time, first, last)))


def reached(found: Reach, *positions: int) -> list[bool]:
    return found.found(np.full(len(positions), SLOT * 1000), np.array(positions)).tolist()


def walk(begin: int = 1000, end: int = 2000, read_time: int = 0) -> Walk:
    return Walk([0, 1000], begin, end, read_time, 1000)


def test_a_slot_leads_to_its_newest_unit_or_recovery_sets_it() -> None:
    whole = chains(520, 0, 0)
    assert reached(reach_after(whole, slots(0, 520), walk()), 0, 520) == [True, True]
    assert reached(reach_after(whole, Slots(), walk()), 0, 520) == [False, False]
    assert reached(reach_after(whole, slots(0, 520, SLOT + 1), walk()), 0, 520) == [False, False]
    assert reached(reach_after(chains(1520, 0, 0), Slots(), walk()), 0, 1520) == [True, True]
    assert reached(reach_after(whole, Slots(), walk(begin=0)), 0, 520) == [True, True]


def test_a_chain_that_ends_hides_what_lies_before() -> None:
    assert reached(reach_after(chains(1520, 0, 1040), Slots(), walk()), 0, 1040, 1520) == [False, True, True]
    assert reached(reach_after(chains(520, 0, 0), slots(0, 260), walk()), 0, 260, 520) == [True, True, False]
    assert reached(reach_after(chains(520, 0, 0), slots(0, 572), walk()), 0, 520) == [False, False]  # a unit that is none


def test_a_slot_beyond_the_end_makes_recovery_begin_at_its_first_unit() -> None:
    assert reached(reach_after(chains(520, 0, 0), slots(0, 2080), walk()), 0, 520) == [True, True]


def test_what_is_read_already_is_not_asked_for() -> None:
    assert not len(reach_after(chains(520, 0, 0), Slots(), walk(read_time=SLOT * 1000 + 1)).slot)
