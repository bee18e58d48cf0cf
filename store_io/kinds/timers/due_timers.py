"""What the clock makes of the timer messages that wait when a broker starts: delivered at once, later, or never (timer.md 5).

Source: TimerMessageStore.recover, doEnqueue, dequeue, TimerEnqueuePutService.putMessageToTimerWheel (5.0.0 to 5.5.1);
MessageRocksDBStorage.getCheckpointForTimer, Timeline (5.4.0, 5.5.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.layouts import timer_layout as layout
from store_io.kinds.timers.timer_fates import MessageFates, TimerState, firing

READ_SLOTS = layout.SLOTS // 2 - layout.BLANK_SLOTS  # so far before the clock lies the first slot that recovery reads
UNKNOWN_READ_MS = 10_000  # timers in RocksDB are read from so long before the clock, if no stored time says better
LATER_MS = 900_000  # later ones are counted by so much time; a whole hour of any time zone begins with it
FAR_MS = 2 * 86_400_000  # whatever falls due after that is counted together
_NONE = -(1 << 62)  # no time

LATER = np.dtype([("segment", "i8"), ("due", "i8"), ("count", "i8")])
"""Messages that fall due later: the segment's begin in the log, the least time at which they do (ms), how many."""
NO_LATER = np.zeros(0, LATER)


