"""The fates of timer messages: those that a start delivers, and those that it never will (timer.md 5, 6).

A message is known again by its identity: its copies, and what was rolled on, share it. Pure functions of rows and units.
Source: TimerMessageStore.enqueue, doEnqueue, dequeue, convert (5.1.4 to 5.5.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from schemas.losses import NEVER_DELIVERED, TimerCount, TimerFates
from store_io.base.fingerprints import among, distinct
from store_io.kinds.timers.timer_records import DELETES, DELIVERED
from store_io.kinds.timers.timer_recovery import Reach

MARGIN_MS = 2000  # a slot's messages are put while the read time moves on


@dataclass(frozen=True)
class TimerState:
    """The facts that decide a timer message's fate.

    truncate_at: the log's end after recovery.
    log_end: that of the timer log.
    queue_offset: the entry from which on messages are taken again; stored_offset: as the checkpoint has it.
    queue_max: the end of the queue.
    read_time: slots from it on are delivered (ms).
    last_store_time: that of the copy's messages.
    reach: the units that a start finds.
    entry_read_time: for entries in RocksDB, which have no position (-1), the same as read_time.
    """

    truncate_at: int
    log_end: int
    queue_offset: int
    stored_offset: int
    queue_max: int
    read_time: int
    last_store_time: int
    reach: Reach = field(default_factory=Reach, compare=False)
    entry_read_time: int = 0


@dataclass(frozen=True)
class MessageFates:
    """The messages below the cut, and for each fate which of them share it.

    out: the delivery times; phy: the physical offsets; offset: those in the queue.
    """

    identity: np.ndarray
    out: np.ndarray
    phy: np.ndarray
    offset: np.ndarray
    fates: Mapping[str, np.ndarray]

    def counts(self) -> TimerFates:
        """Return how many messages share each fate."""
        return TimerFates(**{name: _count(self.identity, self.out, mask) for name, mask in self.fates.items()})

    def undelivered(self) -> np.ndarray:
        """Return physical offsets of the messages that are never delivered, ascending: the last of each identity in the log."""
        lost = np.zeros(len(self.identity), bool)
        for name in NEVER_DELIVERED:
            lost |= self.fates[name]
        order = np.flatnonzero(lost)[np.argsort(self.phy[lost], kind="stable")][::-1]
        _, last = np.unique(self.identity[order], return_index=True)
        places: np.ndarray = np.sort(self.phy[order[last]])
        return places

    def delivering(self) -> np.ndarray:
        """Return physical offsets of the messages that a start delivers, ascending: those that wait or come again."""
        places: np.ndarray = np.sort(self.phy[self.fates["waiting"] | self.fates["again"]])
        return places


def fates_of(rows: np.ndarray, units: np.ndarray, state: TimerState) -> MessageFates:
    """Return the fates of these messages.

    rows: all messages and copies of some identities (TIMER_ROW).
    units: those of the timer log, and entries in RocksDB (TIMER_UNIT).
    """
    positions, times, phy_offsets = units["position"], units["time"], units["phy_offset"]
    copies, deletes = rows["flags"] & DELIVERED != 0, rows["flags"] & DELETES != 0
    kept = rows["phy_offset"] < state.truncate_at
    message = kept & ~copies & ~deletes & (rows["out_time"] >= 0)
    if not message.any():
        nothing = np.zeros(0, np.int64)
        return MessageFates(
            nothing, nothing, nothing, nothing, dict.fromkeys(("waiting", "again", *NEVER_DELIVERED), np.zeros(0, bool))
        )
    left = positions < state.log_end
    read_time = np.where(positions < 0, state.entry_read_time, state.read_time)
    to_come, fires = left & (times >= read_time), firing(units, state)
    to_fire, unfound = phy_offsets[fires], phy_offsets[to_come & ~fires]
    fired = phy_offsets[left & (times < read_time - MARGIN_MS)]
    any_unit = phy_offsets[left]
    phy, identity = rows["phy_offset"][message], rows["identity"][message]
    out, offset = rows["out_time"][message], rows["queue_offset"][message]
    pending = among(phy, to_fire) | (offset >= state.queue_offset) & (offset < state.queue_max)
    pending = among(identity, identity[pending])
    delivered = among(identity, rows["identity"][kept & copies])
    copied = among(identity, rows["identity"][copies | ~kept])  # a copy, or the message rolled on
    deleted = among(rows["unique"][message], rows["unique"][deletes & kept]) & (rows["unique"][message] != 0)
    gone = ~pending & ~delivered & ~deleted
    taken = ~among(phy, any_unit) & (offset < min(state.stored_offset, state.queue_offset))
    waits = among(phy, unfound)
    unseen = gone & ~copied & (among(phy, fired) | taken | waits)
    unseen &= ~among(identity, identity[gone & ~unseen])
    unreached = unseen & among(identity, identity[waits])
    unseen &= ~unreached
    late = unseen & (out > state.last_store_time - MARGIN_MS)
    no_unit = late & among(identity, identity[taken])
    fates = {
        "waiting": pending & ~delivered & ~deleted,
        "again": pending & delivered,
        "cut": gone & copied,
        "never": unseen & ~late,
        "after_end": late & ~no_unit,
        "unreached": unreached,
        "no_unit": no_unit,
    }
    return MessageFates(identity, out, phy, offset, fates)


def firing(units: np.ndarray, state: TimerState) -> np.ndarray:
    """Say which of these units a start finds and has still to deliver, as long as the clock takes none."""
    positions, times = units["position"], units["time"]
    keyed = positions < 0
    to_come = (positions < state.log_end) & (times >= np.where(keyed, state.entry_read_time, state.read_time))
    found: np.ndarray = to_come & (keyed | state.reach.found(times, positions))
    return found


def _count(identity: np.ndarray, out: np.ndarray, chosen: np.ndarray) -> TimerCount:
    if not chosen.any():
        return TimerCount()
    times = out[chosen]
    return TimerCount(distinct(identity[chosen]), int(times.min()), int(times.max()))
