"""Chooses the timer messages that still wait, and makes a timer log and wheel for them (timer.md 3, 4, 8).

By the new units a start delivers each of these messages once. Pure functions of rows.
Source: TimerMessageStore.doEnqueue, dequeue, TimerLog.append, TimerWheel.putSlot, TimerCheckpoint.flush (5.0.0 to 5.5.0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.layouts import timer_layout as layout
from schemas.layouts.entries import SLOT_DTYPE, UNIT_DTYPE
from store_io.base.fingerprints import among
from store_io.kinds.timers.timer_records import DELETES, DELIVERED, ROLLED

OVERDUE_OF_SLOT = 10_000  # units: a broker holds all of a slot at once
_UNIT_AND_HEAD_BYTES = layout.UNIT_BYTES + layout.UNIT_HEAD_BYTES  # a unit is put where a filler's head has room after it
WHEEL_PIECE = 2048  # slots written at once


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
        """Return the number of the slot of this moment."""
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


def waiting(rows: np.ndarray, clock: Clock) -> Waiting:
    """Choose the timer messages that get a unit.

    rows: all messages and copies of some identities, and every message that deletes (TIMER_ROW).

    If several messages have one identity, as many wait as were sent and have no copy: the newest.
    """
    copies, rolled, deletes = (rows["flags"] & flag != 0 for flag in (DELIVERED, ROLLED, DELETES))
    message = ~copies & (rows["out_time"] >= 0)
    _, group = np.unique(rows["identity"], return_inverse=True)
    size = int(group.max()) + 1 if len(group) else 0
    sent = np.bincount(group[message & ~rolled], minlength=size)
    there = np.bincount(group[message], minlength=size) > 0
    left = np.maximum(sent, there) - np.bincount(group[copies], minlength=size)
    left[np.unique(group[deletes])] = 1
    own = np.flatnonzero(message)
    order = own[np.lexsort((-rows["phy_offset"][own], group[own]))]
    ordered = group[order]
    begins = np.searchsorted(ordered, ordered)
    undelivered = np.zeros(len(message), bool)
    undelivered[order] = np.arange(len(order)) - begins < left[ordered]
    slot = rows["out_time"] // clock.precision
    past = slot < clock.first
    key = rows["unique"] ^ slot.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # a broker deletes within one slot alone
    deleted = among(key, key[deletes & message]) & ~deletes & (rows["unique"] != 0)
    chosen = undelivered & ~(past & (deleted | deletes))
    return Waiting(chosen, chosen & ~deleted & ~deletes)


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


@dataclass(frozen=True)
class NewUnit:
    """Units to be made, as arrays of one length, in the order of the log.

    write_time: ms, of all.
    precision: ms of a slot.
    """

    time: np.ndarray
    magic: np.ndarray
    phy_offset: np.ndarray
    size: np.ndarray
    topic_hash: np.ndarray
    write_time: int
    precision: int


@dataclass(frozen=True)
class NewTimerLog:
    """A new timer log with its wheel.

    units: UNIT_DTYPE.
    positions: the position of each unit in the log.
    slots: SLOT_DTYPE; index: the number of each slot in the wheel.
    """

    units: np.ndarray
    positions: np.ndarray
    slots: np.ndarray
    index: np.ndarray
    file_bytes: int

    @property
    def end(self) -> int:
        """Return the position after the last unit."""
        return int(self.positions[-1]) + layout.UNIT_BYTES if len(self.positions) else 0


def units_of_file(file_bytes: int) -> int:
    """Return how many units a file of the timer log takes."""
    return max(0, (file_bytes - _UNIT_AND_HEAD_BYTES) // layout.UNIT_BYTES + 1)


def new_log(new: NewUnit, slotted: int, file_bytes: int) -> NewTimerLog:
    """Return the timer log and the slots of new units.

    slotted: how many units, from the first on, lie in a slot; later ones are alone.
    """
    count, of_file = len(new.time), units_of_file(file_bytes)
    number = np.arange(count)
    positions = number // of_file * file_bytes + number % of_file * layout.UNIT_BYTES
    units = np.zeros(count, UNIT_DTYPE)
    units["size"], units["magic"], units["write_time"] = layout.UNIT_BYTES, new.magic, new.write_time
    units["delay"] = (new.time - new.write_time).astype(np.int32)
    units["phy_offset"], units["message_size"], units["topic_hash"] = new.phy_offset, new.size, new.topic_hash
    units["previous"] = -1
    slot = new.time[:slotted] // new.precision
    order = np.argsort(slot, kind="stable")
    ordered, places = slot[order], positions[:slotted][order]
    begins = np.ones(slotted, bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    previous = np.full(slotted, -1, np.int64)
    previous[1:] = np.where(begins[1:], -1, places[:-1])
    units["previous"][order] = previous
    at = np.flatnonzero(begins)
    slots = np.zeros(len(at), SLOT_DTYPE)
    if len(at):
        ends = np.append(at[1:], slotted) - 1
        counts = np.where(new.magic[:slotted][order] & layout.MAGIC_DELETE, -1, 1)
        slots["time"], slots["first"], slots["last"] = ordered[at], places[at], places[ends]
        slots["number"] = np.add.reduceat(counts, at)
    return NewTimerLog(units, positions, slots, (slots["time"] % layout.SLOTS).astype(np.int64), file_bytes)


def log_pieces(log: NewTimerLog) -> Iterator[tuple[int, bytes]]:
    """Yield (start of a file in the log, its bytes up to the last unit or filler) of each file."""
    of_file, count = units_of_file(log.file_bytes), len(log.units)
    for number, first in enumerate(range(0, count, of_file)):
        data = log.units[first : first + of_file].tobytes()
        if first + of_file < count:
            data += struct.pack(layout.UNIT_HEAD_FORMAT, log.file_bytes - len(data), 0, layout.BLANK_MAGIC)
        yield number * log.file_bytes, data


def wheel_pieces(log: NewTimerLog) -> Iterator[tuple[int, bytes]]:
    """Yield (position in the wheel, bytes) of the pieces of it that hold a slot; the others are zeros."""
    piece = log.index // WHEEL_PIECE
    for number in np.unique(piece).tolist():
        slots = np.zeros(min(WHEEL_PIECE, layout.SLOTS - number * WHEEL_PIECE), SLOT_DTYPE)
        here = piece == number
        slots[log.index[here] - number * WHEEL_PIECE] = log.slots[here]
        yield number * WHEEL_PIECE * layout.SLOT_BYTES, slots.tobytes()


def check_bytes(read_time: int, flush_position: int, queue_offset: int) -> bytes:
    """Return the config/timercheck of a master that says this."""
    fields = struct.pack(layout.CHECK_FIELDS_FORMAT, read_time, flush_position, queue_offset, queue_offset)
    return fields.ljust(layout.CHECK_BYTES, b"\0")
