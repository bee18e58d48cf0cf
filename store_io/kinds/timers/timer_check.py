"""config/timercheck: how far the timer store had come (timer.md 2).

Source: TimerCheckpoint, the constructor: it maps 4096 bytes, so a shorter file reads as zeros.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from schemas import timer_layout as layout
from store_io.source.byte_source import ByteSource
from store_io.source.store_dir import StoreListing


@dataclass(frozen=True)
class TimerCheck:
    """The fields as the broker reads them; zeros if the file is missing or short.

    size: -1 without a file.
    """

    size: int = -1
    read_time: int = 0  # ms; slots before it were delivered
    flush_position: int = 0  # of the timer log
    queue_offset: int = 0  # of the timer topic's queue 0: messages before it were taken out
    master_offset: int = 0  # the master's; on a master the same

    @property
    def empty(self) -> bool:
        """Whether it says nothing, so that a start takes everything from the beginning."""
        return not (self.read_time or self.flush_position or self.queue_offset)

    @property
    def odd(self) -> bool:
        """Whether it holds what no broker writes."""
        offsets = (self.flush_position, self.queue_offset, self.master_offset)
        return not 0 <= self.read_time <= layout.LARGEST_TIME or any(not -1 <= offset < 1 << 62 for offset in offsets)


def read_timer_check(source: ByteSource, listing: StoreListing) -> TimerCheck:
    """Read the timer's checkpoint. Raises StoreError if the file cannot be read."""
    entry = listing.get(layout.TIMER_CHECK)
    if entry is None or entry.kind != "file":
        return TimerCheck()
    with source.open(layout.TIMER_CHECK) as file:
        data = file.read(0, layout.CHECK_FIELDS_BYTES)
        size = file.size
    return TimerCheck(size, *struct.unpack(layout.CHECK_FIELDS_FORMAT, data.ljust(layout.CHECK_FIELDS_BYTES, b"\0")))
