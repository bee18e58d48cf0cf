"""One task that reads the timer log and the wheel, and holds them against each other (timer.md 3 to 5).

Its memory is bounded by the wheel's fixed number of slots and by a window; units leave it up to a limit that the task is given.
Source: TimerMessageStore.recoverAndRevise, doEnqueue, dequeue; TimerWheel.checkPhyPos (5.1.4 to 5.5.0).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.layouts import timer_layout as layout
from schemas.layouts.entries import UNIT_DTYPE
from schemas.rows import Finding, MappedFile
from schemas.severity_cases import Case, severity_in
from store_io.base.errors import StoreError
from store_io.base.findings import Findings
from store_io.kinds.timers.timer_files import TimerCheck
from store_io.kinds.timers.timer_recovery import Chains, Reach, Slots, Walk, reach_after
from store_io.kinds.timers.timer_units import NO_UNITS, UnitWindow, read_slots, unit_windows
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.piece_digest import PieceDigest

MAX_LOOKED_UP = 10_000  # units whose predecessor is read once more; links beyond are not judged, but counted


@dataclass
class TimerFiles:
    """The facts that the timer's files show.

    units: those of the log, in its order; None if there are more than the task may give.
    log_end: the end of recovery's walk, at which it cuts the log.
    last_entry: the physical offset and the size of the message that the bytes before `log_end` name.
    units_end: the position after the last unit.
    reach: the units that a start finds.
    links_unread: the number of links to older units that were not looked at.
    """

    units: np.ndarray | None = field(default_factory=lambda: NO_UNITS)
    unit_count: int = 0
    log_end: int = 0
    units_end: int = 0
    last_entry: tuple[int, int] | None = None
    slots: int = 0
    reach: Reach = field(default_factory=Reach)
    links_unread: int = 0
    digests: dict[str, tuple[int, str]] = field(default_factory=dict)  # path -> (size, digest)
    findings: list[Finding] = field(default_factory=list)
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class TimerTask:
    """A task that reads the timer's files.

    files: those of the timer log, as the broker maps them.
    wheel: its path, empty for none.
    precision: ms of a slot.
    begin: the position in the log from which on recovery reads; the start of that file counts.
    """

    store: int
    location: StoreLocation
    files: tuple[MappedFile, ...]
    wheel: str
    wheel_bytes: int
    check: TimerCheck
    begin: int
    precision: int
    unclean: bool
    max_units: int
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return sum(file.size for file in self.files) + self.wheel_bytes

    @property
    def paths(self) -> tuple[str, ...]:
        return (*(file.path for file in self.files), *((self.wheel,) if self.wheel else ()))

    def run(self) -> TimerFiles:
        return read_timer_files(self)


def read_timer_files(task: TimerTask, source: ByteSource | None = None) -> TimerFiles:
    """Never raises over bytes; what cannot be read gives `problem` alone."""
    try:
        return _Reading(task, source or open_source(task.location)).run()
    except StoreError as why:
        return TimerFiles(problem=why.gap())


class _Reading:
    """The state of one reading: of each slot the newest unit met so far, and the first of its chain."""

    def __init__(self, task: TimerTask, source: ByteSource):
        self.task, self.source = task, source
        self.found = TimerFiles(bytes_read=task.bytes_to_read)
        self.newest = np.zeros(layout.SLOTS, np.int64)  # position + 1; 0: no unit
        self.oldest = np.zeros(layout.SLOTS, np.int64)  # of the newest time; position + 1
        self.linked_from = np.zeros(layout.SLOTS, np.int64)  # position + 1
        self.kept_chains: Chains | None = None  # as they were where recovery ends the log
        self.begin = 0
        self.time = np.zeros(layout.SLOTS, np.int64)
        self.chain_first = np.zeros(layout.SLOTS, np.int64)  # position + 1
        self.kept: list[np.ndarray] = []
        self.looked_up = 0
        self.chains, self.damage = Findings(), Findings()
        self.after_units = Findings()  # damage after the last unit so far
        self.told = "", -1  # (file, position) of the first other row, if a finding says so

    def run(self) -> TimerFiles:
        found, task = self.found, self.task
        self._read_log()
        found.units = None if found.unit_count > task.max_units else np.concatenate([NO_UNITS, *self.kept])
        found.last_entry = self._last_entry()
        slots = self._read_wheel() if task.wheel else Slots()
        walk = Walk([file.start for file in task.files], self.begin, found.log_end, task.check.read_time, task.precision)
        found.reach = reach_after(self.kept_chains or self._chains(), slots, walk)
        self.damage.add_all(self._softened(finding) for finding in self.after_units.found)
        found.findings = [*self.damage.found, *self.chains.found, *found.findings]
        return found

    # ---- the log ---------------------------------------------------------------------------------------------------

    def _read_log(self) -> None:
        starts = [i for i, file in enumerate(self.task.files) if self.task.begin >= file.start]
        first, stopped = (starts[-1] if starts else 0), False
        self.begin = self.task.files[first].start if self.task.files else 0
        for number, file in enumerate(self.task.files):
            digest, position, filler = PieceDigest(), file.size, False
            for window in unit_windows(self.source, file, digest):
                if filler:
                    continue
                self._damage(window)
                self._zeros(window, position)
                filler, units = window.blank, window.units
                if window.stop >= 0 and position == file.size:
                    position = window.stop
                    if number >= first and not stopped:
                        stopped = not filler
                        self.found.log_end = file.start + position
                        stays = units["position"] < self.found.log_end
                        self._add(file, units[stays])
                        self.kept_chains, units = self._chains() if stopped else None, units[~stays]
                self._add(file, units)
            self.found.digests[file.path] = (file.size, digest.text())
            if number >= first and not stopped:
                self.found.log_end = file.start + position

    def _damage(self, window: UnitWindow) -> None:
        last = int(window.units["position"][-1]) - window.file.start if len(window.units) else -1
        if last >= 0:  # a unit lies after all damage so far
            self.damage.add_all(self.after_units.found)
            self.after_units = Findings()
        for found, chosen in (
            (self.damage, window.broken[window.broken < last]),
            (self.after_units, window.broken[window.broken > last]),
        ):
            for number, at in enumerate(chosen.tolist()):
                if not found.room(Code.TIMER_UNIT_DAMAGED):
                    found.add_more(Code.TIMER_UNIT_DAMAGED, "", len(chosen) - number)
                    break
                found.add(_no_unit(window.file, at, "other bytes", "no unit of a timer log"))

    def _zeros(self, window: UnitWindow, stop: int) -> None:
        """Report units after zeros: what was there is gone. stop: position of the first other row, from earlier windows."""
        stop = min(stop, window.stop if window.stop >= 0 else stop)
        place = window.file.path, stop
        if stop in window.broken:
            self.told = place
        if not len(window.units) or int(window.units["position"][-1]) - window.file.start <= stop or self.told == place:
            return
        self.told = place
        self.damage.add(_no_unit(window.file, stop, "zeros", "zeros in the timer log before later units"))

    def _softened(self, finding: Finding) -> Finding:
        """Return a lesser finding for half a unit at the log's end, which a killed broker may leave."""
        softened = severity_in(Code.TIMER_UNIT_DAMAGED, Case.AFTER_CRASH, self.task.unclean)
        return replace(finding, severity=softened)

    def _chains(self) -> Chains:
        arrays = (self.newest, self.oldest, self.linked_from)
        return Chains(self.time.copy(), *(array - 1 for array in arrays))

    def _add(self, file: MappedFile, units: np.ndarray) -> None:
        found = self.found
        if not len(units):
            return
        found.unit_count += len(units)
        found.units_end = int(units["position"][-1]) + layout.UNIT_BYTES
        if found.unit_count <= self.task.max_units:
            self.kept.append(units)
        else:
            self.kept.clear()
        self._chain(file, units)

    def _chain(self, file: MappedFile, units: np.ndarray) -> None:
        """Hold each unit's link against the unit before it in its slot, and remember the newest of each slot."""
        index = units["time"] // self.task.precision % layout.SLOTS
        order = np.argsort(index, kind="stable")
        slots, times, positions = index[order], units["time"][order], units["position"][order]
        before, before_time = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        first = np.ones(len(order), bool)
        first[1:] = slots[1:] != slots[:-1]
        before[1:], before_time[1:] = positions[:-1], times[:-1]
        before[first], before_time[first] = self.newest[slots[first]] - 1, self.time[slots[first]]
        expected = np.where(before_time == times, before, -1)
        previous = units["previous"][order]
        fresh = (before < 0) | (before_time // self.task.precision != times // self.task.precision)
        begins = previous == -1
        ends = fresh | begins  # of a chain that leads on to older units
        for at in np.flatnonzero((previous != expected) & ~begins).tolist():
            ends[at] |= not self._link(file, int(positions[at]), int(previous[at]), int(times[at]), int(expected[at]))
        self.oldest[slots[fresh]] = positions[fresh] + 1
        self.linked_from[slots[ends]] = positions[ends] + 1
        self.chain_first[slots[begins]] = positions[begins] + 1
        last = np.ones(len(order), bool)
        last[:-1] = first[1:]
        self.newest[slots[last]], self.time[slots[last]] = positions[last] + 1, times[last]

    def _link(self, file: MappedFile, position: int, previous: int, time: int, expected: int) -> bool:
        """Check a link that is not the newest unit of the slot.

        An older unit of the same time is fine, as a restart leaves it.
        """
        if 0 <= previous < self.task.files[0].start:
            return True  # its file was deleted by retention
        if 0 <= previous < position:
            self.looked_up += 1
            if self.looked_up > MAX_LOOKED_UP:
                self.found.links_unread += 1
                return True
            if self._time_at(previous) == time:
                return True
        at = position - file.start
        self.chains.add(
            Finding(
                Code.TIMER_UNIT_WRONG,
                file.path,
                at,
                at + layout.UNIT_BYTES,
                expected=f"previous unit of the slot at {expected}" if expected >= 0 else "no previous unit",
                actual=f"a link to {previous}",
                message="the link to the unit before it in the same slot",
            )
        )
        return False

    def _bytes_at(self, position: int, size: int) -> bytes:
        for file in self.task.files:
            if file.start <= position and position + size <= file.start + file.size:
                with self.source.open(file.path) as opened:
                    return opened.read(position - file.start, size)
        return b""

    def _time_at(self, position: int) -> int:
        data = self._bytes_at(position, layout.UNIT_BYTES)
        if len(data) < layout.UNIT_BYTES:
            return -1
        unit = np.frombuffer(data, UNIT_DTYPE)[0]
        return int(unit["write_time"]) + int(unit["delay"]) if unit["size"] == layout.UNIT_BYTES else -1

    def _last_entry(self) -> tuple[int, int] | None:
        """Return the message that recovery takes for the last unit's: the bytes before the log's end, whatever they are."""
        at = self.found.log_end - layout.UNIT_BYTES + layout.UNIT_PHY_OFFSET_POSITION
        data = self._bytes_at(at, 12) if at >= 0 else b""
        if len(data) < 12:
            return None
        return int.from_bytes(data[:8], "big", signed=True), int.from_bytes(data[8:], "big", signed=True)

    # ---- the wheel -------------------------------------------------------------------------------------------------

    def _read_wheel(self) -> Slots:
        task, found, digest = self.task, self.found, PieceDigest()
        slots = read_slots(self.source, task.wheel, digest)
        found.digests[task.wheel] = (task.wheel_bytes, digest.text())
        found.slots = len(slots)
        times = slots["time"] * task.precision
        waiting = times >= task.check.read_time
        wrong = Findings()
        self._slots_against_units(slots, waiting, wrong)
        self._units_against_slots(slots, wrong)
        found.findings += wrong.found
        return Slots(slots["index"], slots["time"], slots["first"], slots["last"])

    def _slots_against_units(self, slots: np.ndarray, waiting: np.ndarray, wrong: Findings) -> None:
        """Check the place, the last unit and the begin of the chain of each slot."""
        task, index = self.task, slots["index"]
        own = self.newest[index] > 0
        own &= self.time[index] // task.precision == slots["time"]
        newest, first = self.newest[index] - 1, self.chain_first[index] - 1
        gone = slots["last"] < (task.files[0].start if task.files else 0)
        misplaced = slots["time"] % layout.SLOTS != index
        behind = own & (slots["last"] < newest) & (newest >= task.check.flush_position)  # units after the last flush
        last = ~misplaced & ~gone & ~behind & ~(own & (slots["last"] == newest))
        # A later time of the same slot, met in the log after the wheel was flushed.
        last &= ~(~own & (self.newest[index] > 0) & (newest >= task.check.flush_position))
        begin = own & ~misplaced & (slots["last"] == newest) & (first >= 0) & (slots["first"] != first)
        begin &= slots["first"] >= (task.files[0].start if task.files else 0)
        ahead = slots["last"] >= self.found.units_end
        for chosen, what in ((misplaced, "index"), (last, "last"), (begin, "first")):
            for i in np.flatnonzero(chosen).tolist():
                slot = slots[i]
                expected = {
                    "index": f"slot {int(slot['time']) % layout.SLOTS}",
                    "last": f"last unit {newest[i]}" if own[i] else "a unit of the slot's time",
                    "first": f"first unit {first[i]}",
                }[what]
                actual = f"slot {index[i]}" if what == "index" else f"{what} unit {slot[what]}"
                harmless = not waiting[i] or what == "last" and ahead[i] and task.unclean
                self._slot_finding(wrong, int(index[i]), expected, actual, harmless)

    def _units_against_slots(self, slots: np.ndarray, wrong: Findings) -> None:
        """Check that each flushed unit is reached from its slot, unless its time is over."""
        task = self.task
        reached = np.zeros(layout.SLOTS, bool)
        own = slots["time"] == self.time[slots["index"]] // task.precision
        reached[slots["index"][own]] = True
        there = (self.newest > 0) & (self.newest - 1 < task.check.flush_position) & (self.time >= task.check.read_time)
        for index in np.flatnonzero(there & ~reached).tolist():
            expected = f"last unit {self.newest[index] - 1}"
            self._slot_finding(wrong, index, expected, "no slot of that time", False)

    def _slot_finding(self, wrong: Findings, index: int, expected: str, actual: str, harmless: bool) -> None:
        at = index * layout.SLOT_BYTES
        wrong.add(
            Finding(
                Code.TIMER_SLOT_WRONG,
                self.task.wheel,
                at,
                at + layout.SLOT_BYTES,
                severity_in(Code.TIMER_SLOT_WRONG, Case.NOBODY_WAITS, harmless),
                expected=expected,
                actual=actual,
                message="a slot of the timer wheel",
            )
        )


def _no_unit(file: MappedFile, at: int, actual: str, message: str) -> Finding:
    expected = f"a unit of {layout.UNIT_BYTES} bytes"
    return Finding(
        Code.TIMER_UNIT_DAMAGED, file.path, at, at + layout.UNIT_BYTES, expected=expected, actual=actual, message=message
    )
