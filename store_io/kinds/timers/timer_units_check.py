"""Compares units of the timer log, and timers' entries in RocksDB, with the messages that they lead to (timer.md 6, 9).

Source: TimerMessageStore.doEnqueue (5.1.4 to 5.5.0): what a unit takes over of its message;
TimerMessageRocksDBStore.TimerSysTopicScanService, Timeline.TimelineIndexBuildService (5.4.0, 5.5.0): what an entry does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from schemas.layouts import timer_layout as layout
from schemas.rows import Finding
from store_io.kinds.timers.timer_records import DELETES, DELIVERED, NO_HASH
from store_io.kinds.timers.timer_units import TIMER_UNIT
from store_io.model import log_map as lm
from store_io.model.log_map import LogMap

MOST_WRONG = 100
NO_POSITION = -1  # of what lies in no timer log


@dataclass(frozen=True)
class WrongUnit:
    """One unit, or entry, that does not fit its message.

    place: its position in the timer log, or the time in its key.
    phy_offset: the physical offset to which it leads.
    """

    place: int
    phy_offset: int
    expected: str
    actual: str


@dataclass(frozen=True)
class UnitsBeyond:
    """Counts units, or entries, that lead too far, and names the first of them.

    place: its position in the timer log, or the time in its key.
    phy_offset: the physical offset to which it leads.
    """

    count: int = 0
    place: int = -1
    phy_offset: int = -1

    def __add__(self, other: UnitsBeyond) -> UnitsBeyond:
        first = min((b for b in (self, other) if b.count), key=lambda b: (b.place, b.phy_offset), default=self)
        return UnitsBeyond(self.count + other.count, first.place, first.phy_offset)


@dataclass
class UnitFaults:
    """The faults of timer units, or of timers' entries.

    beyond: units that lead to the end of the copy's log or further.
    stale: units that stay after a start and lead to its end of the log or further.
    wrong: the first wrong ones; wrong_count: all.
    """

    beyond: UnitsBeyond = field(default_factory=UnitsBeyond)
    stale: UnitsBeyond = field(default_factory=UnitsBeyond)
    wrong_count: int = 0
    wrong: list[WrongUnit] = field(default_factory=list)

    def __add__(self, other: UnitFaults) -> UnitFaults:
        wrong = sorted(self.wrong + other.wrong, key=lambda unit: (unit.place, unit.phy_offset))[:MOST_WRONG]
        return UnitFaults(self.beyond + other.beyond, self.stale + other.stale, self.wrong_count + other.wrong_count, wrong)

    def findings(self, finding: Callable[[WrongUnit], Finding]) -> list[Finding]:
        """Return a finding on each unit of `wrong`; the last one has the number of those that are not kept."""
        found = [finding(unit) for unit in self.wrong]
        return [*found[:-1], replace(found[-1], more=self.wrong_count - len(found))] if found else []


def _beyond(units: np.ndarray, end: int, place: str) -> UnitsBeyond:
    far = units[units["phy_offset"] >= end]
    return UnitsBeyond(len(far), int(far[place][0]), int(far["phy_offset"][0])) if len(far) else UnitsBeyond()


def _matched(units: np.ndarray, messages: np.ndarray, log: LogMap) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (units that lead into the log, a message for each, whether it is the unit's own, whether that one is missing).

    A unit that leads below the log's start has expired. No message is missing where the log is damaged: a finding of its own.
    """
    units = units[(units["phy_offset"] >= log.start) & (units["phy_offset"] < log.data_end)]
    messages = messages[np.argsort(messages["phy_offset"], kind="stable")] if len(messages) else np.full(1, -1, messages.dtype)
    near = messages[np.minimum(np.searchsorted(messages["phy_offset"], units["phy_offset"]), len(messages) - 1)]
    there = near["phy_offset"] == units["phy_offset"]
    return units, near, there, ~there & (log.kind_at(units["phy_offset"]) == lm.MESSAGE)


