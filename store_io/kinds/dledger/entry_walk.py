"""One data file of DLedger, walked by its entry headers alone, each header held against its index unit.

Recovery reads no bodies either (dledger.md 3); the records in the entries are the segment scan's. After a broken header the next
one is looked for by the position that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from schemas.layouts import dledger_layout as layout
from schemas.rows import MappedFile
from store_io.base.compiled.native import kept
from store_io.base.errors import StoreChanged, StoreError
from store_io.kinds.dledger.ledger_walks import (
    CHAIN,
    FILE_END,
    FILLER,
    HEADER,
    MAX_STRETCHES,
    UNWRITTEN,
    DataWalk,
    EntryPlace,
    Stretch,
    UnequalUnits,
)
from store_io.kinds.dledger.unit_reader import UnitReader
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

WINDOW_BYTES = 4 << 20
ROWS = 1 << 15  # headers of one batch
_AT, _SIZE, _INDEX, _TERM = range(4)


@kept(layout)
def _headers(data, at, end, base, left, rows):  # type: ignore[no-untyped-def]
    """Fill rows with (index in data, size, entry index, term) of plausible headers that follow one another in data[at:end].

    base: the physical offset of data[0].
    left: the bytes of the file from data[0] on.
    Gives (number of rows, position at which the next header is expected).
    """
    count = 0
    while count < len(rows) and at + layout.HEADER_BYTES <= end:
        magic, size, body = np.int64(0), np.int64(0), np.int64(0)
        index, term, pos = np.int64(0), np.int64(0), np.int64(0)
        for k in range(4):
            magic = (magic << 8) | data[at + k]
            size = (size << 8) | data[at + layout.SIZE_POSITION + k]
            body = (body << 8) | data[at + layout.BODY_SIZE_POSITION + k]
        for k in range(8):
            index = (index << 8) | data[at + layout.INDEX_POSITION + k]
            term = (term << 8) | data[at + layout.TERM_POSITION + k]
            pos = (pos << 8) | data[at + layout.POS_POSITION + k]
        if magic != layout.MAGIC or pos != base + at or size != body + layout.HEADER_BYTES:
            break
        if body <= 0 or size > left - at:
            break
        rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = at, size, index, term
        count += 1
        at += size
    return count, at


@kept(layout)
def _next_header(data, low, high, base, left):  # type: ignore[no-untyped-def]
    """Return the index of the first plausible header in data[low:high], or -1. All of a header must lie in data."""
    for at in range(low, high):
        if data[at + 3] != 1 or data[at] != 0 or data[at + 1] != 0 or data[at + 2] != 0:
            continue
        size, body, pos = np.int64(0), np.int64(0), np.int64(0)
        for k in range(4):
            size = (size << 8) | data[at + layout.SIZE_POSITION + k]
            body = (body << 8) | data[at + layout.BODY_SIZE_POSITION + k]
        for k in range(8):
            pos = (pos << 8) | data[at + layout.POS_POSITION + k]
        if pos == base + at and size == body + layout.HEADER_BYTES and body > 0 and size <= left - at:
            return at
    return -1


@dataclass(frozen=True)
class DataTask:
    """One data file to walk. Picklable.

    index: the group's index files.
    wanted: the entry that its checkpoint commits.
    """

    store: int
    location: StoreLocation
    file: MappedFile
    index: tuple[MappedFile, ...]
    wanted: int = -1
    window_bytes: int = WINDOW_BYTES
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return self.file.size

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.file.path,)

    def run(self) -> DataWalk:
        return walk_data(self)


def walk_data(task: DataTask, source: ByteSource | None = None) -> DataWalk:
    """Return the file's stretches. Never raises over bytes; a file that cannot be read gives `problem`."""
    file = task.file
    walk = DataWalk(file.path, file.start, file.size)
    source = source or open_source(task.location)
    units = UnitReader(source, task.index)
    try:
        with source.open(file.path) as opened:
            if opened.size != file.size:
                raise StoreChanged.in_size(file.path, opened.size, file.size)
            window = SegmentWindow(opened, file.size, max(task.window_bytes, 4 * layout.HEADER_BYTES))
            _Walk(walk, window, units, task.wanted).run()
            walk.bytes_read = window.bytes_read + units.bytes_read
    except StoreError as why:
        walk.problem = why.gap(file.path)
    finally:
        units.close()
    return walk


