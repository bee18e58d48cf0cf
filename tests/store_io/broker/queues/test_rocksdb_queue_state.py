"""A queue in RocksDB: its minimum, its truncation, what is served of it."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.broker.queues.rocksdb_queue_state import PUT_DTYPE, EntryUnreadable, QueueEnd, RocksQueue

KEY = ("T", 0)
ENTRIES = {n: 1000 + 100 * n for n in range(10)}  # number -> physical offset
LAST = QueueEnd(1900, 9)


def queue(entries: dict[int, int] | None = None, maximum: QueueEnd | None = LAST, **more: object) -> RocksQueue:
    held = ENTRIES if entries is None else entries
    return RocksQueue(KEY, "consumequeue", lambda _, number: held.get(number), maximum, **more)  # type: ignore[arg-type]


def put(first: int, count: int, phy: int) -> np.ndarray:
    return np.array([(first, count, phy, phy + 10 * (count - 1), 0)], PUT_DTYPE)


@pytest.mark.parametrize(
    ("maximum", "minimum", "log_min", "answer"),
    [
        (None, None, 500, 0),
        (QueueEnd(1900, 9), None, 0, 0),
        (QueueEnd(1900, 9), None, 1300, 3),
        (QueueEnd(1900, 9), None, 1301, 4),
        (QueueEnd(1900, 9), None, 2000, 10),
        (QueueEnd(1900, 9), QueueEnd(1400, 4), 1300, 4),
        (QueueEnd(1900, 9), QueueEnd(1400, 4), 1650, 7),
    ],
)
def test_minimum(maximum: QueueEnd | None, minimum: QueueEnd | None, log_min: int, answer: int) -> None:
    assert queue(maximum=maximum, stored_minimum=minimum).ask_minimum(log_min) == answer


def test_a_missing_entry_sends_the_search_for_the_minimum_up() -> None:
    """An inner batch has one entry, at its base: the broker answers with the newest one."""
    assert queue({0: 1000, 17: 1900}, QueueEnd(1900, 17)).ask_minimum(0) == 17


def test_where_an_entry_cannot_be_read_the_minimum_is_minus_one() -> None:
    def throws(_: object, number: int) -> int:
        raise EntryUnreadable(str(number))

    broken = RocksQueue(KEY, "consumequeue", throws, QueueEnd(1900, 9))
    assert broken.snapshot(1300).min_offset == -1 and broken.snapshot(1300).stored_and_served() == []
    assert broken.snapshot(2000).min_offset == 10  # needs no entry
    broken.truncate(1500, 0)
    assert broken.maximum == QueueEnd(1900, 9)


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (1901, QueueEnd(1900, 9)),
        (1850, QueueEnd(1800, 8)),
        (1450, QueueEnd(1400, 4)),
        (1400, QueueEnd(1000, 0)),  # the first one looked at leads to the cut: nothing was found so far
        (1700, QueueEnd(1400, 4)),  # found so far: the middle
        (1000, QueueEnd(1000, 0)),  # one position beyond the cut
        (900, QueueEnd(1900, 9)),  # all of it lies beyond the cut: left as it is
    ],
)
def test_truncation(end: int, left: QueueEnd) -> None:
    cut = queue()
    cut.truncate(end, 0)
    assert cut.maximum == left


def test_puts_set_the_maximum_whatever_their_number() -> None:
    ahead = queue()
    ahead.add(put(3, 2, 5000))
    assert (ahead.max_offset, ahead.max_phy) == (5, 5010)
    assert [ahead.entry(n) for n in (2, 3, 4, 5)] == [1200, 5000, 5010, 1500]
    served = ahead.snapshot(0)
    assert served.stored_and_served() == [(0, 3)] and served.put_and_served() == [(3, 5, 5000, 5010)]


def test_a_later_put_takes_the_entries_of_an_earlier_one() -> None:
    over = queue()
    for again in (put(0, 9, 5000), put(3, 2, 6000), put(4, 4, 7000)):
        over.add(again)
    served = over.snapshot(0).put_and_served()
    assert [(first, end, phy) for first, end, phy, _ in served] == [(0, 3, 5000), (3, 4, 6000), (4, 8, 7000)]


def test_the_number_after_the_greatest_long_wraps_as_in_java() -> None:
    """Bad bytes can hold any maximum: such a queue serves nothing."""
    odd = queue(maximum=QueueEnd(5, 2**63 - 1), stored_minimum=QueueEnd(0, 0), puts=put(3, 2, 5000))
    served = odd.snapshot(0)
    assert (served.max_offset, served.stored_and_served(), served.put_and_served()) == (-(2**63), [], [])
    assert odd.ask_minimum(6) == -(2**63)
    odd.initialise(-(2**63))
    assert odd.maximum == QueueEnd(0, 2**63 - 1)


def test_what_is_put_later_counts_for_both_answers() -> None:
    twice = queue(cut_back=True, or_else=queue(maximum=QueueEnd(2500, 15)))
    assert twice.snapshot(0).or_else is not None
    twice.add(put(20, 3, 3000))
    both = twice.snapshot(0)
    assert (both.or_else, both.maximum, both.cut_back) == (None, QueueEnd(3020, 22), False)


def test_where_an_entry_inside_of_a_put_leads_is_not_known() -> None:
    held = queue()
    held.add(put(20, 3, 3000))
    assert [held.held_inside(number) is not None for number in (9, 20, 21, 22)] == [False, False, True, False]
