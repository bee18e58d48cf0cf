"""Which timer messages wait, come again, or are never delivered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from schemas.losses import TimerCount, TimerFates
from store_io.kinds.timers.timer_fates import TimerState, fates_of
from store_io.kinds.timers.timer_records import DELETES, DELIVERED, TIMER_ROW
from store_io.kinds.timers.timer_units import TIMER_UNIT

READ = 100_000
STATE = TimerState(
    truncate_at=1000, log_end=520, queue_offset=5, stored_offset=5, queue_max=5, read_time=READ, last_store_time=READ + 9000
)
Row = tuple[int, int, int, int, str]  # identity, physical offset, queue offset, delivery time, kind
Unit = tuple[int, int, int]  # position, time, physical offset


def fates(rows: list[Row], units: list[Unit], state: TimerState = STATE) -> TimerFates:
    flags = {"message": 0, "copy": DELIVERED, "delete": DELETES}
    messages = np.array([(row[0], row[0], *row[1:4], 0, 0, flags[row[4]]) for row in rows], TIMER_ROW)
    timer_units = np.array([(position, 0, time, phy_offset, 0, 0, 0) for position, time, phy_offset in units], TIMER_UNIT)
    by_message = fates_of(messages, timer_units, state)
    found, places = by_message.counts(), by_message.undelivered().tolist()
    assert len(places) == found.lost.messages and places == sorted(set(places) & {row[1] for row in rows if row[4] == "message"})
    return found


def only(**counts: int) -> dict[str, int]:
    return {"waiting": 0, "again": 0, "cut": 0, "never": 0, "after_end": 0, **counts}


def numbers(found: TimerFates) -> dict[str, int]:
    return {name: getattr(found, name).messages for name in only()}


DUE = (1, 10, 0, READ - 5000, "message")
COPY = (1, 500, 0, READ - 5000, "copy")
FIRED, TO_COME = (0, READ - 5000, 10), (0, READ + 5000, 10)


def test_delivered_waiting_and_coming_again() -> None:
    assert numbers(fates([DUE, COPY], [FIRED])) == only()
    assert numbers(fates([(1, 10, 0, READ + 5000, "message")], [TO_COME])) == only(waiting=1)
    assert numbers(fates([DUE, COPY], [(0, READ, 10)])) == only(again=1)
    taken_again = replace(STATE, queue_offset=0)
    assert numbers(fates([DUE, COPY], [FIRED], taken_again)) == only(again=1)
    assert numbers(fates([DUE], [FIRED], taken_again)) == only(waiting=1)
    assert numbers(fates([], [])) == only()


def test_a_copy_that_is_cut_away() -> None:
    cut = replace(STATE, truncate_at=400)
    found = fates([DUE, COPY], [FIRED], cut)
    assert numbers(found) == only(cut=1) and found.lost == TimerCount(1, READ - 5000, READ - 5000)
    assert numbers(fates([DUE, COPY], [], cut)) == only(cut=1)  # delivered at once, without a unit
    assert numbers(fates([DUE, COPY], [TO_COME], cut)) == only(waiting=1)
    assert numbers(fates([DUE, COPY], [FIRED], replace(cut, queue_offset=0))) == only(waiting=1)
    assert numbers(fates([DUE, COPY], [FIRED], replace(cut, queue_offset=0, queue_max=0))) == only(cut=1)
    assert numbers(fates([DUE, COPY], [FIRED], replace(cut, truncate_at=5))) == only()  # itself cut: lost with the log
    twice = [DUE, (1, 300, 0, READ - 5000, "copy"), COPY]
    assert numbers(fates(twice, [FIRED], cut)) == only()


def test_without_any_copy() -> None:
    assert numbers(fates([DUE], [FIRED])) == only(never=1)
    assert numbers(fates([DUE], [])) == only(never=1)  # taken out of the queue
    assert numbers(fates([DUE], [], replace(STATE, stored_offset=0))) == only()  # or perhaps not yet
    just_now = (1, 10, 0, READ - 1000, "message")
    assert numbers(fates([just_now], [(0, READ - 1000, 10)])) == only()  # its slot is being read
    assert numbers(fates([DUE], [FIRED], replace(STATE, last_store_time=READ - 6000))) == only(after_end=1)
    assert numbers(fates([DUE], [TO_COME], replace(STATE, log_end=0, queue_offset=9))) == only(never=1)  # its unit is cut


def test_deleted_and_rolled_ones() -> None:
    assert numbers(fates([DUE, (1, 20, 1, READ - 5000, "delete")], [FIRED])) == only()
    rolled = (1, 700, 3, READ - 5000, "message")
    assert numbers(fates([DUE, rolled], [FIRED, (52, READ + 9000, 700)])) == only(waiting=1)
    assert numbers(fates([DUE, rolled], [FIRED], replace(STATE, truncate_at=600))) == only(cut=1)
    assert numbers(fates([DUE, rolled, (1, 800, 0, READ, "copy")], [FIRED])) == only()
