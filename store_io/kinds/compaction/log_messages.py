"""A queue's messages in the CommitLog, by queue offset: through the queue's entries, a window of them at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schemas import commitlog_layout as layout
from schemas.consumequeue_layout import ENTRY_BYTES
from schemas.entries import ENTRY_DTYPE
from schemas.rows import MappedFile
from store_io.base.errors import StoreError
from store_io.kinds.queues.consumequeue_reader import read_entries
from store_io.source.byte_source import ByteSource, OpenFiles

WINDOW_ENTRIES = 1 << 10
MAX_RECORD_BYTES = 64 << 20  # a larger record is not compared


@dataclass(frozen=True)
class LogFiles:
    """The files of the CommitLog and of the queue's entries. Picklable."""

    segments: tuple[MappedFile, ...]
    queue_files: tuple[MappedFile, ...]


class LogMessages:
    """`record` and `entries` of one queue. A file that cannot be read is as one that is not there: others say so."""

    def __init__(self, source: ByteSource, files: LogFiles):
        self._source, self._files = source, files
        self._open = OpenFiles(source)
        self._starts = np.array([f.start for f in files.segments], np.int64)
        self._first, self._rows = 0, np.zeros(0, ENTRY_DTYPE)
        self.bytes_read = 0

    def close(self) -> None:
        self._open.close()

    @property
    def first(self) -> int:
        """The number of the first entry that a file of the queue has room for."""
        return min((f.start // ENTRY_BYTES for f in self._files.queue_files), default=0)

    @property
    def end(self) -> int:
        """The number after the last entry that a file of the queue has room for."""
        return max(((f.start + f.size) // ENTRY_BYTES for f in self._files.queue_files), default=0)

    def entries(self, first: int, last: int) -> np.ndarray:
        """Return entries [first, last) of the queue; a missing entry is zeros. The caller bounds the range."""
        try:
            rows = read_entries(self._source, self._files.queue_files, first, last)
        except StoreError:
            return np.zeros(max(0, last - first), ENTRY_DTYPE)
        self.bytes_read += rows.nbytes
        return rows

    def record(self, queue_offset: int) -> bytes:
        """Return the bytes of the CommitLog to which this entry leads, or no bytes."""
        if not self._first <= queue_offset < self._first + len(self._rows):
            self._first = queue_offset
            self._rows = self.entries(queue_offset, queue_offset + WINDOW_ENTRIES)
        row = self._rows[queue_offset - self._first]  # never empty: the window begins there
        return self.at(int(row["phy_offset"]), int(row["size"]))

    def at(self, phy_offset: int, size: int) -> bytes:
        """Return these bytes of the CommitLog, or no bytes if no segment has all of them."""
        if phy_offset < 0 or not layout.MIN_SIZE_V1_BYTES <= size <= MAX_RECORD_BYTES:
            return b""
        number = int(np.searchsorted(self._starts, phy_offset, "right")) - 1
        if number < 0:
            return b""
        segment: MappedFile = self._files.segments[number]
        if phy_offset + size > segment.start + segment.size:
            return b""
        try:
            data = self._open.open(segment.path).read(phy_offset - segment.start, size)
        except StoreError:
            return b""
        self.bytes_read += len(data)
        return data if len(data) == size else b""


def same_but_place(one: bytes, other: bytes) -> bool:
    """Whether two records differ in nothing but the physical offset that each stores."""
    at = layout.PHY_OFFSET_POSITION
    return one[:at] == other[:at] and one[at + 8 :] == other[at + 8 :]
