"""Entries of ConsumeQueue and BatchConsumeQueue files, by their numbers in the queue (formats.md 3, 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from schemas import consumequeue_layout as layout
from schemas.entries import BATCH_DTYPE, ENTRY_DTYPE, STORED_BATCH_DTYPE, STORED_ENTRY_DTYPE
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


def entry_address(files: Iterable[MappedFile], number: int, batch: bool = False) -> tuple[str, int]:
    """Return (path, position) of an entry, by its number in the queue. Raises LookupError if no file holds it."""
    unit = unit_bytes(batch)
    for file in files:
        first = file.start // unit
        if first <= number < first + file.size // unit:
            return file.path, (number - first) * unit
    raise LookupError(f"no file holds entry {number}")


def read_entries(source: ByteSource, files: Sequence[MappedFile], first: int, last: int, batch: bool = False) -> np.ndarray:
    """Return entries [first, last) of a queue as ENTRY_DTYPE or BATCH_DTYPE; zeros for an entry that no file holds.

    If files overlap (a name twice), the first one counts. The caller bounds the range.
    """
    unit = unit_bytes(batch)
    rows = np.zeros(max(0, last - first), BATCH_DTYPE if batch else ENTRY_DTYPE)
    filled = np.zeros(len(rows), bool)
    for file in files:
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
