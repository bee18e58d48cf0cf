"""Counts the messages in one file of a log that a start does not read.

The scan is the audit's own, which accepts what passes every check. Of a data file of DLedger those entries do not count that the
log of this node holds as well: two logs of one group in which one entry is the same are the same up to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.advice import Gap
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.base.tasks import OfScan
from store_io.kinds.dledger.entry_walk import DataTask, headers_of
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import ByteSource, open_source
from store_io.source.segment_window import SegmentWindow

_SIZE = 1  # column of a row of `headers_of`


@dataclass(frozen=True)
class UnreadWalkTask(DataTask):
    """One data file of DLedger to walk: its headers say where the log ends and leftovers of a cut begin."""


@dataclass(frozen=True)
class UnreadCount:
    """The messages of one file that are in no log that a start reads."""

    path: str
    messages: int = 0
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class UnreadCountTask(OfScan):
    """One file to count. Picklable. own: the data file of the log that a start reads with the same name; None without one."""

    scan: SegmentTask
    own: MappedFile | None = None
    not_after: float = 0

    def run(self) -> UnreadCount:
        """Return the count. Never raises over bytes; a file that cannot be read gives `problem`."""
        source = open_source(self.scan.location)
        found = scan_segment(self.scan, source)
        if found.problem is not None:
            return UnreadCount(found.path, problem=found.problem)
        messages = sum(extent.message_count for extent in found.extents)
        if self.own is not None:
            try:
                messages = max(0, messages - _shared(source, self.scan, self.own))
            except StoreError as why:
                return UnreadCount(found.path, problem=why.gap(self.own.path))
        return UnreadCount(found.path, messages, found.bytes_read)


def _shared(source: ByteSource, scan: SegmentTask, own: MappedFile) -> int:
    """Return how many entries at the file's beginning are in this node's own file too. Raises StoreError."""
    with source.open(scan.path) as left, source.open(own.path) as right:
        theirs, ours = (
            _headers(SegmentWindow(left, scan.size, scan.window_bytes), scan.base_offset, scan.size),
            _headers(SegmentWindow(right, own.size, scan.window_bytes), own.start, own.size),
        )
        count, last = 0, None
        for mine, other in zip(theirs, ours, strict=False):
            if not np.array_equal(mine, other):
                break
            count, last = count + 1, mine
        if last is None:
            return 0
        at, size = int(last[0]), int(last[_SIZE])
        return count if left.read(at, size) == right.read(at, size) else 0


def _headers(window: SegmentWindow, base: int, size: int) -> Iterator[np.ndarray]:
    """Yield the rows of `headers_of`, one by one."""
    for rows in headers_of(window, base, size):
        yield from rows
