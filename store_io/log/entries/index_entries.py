"""Index files: their header, where entries lie, and which of these belong to a segment (formats.md 6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from schemas.layouts import index_layout as layout
from schemas.layouts.entries import STORED_INDEX_DTYPE
from store_io.broker.index_state import IndexHeader
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource

PHY_OFFSET_POSITION, SECONDS_POSITION = 4, 12  # in an entry, after its hash
BLOCK_ENTRIES = 64  # of the search for a segment's entries: a block's median is right though some of its entries are not


def parse_header(data: bytes) -> IndexHeader:
    """Return the header in a file's first bytes."""
    return IndexHeader(*struct.unpack(layout.HEADER_FORMAT, data[: layout.HEADER_BYTES].ljust(layout.HEADER_BYTES, b"\0")))


def read_header(source: ByteSource, path: str) -> IndexHeader:
    """Return a file's header. Raises as `ByteSource.open`."""
    with source.open(path, sparsely=True) as file:
        return parse_header(file.read(0, layout.HEADER_BYTES))


def entry_position(slots: int, number: int) -> int:
    """Return the position of an entry in its file."""
    return layout.HEADER_BYTES + layout.SLOT_BYTES * slots + layout.ENTRY_BYTES * number


@dataclass(frozen=True)
class IndexFileRef:
    """The facts about an index file that a segment's task needs: its header as stored, and the configured numbers."""

    path: str
    size: int
    begin_phy_offset: int
    end_phy_offset: int
    begin_timestamp: int
    index_count: int  # as stored: the number of the next entry
    slots: int
    max_entries: int
    previous_end_timestamp: int = 0  # of the file before, as stored; 0 without one: the first entry's time is not compared
    end_timestamp: int | None = None  # None: not compared
    may_be_torn: bool = False  # the newest file after an unclean exit: its header may be of two moments

    @property
    def entries(self) -> int:
        """Return entries in it, by its header."""
        room = (self.size - self.position(0)) // layout.ENTRY_BYTES - 1
        return max(0, min(self.index_count - 1, self.max_entries - 1, room))

    def position(self, number: int) -> int:
        """Return the position of entry `number` in the file."""
        return entry_position(self.slots, number)


def read_range(file: ByteFile, ref: IndexFileRef, low: int, high: int) -> np.ndarray:
    """Return entries [low, high) as the file has them."""
    data = np.zeros((high - low) * layout.ENTRY_BYTES, np.uint8)
    file.read_into(ref.position(low), data)
    return data.view(STORED_INDEX_DTYPE)


def first_entry_from(file: ByteFile, ref: IndexFileRef, phy_offset: int) -> int:
    """Return the number of the first entry that belongs to messages at or after `phy_offset`; `ref.entries` + 1: none.

    Found by bisection over medians of blocks and, at the border, by the fewest entries on the wrong side, so single damaged
    entries do not mislead it. Depends on nothing but the file and the address: neighbouring segments agree on their border.
    """
    count = ref.entries
    blocks = -(-count // BLOCK_ENTRIES)

    def block(number: int) -> np.ndarray:
        low = 1 + number * BLOCK_ENTRIES
        return read_range(file, ref, low, min(count + 1, low + BLOCK_ENTRIES))["phy_offset"].astype(np.int64)

    low, high = 0, blocks  # the first block whose median is at or after the address
    while low < high:
        middle = (low + high) // 2
        phy = block(middle)
        if np.partition(phy, len(phy) // 2)[len(phy) // 2] < phy_offset:
            low = middle + 1
        else:
            high = middle
    first = max(0, low - 1)
    near = np.concatenate([np.zeros(0, np.int64)] + [block(k) for k in range(first, min(blocks, low + 1))])
    later = near >= phy_offset
    misplaced = np.concatenate([[0], np.cumsum(later)]) + np.concatenate([np.cumsum(~later[::-1])[::-1], [0]])
    return 1 + first * BLOCK_ENTRIES + int(misplaced.argmin())