class _Walk:
    """The state of one walk. The open stretch is kept as numbers until it ends."""

    def __init__(self, walk: DataWalk, window: SegmentWindow, units: UnitReader, wanted: int):
        self.walk, self.window, self.units, self.wanted = walk, window, units, wanted
        self.first: tuple[int, int, int] | None = None  # position, index, term of the open stretch's first entry
        self.last: tuple[int, int, int] = (0, 0, 0)
        self.rise = 0, 0  # position at which the last term begins, and the term before it
        self.unequal: int | None = None

    def run(self) -> None:
        walk, at = self.walk, 0
        head = self.window.read(0, min(walk.size, layout.HEADER_BYTES))
        if len(head) >= layout.TERM_POSITION:
            walk.first_index = int.from_bytes(head[layout.INDEX_POSITION : layout.TERM_POSITION], "big", signed=True)
        while True:
            at = self._follow(at)
            ended_by = self._what_is(at)
            if at == 0:
                walk.ended_by = ended_by
            self._close(at, ended_by)
            if ended_by in (FILLER, FILE_END):
                return
            found = self._resume(at)
            if found is None:
                return
            at = found

    # ---- following headers -------------------------------------------------------------------------------------------

    def _follow(self, at: int) -> int:
        """Take entry after entry; return the position at which no plausible header follows."""
        for rows in headers_of(self.window, self.walk.start, self.walk.size, at):
            self._take(rows)
            at = int(rows[-1, _AT] + rows[-1, _SIZE])
        return at

    def _take(self, rows: np.ndarray) -> None:
        index, term = rows[:, _INDEX], rows[:, _TERM]
        breaks = np.flatnonzero((np.diff(index) != 1) | (np.diff(term) < 0)) + 1
        for part in np.split(np.arange(len(rows)), breaks):
            first, last = rows[part[0]], rows[part[-1]]
            start = int(first[_AT])
            _, last_index, last_term = self.last
            if self.first is not None and (int(first[_INDEX]) != last_index + 1 or int(first[_TERM]) < last_term):
                self._close(start, CHAIN)
            if self.first is None:
                self.first = start, int(first[_INDEX]), int(first[_TERM])
                self.rise = start, int(first[_TERM])
            elif int(first[_TERM]) > last_term:
                self.rise = start, last_term
            rises = np.flatnonzero(np.diff(term[part]))
            if len(rises):
                at = part[rises[-1] + 1]
                self.rise = int(rows[at, _AT]), int(term[at - 1])
            self.last = int(last[_AT]), int(last[_INDEX]), int(last[_TERM])
            self._compare(rows[part])

    def _compare(self, rows: np.ndarray) -> None:
        """Hold these entries, which follow one another, against their units."""
        walk, first, count = self.walk, int(rows[0, _INDEX]), len(rows)
        starts = rows[:, _AT] + walk.start
        leading = self.first is not None and self.first[0] == 0  # the open stretch begins at the file's first byte
        if leading and first <= self.wanted < first + count:
            place = self.wanted - first
            walk.wanted = EntryPlace(int(starts[place]), int(starts[place] + rows[place, _SIZE]))
        units = self.units.read(first, count) if 0 <= first else np.zeros(count, layout.UNIT_DTYPE)
        equal = (units["magic"] == layout.MAGIC) & (units["pos"] == starts) & (units["size"] == rows[:, _SIZE])
        equal &= (units["index"] == rows[:, _INDEX]) & (units["term"] == rows[:, _TERM])
        if int(rows[0, _AT]) == 0:
            walk.sound_start = bool(equal[0])
        wrong = np.flatnonzero(~equal)
        if not len(wrong):
            return
        self.unequal = first + int(wrong[0]) if self.unequal is None else self.unequal
        for part in np.split(wrong, np.flatnonzero(np.diff(wrong) != 1) + 1):
            self._unequal(UnequalUnits(int(rows[part[0], _AT]), first + int(part[0]), len(part)))

    def _unequal(self, units: UnequalUnits) -> None:
        ranges = self.walk.unequal_units
        if ranges and ranges[-1].first_index + ranges[-1].count == units.first_index:
            ranges[-1] = replace(ranges[-1], count=ranges[-1].count + units.count)
        elif len(ranges) < MAX_STRETCHES:
            ranges.append(units)
        else:
            self.walk.unequal_dropped += 1

    def _close(self, end: int, ended_by: str) -> None:
        if self.first is None:
            return
        start, first_index, first_term = self.first
        last_start, last_index, last_term = self.last
        if len(self.walk.stretches) < MAX_STRETCHES:
            known = start, end, last_start, first_index, last_index, first_term, last_term
            self.walk.stretches.append(Stretch(*known, self.unequal, ended_by, *self.rise))
        else:
            self.walk.stretches_dropped += 1
        self.first, self.unequal = None, None

    # ---- where no header is ------------------------------------------------------------------------------------------

    def _what_is(self, at: int) -> str:
        if at >= self.walk.size:
            return FILE_END
        head = self.window.read(at, at + 2 * layout.SIZE_POSITION)
        if head[:4] == layout.MAGIC_BLANK_BYTES:
            return FILLER
        return UNWRITTEN if not any(head[4:]) else HEADER

    def _resume(self, at: int) -> int | None:
        """Return the first position after `at` with a plausible header."""
        window, walk = self.window, self.walk
        at += 1
        while at + layout.HEADER_BYTES <= walk.size:
            if not (window.start <= at and at + layout.HEADER_BYTES <= window.end):
                at = window.skip_zeros(at, layout.SIZE_POSITION)
                if at + layout.HEADER_BYTES > walk.size:
                    return None
                window.hold(at)
            view = window.buffer[: window.end - window.start]
            high = len(view) - layout.HEADER_BYTES + 1
            found = int(_next_header(view, at - window.start, high, walk.start + window.start, walk.size - window.start))
            if found >= 0:
                return window.start + found
            at = window.start + high
        return None


def headers_of(window: SegmentWindow, base: int, size: int, at: int = 0) -> Iterator[np.ndarray]:
    """Yield rows of (position, size, index, term) of plausible headers that follow one another in a file. The first is at
    position `at`.

    base, size: the file's first physical offset and its length.
    """
    rows = np.empty((ROWS, 4), np.int64)
    while at + layout.HEADER_BYTES <= size:
        if not (window.start <= at and at + layout.HEADER_BYTES <= window.end):
            window.hold(at)
        view = window.buffer[: window.end - window.start]
        count, end = _headers(view, at - window.start, len(view), base + window.start, size - window.start, rows)
        if not count:
            return
        found = rows[:count].copy()
        found[:, _AT] += window.start
        at = window.start + int(end)
        yield found
