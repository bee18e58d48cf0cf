"""A segment as `message_verdict.Frames` for places in damage where a message may begin: their properties cost little.

The only question at such a place is whether a valid message begins there. A few properties decide that. Frames in damage may
claim properties that overlap, up to 32 KB for every 90 bytes, so compiled code picks the parts that decide before any is read.
"""

from __future__ import annotations

import numpy as np

from schemas import commitlog_layout as layout
from store_io.base.compiled.native import kept
from store_io.broker.message_verdict import Frames

DECIDING = (layout.PROPERTY_CRC_NAME, "DELAY", "DUP_INFO", "INNER_NUM", "INNER_BASE")  # all that can make a message invalid

_NAMES = np.array([list(name.encode().ljust(1 + len(name), b"\x01").ljust(16, b"\x00")) for name in DECIDING], np.uint8)


@kept()
def _last_parts(data, names, old_parser, found):  # type: ignore[no-untyped-def]
    """found[k]: begin and end of the last part that gives the property names[k] a value, as `parse_properties` reads it.

    names: each with its separator, filled up with zeros.
    """
    item, size = 0, len(data)
    while item < size:
        end = item
        while end < size and data[end] != 2:
            end += 1
        for k in range(len(names)):
            i = 0
            while names[k, i] != 0 and item + i < end and data[item + i] == names[k, i]:
                i += 1
            value = item + i
            if names[k, i] != 0 or value >= end:
                continue
            if old_parser:  # one value without a separator in it; separators after it are dropped
                place = value
                while place < end and data[place] != 1:
                    place += 1
                some = place > value
                while place < end and data[place] == 1:
                    place += 1
                if not some or place < end:
                    continue
            found[k, 0], found[k, 1] = item, end
        item = end + 1


def deciding_parts(data: bytes, old_parser: bool) -> bytes:
    """Return properties with the last part of each name in DECIDING, so that each name has its value in `data`."""
    found = np.full((len(DECIDING), 2), -1, np.int64)
    _last_parts(np.frombuffer(data, np.uint8), _NAMES, old_parser, found)
    return layout.PROPERTY_END.join(data[start:end] for start, end in sorted(found.tolist()) if start >= 0)


class CandidateFrames:
    """The frames of `frames`, with those properties alone that decide. old_parser: as in `parse_properties`."""

    def __init__(self, frames: Frames, old_parser: bool):
        self._old_parser = old_parser
        self.read, self.crc32 = frames.read, frames.crc32

    def properties(self, start: int, end: int) -> bytes:
        """The deciding ones of the properties in bytes [start, end)."""
        return deciding_parts(self.read(start, end), self._old_parser)
