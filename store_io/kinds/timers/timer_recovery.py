"""Says where recovery reads the timer log, and which units a start finds (timer.md 5).

A start finds the units to which a slot leads, by itself or from link to link. Pure functions of checkpoint, slots and links.
Source: TimerMessageStore.recover, reviseQueueOffset (5.1.4, 5.3.2 to 5.5.0), recoverAndRevise, dequeue and TimerWheel.checkPhyPos
(5.1.4 to 5.5.0); TimerMessageRocksDBStore.start (5.4.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.layouts import timer_layout as layout
from schemas.rows import MappedFile
from store_io.broker.releases import BrokerRules


def recovery_begin(flush_position: int, files: Sequence[MappedFile]) -> int:
    """Return the position from which on units are looked at again: one file before the flushed position.

    The file that holds it is read whole.
    """
    return max(0, flush_position - files[-1].size if files else flush_position)


def queue_offset_after(
    rules: BrokerRules, stored: int, master: int, last_message: int | None, bounds: tuple[int, int], keyed: int = 0
) -> int:
    """Return the entry of the timer topic's queue from which on messages are taken after a start.

    stored, master: those of the checkpoint.
    last_message: the queue offset of the last unit's message; None if it cannot be read.
    bounds: minimum and maximum of the queue when load() has returned.
    keyed: the offset of timers in RocksDB, 0 without any.
    """
    offset = max(min(stored if last_message is None else last_message + 1, master), keyed)
    if rules.clamps_timer_offset:
        offset = min(max(offset, bounds[0]), bounds[1]) if bounds[0] <= bounds[1] else bounds[0]
    return offset


def _none() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Reach:
    """Slots of which a start does not find all units.

    slot: their time in units of the precision, in order.
    low, high: a start finds their units from `low` to `high`. It finds all units of any other slot.
    """

    precision: int = 1
    slot: np.ndarray = field(default_factory=_none)
    low: np.ndarray = field(default_factory=_none)
    high: np.ndarray = field(default_factory=_none)

    def found(self, times: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Say which of these units a start finds."""
        if not len(self.slot):
            return np.ones(len(times), bool)
        slots = times // self.precision
        place = np.minimum(np.searchsorted(self.slot, slots), len(self.slot) - 1)
        found: np.ndarray = (self.slot[place] != slots) | (positions >= self.low[place]) & (positions <= self.high[place])
        return found


@dataclass(frozen=True)
class Chains:
    """The units of each slot with its newest time (ms), as positions, -1 for none.

    newest, oldest: the ends of the slot's units.
    linked_from: the unit from which on each leads to the one before it.
    """

    time: np.ndarray
    newest: np.ndarray
    oldest: np.ndarray
    linked_from: np.ndarray


@dataclass(frozen=True)
class Slots:
    """Slots of a wheel that hold anything, as arrays.

    index: their places in the wheel.
    time: in units of the precision.
    first, last: their units.
    """

    index: np.ndarray = field(default_factory=_none)
    time: np.ndarray = field(default_factory=_none)
    first: np.ndarray = field(default_factory=_none)
    last: np.ndarray = field(default_factory=_none)


@dataclass(frozen=True)
class Walk:
    """Recovery's walk over the timer log.

    starts: of all its files, in order.
    begin: the start of the file at which it begins.
    end: the position at which it cuts the log.
    read_time: ms; slots before it are read by nobody.
    """

    starts: Sequence[int]
    begin: int
    end: int
    read_time: int
    precision: int


def reach_after(chains: Chains, slots: Slots, walk: Walk) -> Reach:
    """Return the units that a start with these slots finds.

    The walk sets the slots of the units that it meets, whatever the wheel says.
    """
    begin = walk.begin
    too_far = (slots.time * walk.precision >= walk.read_time) & (slots.last > walk.end)
    if too_far.any() and int(slots.first[too_far].min()) < walk.end:  # then it walks again, from the first of these chains on
        first = int(slots.first[too_far].min())
        begin = min(begin, max((start for start in walk.starts if start <= first), default=walk.starts[0] if walk.starts else 0))
    index = np.flatnonzero((chains.newest >= 0) & (chains.time >= walk.read_time))
    newest, linked, oldest = chains.newest[index], chains.linked_from[index], chains.oldest[index]
    slot = chains.time[index] // walk.precision
    times, lasts = np.full(layout.SLOTS, -1, np.int64), np.full(layout.SLOTS, -1, np.int64)
    times[slots.index], lasts[slots.index] = slots.time, slots.last
    last = np.where(newest >= begin, newest, np.where(times[index] == slot, lasts[index], -1))
    odd = (last != newest) | (linked > oldest)
    high = np.where(last <= newest, last, -1)
    low = np.where(last >= linked, linked, oldest)
    order = np.argsort(slot[odd], kind="stable")
    return Reach(walk.precision, slot[odd][order], low[odd][order], high[odd][order])
