"""The whole CommitLog of a copy as one list of ranges: which bytes are messages, damage, unwritten, or missing.

An entry without a message is judged by the kind of range that it leads to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schemas.layouts.store_names import COMMITLOG
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, EXTENT_UNWRITTEN, MappedFile, SegmentSummary
from store_io.base.java.java_compat import MAX_LONG
from store_io.source.byte_source import folder_of

EXPIRED, MESSAGE, DAMAGED, UNWRITTEN, FILLER, MISSING, BEYOND, UNREAD = range(8)
_OF_EXTENT = {EXTENT_MESSAGE: MESSAGE, EXTENT_DAMAGED: DAMAGED, EXTENT_UNWRITTEN: UNWRITTEN, EXTENT_FILLER: FILLER}


@dataclass
class LogMap:
    """The ranges of a copy's CommitLog by their kind.

    starts: ascending physical offsets at which a range begins.
    kinds: the kind of each range. The last range is open-ended.
    start, end: bounds of the copy's CommitLog by its files' names and lengths.
    data_end: the end of its last message.
    """

    starts: np.ndarray
    kinds: np.ndarray
    start: int
    end: int
    data_end: int
    segment_bytes: int
    bases: tuple[int, ...] = ()  # of the segments, ascending
    paths: tuple[str, ...] = ()  # of the same segments

    def segment_of(self, phy_offset: int) -> tuple[str, int]:
        """Return (path, position) of a byte that some segment of the copy holds."""
        number = bisect_right(self.bases, phy_offset) - 1
        return self.paths[number], phy_offset - self.bases[number]

    def kind_at(self, phy_offsets: np.ndarray) -> np.ndarray:
        """Return the kind of range that each physical offset lies in; what is below the CommitLog's start is EXPIRED."""
        place = np.searchsorted(self.starts, phy_offsets, side="right") - 1
        return np.where(place < 0, EXPIRED, self.kinds[np.maximum(place, 0)])

    def range_end(self, phy_offset: int) -> int:
        """Return the end of the range that holds this physical offset."""
        place = int(np.searchsorted(self.starts, phy_offset, side="right"))
        return int(self.starts[place]) if place < len(self.starts) else (1 << 62)

    def segment_name(self, phy_offset: int) -> str:
        """Return the path that the segment holding this physical offset has, or would have.

        A missing one would be in the folder of the one before it.
        """
        number = max(0, bisect_right(self.bases, phy_offset) - 1)
        folder = folder_of(self.paths[number]) if self.paths else COMMITLOG
        return f"{folder}/{phy_offset - phy_offset % self.segment_bytes:020d}"


def log_map(segments: Sequence[SegmentSummary], segment_bytes: int, unread: Sequence[MappedFile] = ()) -> LogMap:
    """Return the map of these segments, in any order. Overlapping ones (a name twice) count once, the first listed.

    One that would reach beyond the largest physical offset is no part of the log.

    unread: segments of which nothing is known.
    """
    unknown = {file.path for file in unread}
    segments = [*segments, *(SegmentSummary(file.path, file.start, file.size) for file in unread)]
    segments = [s for s in segments if s.base_offset + s.size <= MAX_LONG]
    starts: list[int] = []
    kinds: list[int] = []
    position, data_end = None, 0
    bases: list[int] = []
    paths: list[str] = []
    first = min((s.base_offset for s in segments), default=0)
    for segment in sorted(segments, key=lambda s: (s.base_offset, s.path)):
        if position is not None and segment.base_offset < position:
            continue
        if position is not None and segment.base_offset > position:
            starts.append(position)
            kinds.append(MISSING)
        bases.append(segment.base_offset)
        paths.append(segment.path)
        for extent in segment.extents:
            starts.append(segment.base_offset + extent.start)
            kinds.append(_OF_EXTENT[extent.kind])
            if extent.kind == EXTENT_MESSAGE:
                data_end = max(data_end, segment.base_offset + extent.end)
        position = segment.base_offset + segment.size
        if not segment.extents:
            starts.append(segment.base_offset)
            kinds.append(UNREAD if segment.path in unknown else UNWRITTEN)
    end = position if position is not None else 0
    starts.append(end)
    kinds.append(BEYOND)
    return LogMap(
        np.array(starts, np.int64),
        np.array(kinds, np.int8),
        first,
        end,
        max(data_end, first),
        segment_bytes,
        tuple(bases),
        tuple(paths),
    )


def broken_between(log: LogMap, start: int, end: int) -> bool:
    """Say whether bytes between two physical offsets are damaged, missing or zero, so that messages may be gone there."""
    low = int(np.searchsorted(log.starts, start, side="right")) - 1
    high = int(np.searchsorted(log.starts, end, side="left"))
    kinds = log.kinds[max(low, 0) : high]
    return bool(np.isin(kinds, (DAMAGED, MISSING, UNWRITTEN, UNREAD)).any())
