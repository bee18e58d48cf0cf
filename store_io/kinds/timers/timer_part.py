"""A part of a store's timer messages, where they are too many to be held together: one of several tasks (timer.md 6).

Each reads the log and the timer log once more and keeps the messages of its own identities, and the units of its own places.
Source: as `kinds.timers.timer_fates` and `timer_units_check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.losses import TimerFates
from schemas.rows import MappedFile, SegmentSummary
from store_io.base.errors import StoreError
from store_io.kinds.timers.due_timers import DueTimers, StartClock, due_timers
from store_io.kinds.timers.timer_fates import TimerState, fates_of
from store_io.kinds.timers.timer_records import DELETES, DELIVERED, NO_ROWS, TimerRecords
from store_io.kinds.timers.timer_table import NO_ENTRIES, TimerEntries, timer_entries
from store_io.kinds.timers.timer_task import TimerFiles
from store_io.kinds.timers.timer_units import NO_UNITS, unit_windows
from store_io.kinds.timers.timer_units_check import UnitFaults, entry_faults, entry_units, unit_faults
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_all
from store_io.model.log_map import LogMap
from store_io.rocksdb.database import StoredDatabase
from store_io.source.byte_source import open_source
from store_io.source.piece_digest import PieceDigest

PLACE_BYTES = 64  # no two messages begin within so many bytes


@dataclass
class TimerPart:
    """The result of one task, or of all together.

    entry_faults: those of entries in RocksDB.
    fates: None if no start is predicted. due: None if no moment of a start is named, too.
    """

    faults: UnitFaults = field(default_factory=UnitFaults)
    fates: TimerFates | None = None
    bytes_read: int = 0
    problem: Gap | None = None
    entry_faults: UnitFaults = field(default_factory=UnitFaults)
    due: DueTimers | None = None

    def __add__(self, other: TimerPart) -> TimerPart:
        fates = self.fates + other.fates if self.fates is not None and other.fates is not None else None
        return TimerPart(
            self.faults + other.faults,
            fates,
            self.bytes_read + other.bytes_read,
            self.problem or other.problem,
            self.entry_faults + other.entry_faults,
            self.due + other.due if self.due is not None and other.due is not None else None,
        )


@dataclass
class TimerResults:
    """The results of the tasks on the timer store.

    entries: those of timers in RocksDB.
    together: the result of all parts; None without parts, or if one was not read.
    """

    files: TimerFiles | None = None
    entries: TimerEntries = field(default_factory=TimerEntries)
    together: TimerPart | None = None
    late: bool = False

    def add(self, part: TimerPart) -> None:
        """Add one more part."""
        if not self.late:
            self.together = self.together + part if self.together is not None else part

    def not_read(self) -> None:
        """Note that a part will never come."""
        self.late, self.together = True, None


@dataclass(frozen=True)
class TimerPartTask:
    """The task that judges one part of the timer messages.

    scans: segments with timer messages or copies.
    files: of the timer log.
    database: of timers in RocksDB.
    state: the facts by which a start decides; None: unknown.
    clock: of the start; None: no moment is named.
    """

    scans: tuple[SegmentTask, ...]
    files: tuple[MappedFile, ...]
    database: StoredDatabase
    log: LogMap
    precision: int
    state: TimerState | None
    part: int
    parts: int
    not_after: float = 0
    clock: StartClock | None = None

    @property
    def store(self) -> int:
        return self.scans[0].store

    @property
    def bytes_to_read(self) -> int:
        return sum(scan.size for scan in self.scans) + sum(file.size for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        return (*(scan.path for scan in self.scans), *(file.path for file in self.files))

    def run(self) -> TimerPart:
        try:
            return self._run()
        except StoreError as why:
            return TimerPart(problem=why.gap())

    def _run(self) -> TimerPart:
        sink, source = _PlacedSink(self.part, self.parts), open_source(self.scans[0].location)
        read, problem = scan_all(self.scans, source, sink)
        if problem:
            return TimerPart(problem=problem)
        rows = sink.rows
        places = np.unique(rows["phy_offset"])
        own, leading = [NO_UNITS], [NO_UNITS]
        for file in self.files:
            filler = False
            for window in unit_windows(source, file, PieceDigest()):
                if not filler:
                    units = window.units
                    own.append(units[units["phy_offset"] // PLACE_BYTES % self.parts == self.part])
                    leading.append(units[np.isin(units["phy_offset"], places)])
                filler = filler or window.blank
        entries = [NO_ENTRIES]
        for rows_of_entries in timer_entries(source, self.database, TimerEntries()):
            entries.append(rows_of_entries[rows_of_entries["phy_offset"] // PLACE_BYTES % self.parts == self.part])
            leading.append(entry_units(rows_of_entries[np.isin(rows_of_entries["phy_offset"], places)]))
        messages = np.concatenate([NO_ROWS, *sink.by_place])
        cut = (self.state.truncate_at, self.state.log_end) if self.state is not None else None
        faults = unit_faults(np.concatenate(own), messages, self.log, self.precision, cut)
        wrong = entry_faults(np.concatenate(entries), messages, self.log, cut[0] if cut is not None else None)
        found = TimerPart(faults, None, read + sum(file.size for file in self.files), entry_faults=wrong)
        if self.state is not None:
            units = np.concatenate(leading)
            fates = fates_of(rows, units, self.state)
            found.fates = fates.counts()
            if self.clock is not None:
                found.due = due_timers(fates, units, self.state, self.clock, [scan.base_offset for scan in self.scans])
        return found


class PartSink:
    """Keeps those timer messages and copies of a scan whose identity is of one part, and all that delete.

    No part knows before whose part a deleted message is.
    """

    want_keys = False

    def __init__(self, part: int, parts: int):
        self._part, self._parts = part, parts
        self._kept = [NO_ROWS]

    @property
    def rows(self) -> np.ndarray:
        """Return the rows in the order of the scans: TIMER_ROW."""
        return np.concatenate(self._kept)

    def add(self, scanned: ScannedRows) -> None:
        """Take the messages of one batch."""
        found = TimerRecords(scanned.columns.count)
        found.add(scanned.columns, scanned.keys, scanned.window)
        self._keep(found.rows)

    def _keep(self, rows: np.ndarray) -> None:
        self._kept.append(rows[(rows["flags"] & DELETES != 0) | in_part(rows, self._part, self._parts)])


class _PlacedSink(PartSink):
    """Keeps besides the messages whose place in the log is this part's."""

    def __init__(self, part: int, parts: int):
        super().__init__(part, parts)
        self.by_place: list[np.ndarray] = []

    def _keep(self, rows: np.ndarray) -> None:
        super()._keep(rows)
        place = rows["phy_offset"] // PLACE_BYTES % self._parts == self._part
        self.by_place.append(rows[place & (rows["flags"] & DELIVERED == 0)])


def in_part(rows: np.ndarray, part: int, parts: int) -> np.ndarray:
    """Say which of these rows are the part's by identity: a message and its copies always together."""
    found: np.ndarray = rows["identity"] % np.uint64(parts) == part
    return found


def with_timers(segments: Sequence[SegmentSummary]) -> tuple[list[SegmentSummary], int]:
    """Return (the segments with timer messages or copies, the number of these). Without any it is the first segment alone."""
    found = [s for s in segments if s.timers is not None and len(s.timers) + s.timers_dropped] or list(segments[:1])
    return found, sum(len(s.timers) + s.timers_dropped for s in found if s.timers is not None)
