"""All that is known of a copy's timer store once everything was read, and what a start makes of it (timer.md 5, 6).

Source: TimerMessageStore.recover, reviseQueueOffset, getMessageByCommitOffset (5.1.4 to 5.5.0).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from schemas.layouts import commitlog_layout, timer_layout
from schemas.losses import TimerFates, TimersOfCopy
from schemas.start_effect import TimersAfter
from store_io.base.errors import StoreError
from store_io.broker.prediction import Prediction
from store_io.kinds.timers.due_timers import UNKNOWN_READ_MS, DueTimers, StartClock, due_timers
from store_io.kinds.timers.timer_fates import MessageFates, TimerState, fates_of
from store_io.kinds.timers.timer_files import TimerParts
from store_io.kinds.timers.timer_part import TimerPart, TimerResults
from store_io.kinds.timers.timer_records import NO_ROWS
from store_io.kinds.timers.timer_recovery import queue_offset_after
from store_io.kinds.timers.timer_table import TimerEntries
from store_io.kinds.timers.timer_task import TimerFiles
from store_io.kinds.timers.timer_units_check import UnitFaults, entry_faults, entry_units, unit_faults
from store_io.model.evidence import Evidence
from store_io.model.log_map import LogMap
from store_io.model.opened_copy import OpenedCopy
from store_io.rocksdb.database import NO_DATABASE, StoredDatabase

TIMER_QUEUE = (timer_layout.TIMER_TOPIC, 0)
_HEAD = struct.Struct(">4xi12xq")  # of a message: magic, queue offset


@dataclass(frozen=True)
class TimerView:
    """The timer store with the effect of a start.

    entries: those of timers in RocksDB.
    rows: timer messages and their copies; None if they are too many to hold, or were not all read.
    together: the tasks' result on all parts, if the rows are too many.
    queue_offset: the entry from which on a start reads the timer topic; queue_max: that queue's end after load(). Both are None
    if nothing is predicted.
    """

    parts: TimerParts
    files: TimerFiles
    entries: TimerEntries
    rows: np.ndarray | None
    log: LogMap
    precision: int
    file_bytes: int
    last_store_time: int
    together: TimerPart | None = None
    truncate_at: int | None = None
    queue_offset: int | None = None
    queue_max: int | None = None

    @property
    def held(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return (messages, units of the timer log, entries in RocksDB); None if they are not all here.

        If they are too many, parts of them are judged by tasks of their own.
        """
        rows, units, entries = self.rows, self.files.units, self.entries.rows
        if rows is None or units is None or entries is None or self.damaged:
            return None
        return rows, units, entries

    @property
    def damaged(self) -> bool:
        """Say whether entries in RocksDB could not be read for bad bytes."""
        table = self.parts.table
        return self.entries.damaged is not None or table is not None and table.damaged is not None

    @property
    def database(self) -> StoredDatabase:
        """Return the database of timers in RocksDB."""
        return self.parts.table.database if self.parts.table is not None else NO_DATABASE

    @property
    def keyed_read_time(self) -> int:
        """Return the time up to which entries in RocksDB were delivered.

        If nothing says it, a start begins ten seconds before its own time (MessageRocksDBStorage.getCheckpointForTimer), which is
        not before the copy's last message.
        """
        table = self.parts.table
        if table is None or table.read_time is None:
            return self.last_store_time - UNKNOWN_READ_MS
        return table.read_time

    @property
    def judged(self) -> bool:
        """Say whether units and messages could be held against each other."""
        return self.held is not None or self.together is not None

    @property
    def state(self) -> TimerState | None:
        """Return the facts by which a start decides; None if none is predicted."""
        if self.queue_offset is None:
            return None
        assert self.truncate_at is not None and self.queue_max is not None
        check, table = self.parts.check, self.parts.table
        return TimerState(
            self.truncate_at,
            self.files.log_end,
            self.queue_offset,
            check.queue_offset if table is None else self.queue_offset,
            self.queue_max,
            check.read_time,
            self.last_store_time,
            self.files.reach,
            self.keyed_read_time,
        )

    @cached_property
    def faults(self) -> UnitFaults:
        """Return units that do not fit their messages."""
        if self.held is None:
            return self.together.faults if self.together is not None else UnitFaults()
        rows, units, _ = self.held
        cut = (self.truncate_at, self.files.log_end) if self.truncate_at is not None else None
        return unit_faults(units, rows, self.log, self.precision, cut)

    @cached_property
    def entry_faults(self) -> UnitFaults:
        """Return entries in RocksDB that do not fit their messages."""
        if self.held is None:
            return self.together.entry_faults if self.together is not None else UnitFaults()
        rows, _, entries = self.held
        return entry_faults(entries, rows, self.log, self.truncate_at)

    @cached_property
    def fates(self) -> TimerFates | None:
        """Return the fate of each timer message; None if it is not known."""
        if self.held is None:
            return self.together.fates if self.together is not None else None
        fates = self._message_fates()
        return fates.counts() if fates is not None else None

    def _message_fates(self) -> MessageFates | None:
        if self.held is None or self.state is None:
            return None
        rows, units, entries = self.held
        return fates_of(rows, np.concatenate([units, entry_units(entries)]), self.state)

    def due(self, clock: StartClock, segments: Sequence[int]) -> DueTimers | None:
        """Return what the clock of a start makes of the messages that wait; None if it is not known.

        segments: where those of the log begin.
        """
        if self.held is None:
            return self.together.due if self.together is not None else None
        fates = self._message_fates()
        if fates is None or self.state is None:
            return None
        _, units, entries = self.held
        return due_timers(fates, np.concatenate([units, entry_units(entries)]), self.state, clock, segments)

    def undelivered(self) -> np.ndarray | None:
        """Return the physical offsets of the messages that `fates.lost` counts.

        None if they are too many to be held, or not known.
        """
        fates = self._message_fates()
        return fates.undelivered() if fates is not None else None

    def delivering(self) -> np.ndarray | None:
        """Return the physical offsets of the messages that a start delivers.

        None if they are too many to be held, or not known.
        """
        fates = self._message_fates()
        return fates.delivering() if fates is not None else None

    def report(self) -> TimersOfCopy:
        """Return the figures of the timers for pages."""
        return TimersOfCopy(self.files.unit_count, self.faults.stale.count, self.fates)

    def after_start(self) -> TimersAfter | None:
        """Return the timer store after a start; None if no start is predicted."""
        if self.queue_offset is None:
            return None
        lost = self.fates.lost if self.fates is not None else None
        return TimersAfter(self.files.log_end, self.queue_offset, lost)


