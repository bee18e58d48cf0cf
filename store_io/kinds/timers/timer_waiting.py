"""The timer messages that are not delivered yet, and the units by which a start delivers each of them once (timer.md 8).

Pure functions of rows. Source: TimerMessageStore.doEnqueue, dequeue (5.0.0 to 5.5.0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas import timer_layout as layout
from store_io.base.members import among
from store_io.kinds.timers.timer_fates import TimerMessages

OVERDUE_OF_SLOT = 10_000  # units: a broker holds all of a slot at once


@dataclass(frozen=True)
class Clock:
    """The clock by which timer units are made.

    now: ms, when the units are made.
    precision: ms of a slot.
    roll_slots: how far away a unit may be.
    """

    now: int
    precision: int
    roll_slots: int

    @property
    def first(self) -> int:
        """Number of the slot of this moment."""
        return self.now // self.precision


@dataclass(frozen=True)
class Waiting:
    """The rows that get a unit.

    chosen: which rows get a unit.
    counted: those of them that are to be delivered: neither deleted nor what deletes.
    """

    chosen: np.ndarray
    counted: np.ndarray


@dataclass(frozen=True)
class UnitTimes:
    """One unit per row: its time and its magic. read_slot: number of the slot at which a start reads on."""

    time: np.ndarray
    magic: np.ndarray
    read_slot: int


def waiting(rows: TimerMessages, rolled: np.ndarray, clock: Clock) -> Waiting:
    """Choose the timer messages that get a unit.

    rows: all messages and copies of some identities, and every message that deletes.
    rolled: which were put again.

    If several messages have one identity, as many wait as were sent and have no copy: the newest.
    """
    message = ~rows.copies & (rows.out_time >= 0)
    _, group = np.unique(rows.identity, return_inverse=True)
    size = int(group.max()) + 1 if len(group) else 0
    sent = np.bincount(group[message & ~rolled], minlength=size)
    there = np.bincount(group[message], minlength=size) > 0
    left = np.maximum(sent, there) - np.bincount(group[rows.copies], minlength=size)
    left[np.unique(group[rows.deletes])] = 1
    own = np.flatnonzero(message)
    order = own[np.lexsort((-rows.phy_offset[own], group[own]))]
    ordered = group[order]
    begins = np.searchsorted(ordered, ordered)
    undelivered = np.zeros(len(message), bool)
    undelivered[order] = np.arange(len(order)) - begins < left[ordered]
    slot = rows.out_time // clock.precision
    past = slot < clock.first
    key = rows.unique ^ slot.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # a broker deletes within one slot alone
    deleted = among(key, key[rows.deletes & message]) & ~rows.deletes & (rows.unique != 0)
    chosen = undelivered & ~(past & (deleted | rows.deletes))
    return Waiting(chosen, chosen & ~deleted & ~rows.deletes)


def unit_times(out_time: np.ndarray, deletes: np.ndarray, clock: Clock) -> UnitTimes:
    """Return the time of each row's unit.

    A due one lies in slots just before this moment, one that is far away is to be rolled, any other lies at its time.
    """
    precision, window = clock.precision, clock.roll_slots * clock.precision
    write = clock.first * precision
    past = out_time // precision < clock.first
    slots = -(-int(past.sum()) // OVERDUE_OF_SLOT)
    read_slot = clock.first - slots
    time = out_time.astype(np.int64)
    time[past] = (read_slot + np.arange(int(past.sum())) // OVERDUE_OF_SLOT) * precision
    far = ~past & (time - write >= window)
    near = far & (time - write - window < clock.roll_slots // 3 * precision)  # leaves enough time to the next roll
    time[far] = write + window
    time[near] = write + clock.roll_slots // 2 * precision
    magic = np.full(len(time), layout.MAGIC_UNIT, np.int32)
    magic[past] |= layout.MAGIC_OVERDUE
    magic[far] |= layout.MAGIC_ROLL
    magic[deletes] |= layout.MAGIC_DELETE
    return UnitTimes(time, magic, read_slot)
