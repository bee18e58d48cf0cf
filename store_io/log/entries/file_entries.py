"""Entries of ConsumeQueue and BatchConsumeQueue files, by their numbers in the queue (formats.md 3, 4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.entries import BATCH_DTYPE, ENTRY_DTYPE, STORED_BATCH_DTYPE, STORED_ENTRY_DTYPE
from schemas.rows import MappedFile
from store_io.source.byte_source import ByteSource


def unit_bytes(batch: bool) -> int:
    """Return size of one entry."""
    return layout.BATCH_ENTRY_BYTES if batch else layout.ENTRY_BYTES


def entries_of(data: bytes | bytearray | memoryview | np.ndarray, batch: bool = False) -> np.ndarray:
    """Return the whole entries in some bytes, as ENTRY_DTYPE or BATCH_DTYPE, in the machine's byte order."""
    unit = unit_bytes(batch)
    stored = np.frombuffer(data, STORED_BATCH_DTYPE if batch else STORED_ENTRY_DTYPE, count=len(data) // unit)
    return stored.astype(BATCH_DTYPE if batch else ENTRY_DTYPE)


def valid_entries(rows: np.ndarray) -> np.ndarray:
    """Say which entries recover() takes. They have an address and a size, and in a BatchConsumeQueue a base and a count."""
    good = (rows["phy_offset"] >= 0) & (rows["size"] > 0)
    if rows.dtype == BATCH_DTYPE:
        good &= (rows["base"] >= 0) & (rows["count"] > 0)
    return good


# ---- entries by number ---------------------------------------------------------------------------------------------


class FilesAt:
    """Files of one queue, to be asked many times which of them hold a place. Each answer takes a few steps, however many files
    there are."""

    def __init__(self, files: Sequence[MappedFile]):
        starts = [file.start for file in files]
        self._files, self._starts = files, sorted(starts)
        self._order = sorted(range(len(files)), key=starts.__getitem__)
        self._ends = list(accumulate([files[n].start + files[n].size for n in self._order], max))  # of it and all before it

    def holding(self, start: int, end: int) -> list[MappedFile]:
        """Return the files with bytes of [start, end) of the queue, in the order in which they were given."""
        low, high = bisect_right(self._ends, start), bisect_left(self._starts, end)
        numbers = sorted(self._order[low:high]) if high - low > 1 else self._order[low:high]
        files = self._files
        return [files[n] for n in numbers if files[n].start < end and start < files[n].start + files[n].size]

    def at(self, position: int) -> MappedFile | None:
        """Return the first file that holds the byte at this position of the queue."""
        return next(iter(self.holding(position, position + 1)), None)


def entry_address(files: FilesAt, number: int, batch: bool = False) -> tuple[MappedFile, int]:
    """Return (file, position) of an entry, by its number in the queue. Raises LookupError if no file holds it."""
    unit = unit_bytes(batch)
    for file in files.holding(number * unit, (number + 1) * unit):
        first = file.start // unit
        if first <= number < first + file.size // unit:
            return file, (number - first) * unit
    raise LookupError(f"no file holds entry {number}")


def read_entries(
    source: ByteSource, files: Sequence[MappedFile] | FilesAt, first: int, last: int, batch: bool = False
) -> np.ndarray:
    """Return entries [first, last) of a queue as ENTRY_DTYPE or BATCH_DTYPE; zeros for an entry that no file holds.

    files: `FilesAt` for whoever asks many times. If files overlap (a name twice), the first one counts. The caller bounds the
    range.
    """
    unit = unit_bytes(batch)
    rows = np.zeros(max(0, last - first), BATCH_DTYPE if batch else ENTRY_DTYPE)
    filled = np.zeros(len(rows), bool)
    for file in files.holding(first * unit, last * unit) if isinstance(files, FilesAt) else files:
        start = file.start // unit
        low, high = max(first, start), min(last, start + file.size // unit)
        if low >= high or filled[low - first : high - first].all():
            continue
        found = read_file_entries(source, file.path, low - start, high - low, batch)
        place = slice(low - first, low - first + len(found))
        rows[place] = np.where(filled[place], rows[place], found)
        filled[place] = True
    return rows


def read_file_entries(source: ByteSource, path: str, first: int, count: int, batch: bool = False) -> np.ndarray:
    """Return entries [first, first + count) of one file as ENTRY_DTYPE or BATCH_DTYPE; fewer at the file's end."""
    unit = unit_bytes(batch)
    with source.open(path) as file:
        return entries_of(file.read(first * unit, count * unit), batch)