def unit_faults(units: np.ndarray, rows: np.ndarray, log: LogMap, precision: int, cut: tuple[int, int] | None) -> UnitFaults:
    """Compare each unit with the timer message at its physical offset.

    cut: the ends of the CommitLog and the timer log after a start; None if they are not known.
    """
    found = UnitFaults(_beyond(units, log.data_end, "position"))
    if cut is not None:
        found.stale = _beyond(units[units["position"] < cut[1]], cut[0], "position")
    units, own, there, missing = _matched(units, rows[rows["flags"] & DELIVERED == 0], log)
    rolls = units["magic"] & layout.MAGIC_ROLL != 0
    size = there & (own["size"] != units["size"])
    flag = there & ((units["magic"] & layout.MAGIC_DELETE != 0) != (own["flags"] & DELETES != 0))
    slots, due = units["time"] // precision, own["out_time"] // precision
    time = there & (own["out_time"] >= 0) & (units["magic"] & layout.MAGIC_OVERDUE == 0)
    time &= np.where(rolls, slots > due, slots != due)
    topic = there & (own["topic_hash"] != units["topic_hash"]) & (own["flags"] & NO_HASH == 0)
    return _described(found, units, "position", (
        (missing, lambda i: (f"a timer message at physical offset {units['phy_offset'][i]}", "none there")),
        (size, lambda i: (f"size {own['size'][i]}", f"size {units['size'][i]}")),
        (flag, lambda i: (
            f"the mark of a message that deletes at physical offset {units['phy_offset'][i]}", f"magic {units['magic'][i]}"
        )),
        (time, lambda i: (f"time {own['out_time'][i]}", f"time {units['time'][i]}")),
        (topic, lambda i: (f"topic hash {own['topic_hash'][i]}", f"topic hash {units['topic_hash'][i]}")),
    ))  # fmt: skip


def _described(
    found: UnitFaults, units: np.ndarray, place: str, faults: Sequence[tuple[np.ndarray, Callable[[int], tuple[str, str]]]]
) -> UnitFaults:
    """Return the faults with the units that have some of these; the first ones in words.

    place: the field with a unit's place.
    faults: (which units have it, the words for what is expected of a unit and what it has).
    """
    wrong = np.logical_or.reduce([chosen for chosen, _ in faults])
    found.wrong_count = int(wrong.sum())
    for i in np.flatnonzero(wrong)[:MOST_WRONG].tolist():
        expected, actual = (", ".join(words) for words in zip(*(told(i) for chosen, told in faults if chosen[i]), strict=True))
        found.wrong.append(WrongUnit(int(units[place][i]), int(units["phy_offset"][i]), expected, actual))
    return found


def entry_units(entries: np.ndarray) -> np.ndarray:
    """Return entries (TIMER_ENTRY) as units of the timer log (TIMER_UNIT), with no position."""
    units = np.zeros(len(entries), TIMER_UNIT)
    units["position"], units["previous"], units["magic"] = NO_POSITION, NO_POSITION, 1
    for name in ("time", "phy_offset", "size"):
        units[name] = entries[name]
    return units


def entry_faults(entries: np.ndarray, rows: np.ndarray, log: LogMap, truncate_at: int | None) -> UnitFaults:
    """Compare each entry (TIMER_ENTRY) with the timer message (TIMER_ROW) at its physical offset.

    truncate_at: the log's end after a start; None if it is not known.
    """
    found = UnitFaults(_beyond(entries, log.data_end, "time"))
    if truncate_at is not None:
        found.stale = _beyond(entries, truncate_at, "time")
    entries, own, there, missing = _matched(entries, rows[rows["flags"] & (DELIVERED | DELETES) == 0], log)
    size, time = there & (own["size"] != entries["size"]), there & (own["out_time"] != entries["time"])
    unique = there & (own["unique"] != entries["unique"])
    return _described(found, entries, "time", (
        (size, lambda i: (f"size {own['size'][i]}", f"size {entries['size'][i]}")),
        (time, lambda i: (f"time {own['out_time'][i]}", f"time {entries['time'][i]}")),
        (unique, lambda i: ("its message's unique key", "another one")),
        (missing, lambda i: (f"a timer message at physical offset {entries['phy_offset'][i]}", "none there")),
    ))  # fmt: skip
