"""What the clock of a start makes of timer messages that wait, for each rule from both sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from store_io.kinds.timers.due_timers import READ_SLOTS, UNKNOWN_READ_MS, DueTimers, StartClock, due_timers
from store_io.kinds.timers.timer_fates import TimerState, fates_of
from store_io.kinds.timers.timer_records import DELIVERED, TIMER_ROW
from store_io.kinds.timers.timer_units import TIMER_UNIT

READ = 1_700_000_000_000
DAY = 86_400_000
REACH = READ_SLOTS * 1000
STATE = TimerState(
    truncate_at=10_000, log_end=5200, queue_offset=5, stored_offset=5, queue_max=9, read_time=READ, last_store_time=READ,
    entry_read_time=READ,
)  # fmt: skip
Row = tuple[int, int, int, int, int]  # identity, physical offset, queue offset, delivery time, flags


def message(identity: int, out: int, *, phy: int | None = None, offset: int = 0, flags: int = 0) -> Row:
    return identity, 10 * identity if phy is None else phy, offset, out, flags


def counted(
    rows: list[Row],
    units: list[tuple[int, int, int]],
    clock: StartClock,
    state: TimerState = STATE,
    starts: tuple[int, ...] = (0,),
) -> DueTimers:
    """units: (position, time, physical offset)."""
    found = np.array([(row[0], row[0], *row[1:4], 0, 0, row[4]) for row in rows], TIMER_ROW)
    made = np.array([(position, 0, time, phy, 0, 0, 0) for position, time, phy in units], TIMER_UNIT)
    return due_timers(fates_of(found, made, state), made, state, clock, starts)


def one(slot: int, now: int, out: int | None = None, **clock: int | bool) -> DueTimers:
    """One message in the wheel."""
    return counted([message(1, slot if out is None else out)], [(0, slot, 10)], replace(StartClock(now), **clock))


def test_a_slot_is_read_for_seven_days_less_a_minute() -> None:
    slot = READ + 5000
    assert REACH == 604_740_000
    assert one(slot, slot + REACH + 999) == DueTimers(at_once=1, before=slot + REACH)
    assert one(slot, slot + REACH + 1000) == DueTimers(never=1, before=slot + REACH)


def test_the_time_is_that_of_so_many_slots_of_any_precision() -> None:
    slot = READ + 5000
    assert one(slot, slot + REACH // 10 + 99, precision=100).at_once == 1
    assert one(slot, slot + REACH // 10 + 100, precision=100) == DueTimers(never=1, before=slot + REACH // 10)


def test_what_is_due_comes_at_once_and_the_rest_later() -> None:
    slot = READ + 5000
    assert one(slot, slot) == DueTimers(at_once=1, before=slot + REACH)
    assert one(slot, slot - 1) == DueTimers(later=1, before=slot + REACH)


def test_a_rolled_message_goes_by_its_rolls_slot() -> None:
    slot, out = READ + 5000, READ + 9 * DAY
    assert one(slot, slot + REACH + 1000, out).never == 1
    assert one(slot, slot + DAY, out).later == 1  # it is rolled on, and delivered at its time
    assert one(slot, slot + DAY, slot + DAY - 1000).at_once == 1
    rolled = [message(1, out), message(1, out, phy=500, offset=4)]
    assert counted(rolled, [(0, READ - 5000, 10), (52, slot, 500)], StartClock(slot)) == DueTimers(later=1, before=slot + REACH)


def test_whether_a_due_message_of_the_queue_is_delivered_is_a_race() -> None:
    out = READ + 5000
    queued = [message(1, out, offset=7)]
    assert counted(queued, [], StartClock(out + REACH + 1000)) == DueTimers(uncertain=1, before=out + REACH)
    assert counted(queued, [], StartClock(out + REACH)) == DueTimers(at_once=1, before=out + REACH)
    assert counted(queued, [], StartClock(out - 1)).later == 1
    assert counted(queued, [], StartClock(out), replace(STATE, queue_max=7)) == DueTimers()  # it is not in the queue
    in_wheel = [(0, out, 10)]  # and taken from the queue once more, for the checkpoint is older
    assert counted(queued, in_wheel, StartClock(out + REACH + 1000)) == DueTimers(uncertain=1, before=out + REACH)
    late = [message(1, READ - 5000, offset=7)]  # its slot was passed before the copy was made: no clock is to blame
    assert counted(late, [], StartClock(READ)) == DueTimers(uncertain=1)


def test_a_service_that_takes_nothing_leaves_the_queue() -> None:
    out = READ + 5000
    queued, in_wheel = message(1, out, offset=7), message(2, out)
    found = counted([queued, in_wheel], [(0, out, 20)], StartClock(out + DAY, takes=False))
    assert (found.at_once, found.later) == (1, 1)


def test_what_was_delivered_and_comes_once_more_is_counted_apart() -> None:
    slot = READ + 1000
    rows, units = [message(1, slot), message(1, slot, phy=900, flags=DELIVERED)], [(0, slot, 10)]
    assert counted(rows, units, StartClock(slot + DAY)) == DueTimers(twice=1)
    assert counted(rows, units, StartClock(slot + 8 * DAY)) == DueTimers()


def test_timers_in_rocksdb_have_no_seven_days() -> None:
    time = READ + 5000
    rows, keyed = [message(1, time)], [(-1, time, 10)]
    clock = StartClock(time + 30 * DAY, keyed=True)
    assert counted(rows, keyed, clock) == DueTimers(at_once=1)
    assert counted(rows, keyed, replace(clock, now=time - 1)).later == 1
    unknown = replace(clock, now=time + UNKNOWN_READ_MS, read_keyed=False)
    assert counted(rows, keyed, unknown) == DueTimers(at_once=1, before=time + UNKNOWN_READ_MS)
    assert counted(rows, keyed, replace(unknown, now=unknown.now + 1)).never == 1
    queued = [message(1, time, offset=7)]
    assert counted(queued, [], clock) == DueTimers(uncertain=1) and counted(queued, [], replace(clock, now=READ)).later == 1


def test_later_ones_are_counted_by_segment_and_time() -> None:
    now = READ // 3_600_000 * 3_600_000 + 3_600_000
    clock = StartClock(now, cleans=now + 60_000)
    times = [now - 1000, now + 60_000, now + 61_000, now + 900_000, now + 1_700_000, now + 40 * 3_600_000, now + 6 * DAY]
    rows = [message(number, time, phy=100 * number) for number, time in enumerate(times)]
    units = [(52 * number, time, 100 * number) for number, time in enumerate(times)]
    found = counted(rows, units, clock, starts=(0, 300))
    assert (found.at_once, found.later) == (1, 6)
    assert found.by_segment.tolist() == [
        (0, now + 60_000, 1), (300, now + 900_000, 2), (300, now + 40 * 3_600_000, 1), (300, now + 48 * 3_600_000, 1),
    ]  # fmt: skip
    assert (found + found).by_segment["count"].tolist() == [2, 4, 2, 2] and (found + found).later == 12
    assert (found + DueTimers()).before == found.before


def test_no_messages() -> None:
    assert counted([], [], StartClock(READ)) == DueTimers() and DueTimers() + DueTimers() == DueTimers()