def timer_view(evidence: Evidence, parts: TimerParts | None, results: TimerResults) -> TimerView | None:
    """Return the view of the timer store; None if there are no timers, or they were not read."""
    copy, segments, prediction, all_read = evidence.copy, evidence.segments, evidence.prediction, evidence.all_read
    files, entries = results.files, results.entries
    if parts is None or not parts.judged or files is None or files.problem or entries.problem:
        return None
    rows = np.concatenate([NO_ROWS, *(s.timers for s in segments if s.timers is not None)])
    known = all_read and not any(s.timers_dropped for s in segments)
    last = max((s.last_store_time for s in segments), default=0)
    together = results.together if all_read and results.together is not None and not results.together.problem else None
    sizes = (copy.rules.timer_precision, copy.rules.timer_file_bytes)
    view = TimerView(parts, files, entries, rows if known else None, evidence.log, *sizes, last, together)
    if prediction is None or not prediction.starts or prediction.after_load is None:
        return view
    queue = prediction.after_load.queues.get(TIMER_QUEUE)
    bounds = (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)
    last_message = _message_offset(copy, files.last_entry, prediction)
    check = parts.check
    keyed = parts.table.queue_offset if parts.table is not None else 0
    offset = queue_offset_after(copy.rules, check.queue_offset, check.master_offset, last_message, bounds, keyed)
    return replace(view, truncate_at=prediction.end, queue_offset=offset, queue_max=bounds[1])


def _message_offset(copy: OpenedCopy, entry: tuple[int, int] | None, prediction: Prediction) -> int | None:
    """Return the queue offset of the message at this place, as recovery reads it; None if the message is gone."""
    if entry is None:
        return None
    phy_offset, size = entry
    if not 0 <= phy_offset < prediction.truncate_at or not _HEAD.size <= size <= prediction.truncate_at - phy_offset:
        return None
    for file in copy.segment_files:
        if file.start <= phy_offset and phy_offset + size <= file.start + file.size:
            try:
                with copy.source.open(file.path) as opened:
                    data = opened.read(phy_offset - file.start, _HEAD.size)
            except StoreError:
                return None
            if len(data) < _HEAD.size:
                return None
            magic, offset = _HEAD.unpack(data)
            return int(offset) if magic in (commitlog_layout.MAGIC_V1, commitlog_layout.MAGIC_V2) else None
    return None
