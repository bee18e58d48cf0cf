"""The CRC-32 of any range of a file from few bytes: frames in damage claim bodies that overlap, each perhaps to the file's end.

CRC-32 is linear: that of a range follows from those of the two beginnings that end at its start and at its end. One pass keeps
the CRC of all that lies before each page; a range then takes at most a page at either end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schemas import commitlog_layout
from store_io.base import checksum
from store_io.base.native import kept

PAGE_BYTES = 4096
PASS_BYTES = 1 << 20
_POLYNOMIAL = 0xEDB88320  # of CRC-32, bits reversed; bit 31 is the power 0


def _product(left: int, right: int) -> int:
    """left * right modulo the polynomial, in Python's numbers."""
    found = 0
    for bit in range(31, -1, -1):
        if left >> bit & 1:
            found ^= right
        right = right >> 1 ^ (_POLYNOMIAL if right & 1 else 0)
    return found


def _byte_powers() -> np.ndarray:
    """x to the power of 8 * 2^k, for each k: what moves a CRC over 2^k bytes."""
    powers = [1 << 23]
    while len(powers) < 63:
        powers.append(_product(powers[-1], powers[-1]))
    return np.array(powers, np.int64)


_POWERS = _byte_powers()


@kept(commitlog_layout)
def _moved(crc, count, powers):  # type: ignore[no-untyped-def]
    """The CRC as it adds to that of `count` bytes behind it."""
    k = 0
    while count:
        if count & 1:
            factor, moved = powers[k], np.int64(0)
            for bit in range(31, -1, -1):
                if factor >> bit & 1:
                    moved ^= crc
                crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
            crc = moved
        count >>= 1
        k += 1
    return crc


class RangeCrc:
    """CRC-32s of ranges of one file. read: its bytes [start, end).

    The pass begins at the page of the first range that is asked for, and goes on as far as ranges reach. A range before it makes
    it begin anew, as far before as it has come: so all passes together read a file a few times. Four bytes are kept per page.
    """

    def __init__(self, read: Callable[[int, int], bytes]):
        self._read = read
        self._origin = 0
        self._crcs = np.zeros(0, np.uint32)  # of [origin, origin + number * PAGE_BYTES)
        self._known = 0  # of them
        self.summed = 0  # bytes that were summed up so far

    def crc32(self, start: int, end: int) -> int:
        """CRC-32 of bytes [start, end), unsigned."""
        if not self._known or start < self._origin:
            self._origin = max(0, start - start % PAGE_BYTES - self._known * PAGE_BYTES)
            self._crcs, self._known = np.zeros(256, np.uint32), 1
        return int(_moved(self._upto(start), end - start, _POWERS)) ^ self._upto(end)

    def _upto(self, position: int) -> int:
        """CRC-32 of everything from the origin to that position."""
        number, rest = divmod(position - self._origin, PAGE_BYTES)
        while self._known <= number:
            self._extend(number)
        crc = int(self._crcs[number])
        return checksum.crc32(self._take(position - rest, position), crc) if rest else crc

    def _extend(self, number: int) -> None:
        """Go on with the pass, at most to the end of page `number` - 1."""
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
