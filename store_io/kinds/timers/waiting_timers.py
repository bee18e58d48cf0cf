"""The timer messages of a new store that are not delivered yet (timer.md 8). They come from the audit if it holds them all,
else from tasks, each for a part of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas.advice import Gap
from schemas.layouts.timer_layout import TIMER_TOPIC
from store_io.base.errors import StoreError
from store_io.base.wording import count_text
from store_io.kinds.timers.new_timers import Clock, waiting
from store_io.kinds.timers.timer_part import PartSink, in_part, with_timers
from store_io.kinds.timers.timer_records import DELETES, DELIVERED, NO_ROWS
from store_io.kinds.timers.timer_view import TimerView
from store_io.log.scan.segment_scan import SegmentTask, scan_all
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_work import Work
from store_io.source.byte_source import open_source
from store_io.wording.gaps import gap_text

MOST_WAITING = 4_000_000  # messages for which units are made: 160 bytes each while they are written
TOGETHER = 500_000  # messages and copies of one task


@dataclass
class WaitingTimers:
    """The timer messages that wait, and the end of their queue.

    rows: TIMER_ROW, by queue offset, one for each unit.
    waiting: messages to be delivered.
    overdue: of them, due when the log ends.
    last: the row of the timer queue's last message, or none.
    problem: why a part could not be read.
    """

    rows: np.ndarray
    waiting: int
    overdue: int
    last: np.ndarray
    problem: Gap | None = None

    @property
    def deletes(self) -> np.ndarray:
        """Say which rows delete another."""
        found: np.ndarray = self.rows["flags"] & DELETES != 0
        return found

    @property
    def last_deletes(self) -> bool:
        return bool(len(self.last) and self.last["flags"][0] & DELETES)

    @property
    def queue_end(self) -> int:
        """Return queue offset after the last message, as it says."""
        return int(self.last["queue_offset"][0]) + 1 if len(self.last) else 0


@dataclass(frozen=True)
class WaitingTimersTask:
    """One part of the messages.

    scans: of the segments with any.
    log_time: of the log's last message, ms.
    """

    scans: tuple[SegmentTask, ...]
    clock: Clock
    log_time: int
    part: int
    parts: int
    not_after: float = 0

    @property
    def store(self) -> int:
        return self.scans[0].store

    @property
    def bytes_to_read(self) -> int:
        return sum(scan.size for scan in self.scans)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(scan.path for scan in self.scans)

    def run(self) -> WaitingTimers:
        sink, source = PartSink(self.part, self.parts), open_source(self.scans[0].location)
        try:
            _, problem = scan_all(self.scans, source, sink)
        except StoreError as why:
            problem = why.gap()
        if problem:
            return WaitingTimers(NO_ROWS, 0, 0, NO_ROWS, problem)
        return _found(sink.rows, self.clock, self.log_time, self.part, self.parts)


def find_waiting(work: Work, audit: Audited, view: TimerView, clock: Clock) -> WaitingTimers | str:
    """Return the timer messages that still wait, or a sentence why they are not known."""
    if view.rows is not None:
        return _found(view.rows, clock, view.last_store_time, 0, 1)
    segments, count = with_timers(audit.segments)
    parts = max(1, -(-count // TOGETHER))
    scans = tuple(audit.scan_of(segment) for segment in segments)
    tasks = [WaitingTimersTask(scans, clock, view.last_store_time, part, parts) for part in range(parts)]
    found = work.run(tasks, "timers")
    problem = next((part.problem for part in found if part.problem), None)
    if problem:
        return gap_text(problem)
    units = sum(len(part.rows) for part in found)
    if units > MOST_WAITING:
        return f"{count_text(units, 'message')} of {TIMER_TOPIC} would have to wait, and units are made for {MOST_WAITING:,}"
    lasts = np.concatenate([NO_ROWS, *(part.last for part in found)])
    return WaitingTimers(
        _by_offset(np.concatenate([NO_ROWS, *(part.rows for part in found)])),
        sum(part.waiting for part in found),
        sum(part.overdue for part in found),
        _by_offset(lasts)[-1:],
    )


def _found(rows: np.ndarray, clock: Clock, log_time: int, part: int, parts: int) -> WaitingTimers:
    result = waiting(rows, clock)
    own = in_part(rows, part, parts)
    counted = rows[result.counted & own]
    messages = rows[rows["flags"] & DELIVERED == 0]
    overdue = int((counted["out_time"] <= log_time).sum())
    return WaitingTimers(_by_offset(rows[result.chosen & own]), len(counted), overdue, _by_offset(messages)[-1:])


def _by_offset(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort((rows["phy_offset"], rows["queue_offset"]))]
