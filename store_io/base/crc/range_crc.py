"""The CRC-32 of any range of a file from few bytes. Frames in damage claim bodies that overlap, each perhaps to the file's
end.

CRC-32 is linear: a range's follows from those of the bytes before its start and before its end. One pass keeps the CRC of all
bytes before each page, so a range takes at most one page at either end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from store_io.base.crc import checksum

PAGE_BYTES = 4096
PASS_BYTES = 1 << 20


class RangeCrc:
    """CRC-32s of ranges of one file. read: its bytes [start, end).

    The pass begins at the page of the first range, and continues to the end of the ranges. A range before it makes it begin
    again, as far before as it has read since: so all passes together read a file a few times. Four bytes are kept per page.
    """

    def __init__(self, read: Callable[[int, int], bytes]):
        self._read = read
        self._origin = 0
        self._crcs = np.zeros(0, np.uint32)  # of [origin, origin + number * PAGE_BYTES)
        self._known = 0  # of them
        self.summed = 0  # bytes read for it so far

    def crc32(self, start: int, end: int) -> int:
        """Return CRC-32 of bytes [start, end), unsigned."""
        if not self._known or start < self._origin:
            self._origin = max(0, start - start % PAGE_BYTES - self._known * PAGE_BYTES)
            self._crcs, self._known = np.zeros(256, np.uint32), 1
        return checksum.crc32_combine(self._upto(start), 0, end - start) ^ self._upto(end)

    def _upto(self, position: int) -> int:
        """Return CRC-32 of everything from the origin to that position."""
        number, rest = divmod(position - self._origin, PAGE_BYTES)
        while self._known <= number:
            self._extend(number)
        crc = int(self._crcs[number])
        return checksum.crc32(self._take(position - rest, position), crc) if rest else crc

    def _extend(self, number: int) -> None:
        """Continue the pass, at most to the end of page `number` - 1."""
        first = self._origin + (self._known - 1) * PAGE_BYTES
        data = memoryview(self._take(first, min(self._origin + number * PAGE_BYTES, first + PASS_BYTES)))
        pages = len(data) // PAGE_BYTES
        if self._known + pages > len(self._crcs):
            self._crcs = np.concatenate([self._crcs, np.zeros(max(pages, len(self._crcs)), np.uint32)])
        crc = int(self._crcs[self._known - 1])
        for page in range(pages):
            crc = checksum.crc32(data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES], crc)
            self._crcs[self._known] = crc
            self._known += 1

    def _take(self, start: int, end: int) -> bytes:
        self.summed += end - start
        return self._read(start, end)