@dataclass(frozen=True)
class StartClock:
    """The moment of a start, and what goes by it.

    precision: ms of a slot. roll_slots: how far away a unit may be.
    cleans: the moment of the first retention; what is due before it is delivered first.
    keyed: new timers go to RocksDB. read_keyed: a stored time says from where those there are read.
    takes: a start takes messages from the queue. delivers: it delivers any.
    """

    now: int
    precision: int = layout.PRECISION_MS
    roll_slots: int = layout.ROLL_SLOTS
    cleans: int = 0
    keyed: bool = False
    read_keyed: bool = True
    takes: bool = True
    delivers: bool = True

    @property
    def slot(self) -> int:
        """Return the time of the slot of this moment."""
        return self.now // self.precision * self.precision

    @property
    def reach(self) -> int:
        """Return how long a slot can be read, in ms."""
        return READ_SLOTS * self.precision

    def enqueued(self, out: np.ndarray) -> np.ndarray:
        """Return the time of the slot into which messages with these delivery times are put now."""
        window = self.roll_slots * self.precision
        slot = out // self.precision * self.precision
        far = slot - self.slot - window
        rolled = np.where(far < self.roll_slots // 3 * self.precision, self.roll_slots // 2 * self.precision, window)
        found: np.ndarray = np.where(far >= 0, self.slot + rolled, slot)
        return found


@dataclass(frozen=True)
class DueTimers:
    """Timer messages that wait, by the clock of a start.

    never, uncertain, at_once, later, twice: as in `TimersOfDay`.
    before: the moment before which a start delivers all that the clock can take; None if it can take none.
    by_segment: the later ones whose record is still asked for at their time (LATER).
    """

    never: int = 0
    uncertain: int = 0
    at_once: int = 0
    later: int = 0
    twice: int = 0
    before: int | None = None
    by_segment: np.ndarray = field(default_factory=lambda: NO_LATER, compare=False)

    def __add__(self, other: DueTimers) -> DueTimers:
        moments = [moment for moment in (self.before, other.before) if moment is not None]
        return DueTimers(
            self.never + other.never,
            self.uncertain + other.uncertain,
            self.at_once + other.at_once,
            self.later + other.later,
            self.twice + other.twice,
            min(moments, default=None),
            _folded(np.concatenate([self.by_segment, other.by_segment])),
        )


def due_timers(
    fates: MessageFates, units: np.ndarray, state: TimerState, clock: StartClock, segments: Sequence[int]
) -> DueTimers:
    """Count the messages that wait, and those that come again, by the clock of a start.

    units: as for `fates_of`. segments: where those of the log begin.
    """
    waits, again = fates.fates["waiting"], fates.fates["again"]
    rows = np.flatnonzero(waits | again)
    phy, out, again = fates.phy[rows], fates.out[rows], again[rows]
    fires = units[firing(units, state)]
    keyed = fires["position"] < 0
    slots = fires["time"] // clock.precision * clock.precision
    in_wheel = _latest(phy, fires["phy_offset"][~keyed], slots[~keyed])
    in_table = _latest(phy, fires["phy_offset"][keyed], fires["time"][keyed])
    queued = (fates.offset[rows] >= state.queue_offset) & (fates.offset[rows] < state.queue_max)
    taken = np.where(queued, clock.enqueued(out), _NONE)
    due_in_queue = np.where(queued & (not clock.keyed), out // clock.precision * clock.precision, _NONE)
    stored = state.read_time // clock.precision * clock.precision
    read = max(stored, clock.slot - clock.reach)
    kept_in_wheel = in_wheel >= read
    kept_in_table = (in_table > _NONE) & (clock.read_keyed | (in_table >= clock.now - UNKNOWN_READ_MS))
    kept_in_queue = queued & (taken > clock.now if clock.keyed else taken >= read)
    kept = kept_in_wheel | kept_in_table | kept_in_queue
    times = np.full(len(rows), _NONE, np.int64)
    for chosen, time in ((kept_in_wheel, in_wheel), (kept_in_table, in_table), (kept_in_queue, taken)):
        times = np.where(chosen, np.maximum(times, time), times)
    ready = (times <= clock.now) & (out <= clock.now) & (clock.takes | kept_in_wheel | kept_in_table) & clock.delivers
    identity = fates.identity[rows]
    last = _last_of_each(identity, np.where(kept, times, _NONE))
    open_again = np.unique(identity[queued & ~kept])
    own = last[~again[last]]
    uncertain = int(np.isin(identity[own[~kept[own]]], open_again).sum())
    late = own[kept[own] & ~ready[own]]
    return DueTimers(
        never=int((~kept[own]).sum()) - uncertain,
        uncertain=uncertain,
        at_once=int((kept[own] & ready[own]).sum()),
        later=len(late),
        twice=int(kept[last[again[last]]].sum()) if clock.delivers else 0,
        before=_before(in_wheel[own], in_table[own], due_in_queue[own], stored, clock),
        by_segment=_by_segment(phy[late], times[late], clock, segments),
    )


def _latest(places: np.ndarray, unit_places: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return, of each place, the latest time of the units that lead to it."""
    found = np.full(len(places), _NONE, np.int64)
    if len(unit_places) and len(places):
        order = np.lexsort((times, unit_places))
        at = np.searchsorted(unit_places[order], places, "right") - 1
        there = (at >= 0) & (unit_places[order][at] == places)
        found[there] = times[order][at[there]]
    return found


def _last_of_each(identity: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the row with the latest time of each identity."""
    order = np.lexsort((times, identity))
    ends = np.ones(len(order), bool)
    ends[:-1] = identity[order][1:] != identity[order][:-1]
    found: np.ndarray = order[ends]
    return found


def _before(in_wheel: np.ndarray, in_table: np.ndarray, in_queue: np.ndarray, stored: int, clock: StartClock) -> int | None:
    """Return the least of the moments from which on a start passes over one of these messages."""
    slots = np.maximum(in_wheel, in_queue)
    ends = [slots[slots >= max(stored, 0)] + clock.reach]
    if not clock.read_keyed:
        ends.append(in_table[in_table > _NONE] + UNKNOWN_READ_MS)
    return min((int(end.min()) for end in ends if len(end)), default=None)


def _by_segment(phy: np.ndarray, times: np.ndarray, clock: StartClock, segments: Sequence[int]) -> np.ndarray:
    """Count messages by segment and time: those that the first retention, or a later one, may come before."""
    if not clock.delivers:
        times = np.full(len(times), clock.now + FAR_MS)
    chosen = times > max(clock.now, clock.cleans)
    if not chosen.any() or not len(segments):
        return NO_LATER
    starts = np.array(segments, np.int64)
    rows = np.zeros(int(chosen.sum()), LATER)
    rows["segment"] = starts[np.maximum(0, np.searchsorted(starts, phy[chosen], "right") - 1)]
    due = np.minimum(times[chosen], clock.now + FAR_MS) // LATER_MS * LATER_MS
    rows["due"], rows["count"] = np.maximum(due, clock.cleans), 1
    return _folded(rows)


def _folded(rows: np.ndarray) -> np.ndarray:
    """Add up rows of one segment and one time."""
    if not len(rows):
        return NO_LATER
    keys = np.stack([rows["segment"], rows["due"]], axis=1)
    found, place = np.unique(keys, axis=0, return_inverse=True)
    sums = np.zeros(len(found), LATER)
    sums["segment"], sums["due"] = found[:, 0], found[:, 1]
    np.add.at(sums["count"], place.reshape(-1), rows["count"])
    return sums
