"""A segment's bytes through one bounded, reused buffer."""

from __future__ import annotations

import numpy as np

from store_io.base.crc import checksum
from store_io.base.crc.range_crc import PAGE_BYTES, RangeCrc
from store_io.base.errors import StoreChanged
from store_io.source.byte_file import ByteFile
from store_io.source.piece_digest import PieceDigest

STREAM_BYTES = 1 << 20
SUMS_PER_BYTE = 2  # see SegmentWindow
LEAST_BYTES = 64  # a frame's header up to its own address always fits


class SegmentWindow:
    """`message_verdict.Frames` over one file, with a buffer that slides over it.

    buffer[0] is the byte at `start`; bytes up to `end` are valid. Reads outside of the window go to the file directly, so any
    range can be had in bounded memory. Raises StoreChanged if the file has become shorter than it was.
    The digest takes bytes when they leave the window.
    summed: the bytes of which CRCs were asked for one by one. In a file without much damage it is a small part of the size; from
    SUMS_PER_BYTE times the size on, ranges share one pass, so that overlapping ones cost no more than some pages each.
    """

    def __init__(self, file: ByteFile, size: int, window_bytes: int, digest: bool = False):
        self.file = file
        self.size = size
        self.buffer = np.empty(max(LEAST_BYTES, min(window_bytes, size)), np.uint8)
        self.start = self.end = 0
        self.bytes_read = 0
        self.summed = 0
        self._ranges: RangeCrc | None = None
        self._digest = PieceDigest() if digest else None
        self._digested = 0

    def hold(self, position: int) -> None:
        """Fill the buffer from `position` on, to its capacity or the file's end; what it already holds is kept."""
        kept = self.end - position if self.start <= position <= self.end else 0
        self._digest_to(self.end - kept)
        if kept:
            self.buffer[:kept] = self.buffer[position - self.start : self.end - self.start]
        self.start, self.end = position, position + kept
        want = min(len(self.buffer), self.size - position) - kept
        if want > 0:
            self._fill(position + kept, self.buffer[kept : kept + want])
            self.end += want

    def _fill(self, position: int, target: np.ndarray) -> None:
        got = self.file.read_into(position, target)
        self.bytes_read += got
        if got != len(target):
            raise StoreChanged(f"{self.file.path}: {position + got} bytes could be read of a file that had {self.size}")

    def _digest_to(self, end: int) -> None:
        """Have the digest take what the window holds before `end`, unless something before the window is still missing."""
        if self._digest and self.start <= self._digested < end:
            self._digest.feed(self.buffer[self._digested - self.start : end - self.start])
            self._digested = end

    def read(self, start: int, end: int) -> bytes:
        """Return bytes [start, end), fewer if the file ends before."""
        start, end = max(0, start), min(end, self.size)
        if start >= end:
            return b""
        if self.start <= start and end <= self.end:
            return self.buffer[start - self.start : end - self.start].tobytes()
        data = self.file.read(start, end - start)
        self.bytes_read += len(data)
        if len(data) != end - start:
            raise StoreChanged(f"{self.file.path}: {start + len(data)} bytes could be read of a file that had {self.size}")
        return data

    def crc32(self, start: int, end: int) -> int:
        """Return CRC-32 of bytes [start, end), unsigned."""
        if end - start > PAGE_BYTES and self.summed > SUMS_PER_BYTE * self.size:
            self._ranges = self._ranges or RangeCrc(self.read)
            return self._ranges.crc32(start, end)
        self.summed += end - start
        if self.start <= start and end <= self.end:
            return checksum.crc32(self.buffer[start - self.start : end - self.start].data)
        crc = 0
        for at in range(start, end, STREAM_BYTES):
            crc = checksum.crc32(self.read(at, min(end, at + STREAM_BYTES)), crc)
        return crc

    def properties(self, start: int, end: int) -> bytes:
        """Return all properties in bytes [start, end)."""
        return self.read(start, end)

    def digest(self) -> str:
        """Return the digest of the whole file; reads what was not read yet. Empty without `digest`."""
        if self._digest is None:
            return ""
        self._digest_to(self.end)
        while self._skip_hole(self._digested) < self.size:
            scratch = np.empty(min(STREAM_BYTES, self.size - self._digested), np.uint8)
            self._fill(self._digested, scratch)
            self._digest.feed(scratch)
            self._digested += len(scratch)
        return self._digest.text()

    def first_nonzero(self, start: int) -> int:
        """Return position of the first byte from `start` on that is not zero, or the file's size."""
        at = start
        while at < self.size:
            if not self.start <= at < self.end:
                at = self._skip_hole(at)
                self.hold(at)
            found = _first_nonzero(self.buffer[at - self.start : self.end - self.start])
            if found >= 0:
                return at + found
            at = self.end
        return self.size

    def _skip_hole(self, position: int) -> int:
        """Return the position at which the file may have data again. Holes of a sparse file are zeros, and not read."""
        if self.start <= position <= self.end:
            self._digest_to(position)
        data_at = min(self.file.next_data(position), self.size)
        if self._digest and position == self._digested:
            self._digest.feed_zeros(data_at - position)
            self._digested = data_at
        return data_at

    def skip_zeros(self, position: int, keep: int) -> int:
        """Return the end of a hole that begins at `position`, but for its last `keep` bytes; `position` without a hole."""
        at = position
        if self.start <= at < self.end:
            if _first_nonzero(self.buffer[at - self.start : self.end - self.start]) >= 0:
                return position
            at = self.end
        return max(position, self._skip_hole(at) - keep)

    def _hole_start(self, start: int, end: int) -> int:
        """Return a position p of [start, end] such that [p, end) is a hole.

        It is tried in growing steps back, so p may be late.
        """
        step = STREAM_BYTES
        while end > start:
            low = max(start, end - step)
            if self.file.next_data(low) < end:
                break
            end, step = low, 2 * step
        return end

    def last_nonzero_end(self, start: int) -> int:
        """Return the position after the last byte from `start` on that is not zero, or `start`."""
        end = self.size
        while end > start:
            hole = self._hole_start(start, end)
            if hole < end:
                end = hole
                continue
            low = max(start, end - STREAM_BYTES)
            data = np.frombuffer(self.read(low, end), np.uint8)
            kept = np.flatnonzero(data)
            if len(kept):
                return low + int(kept[-1]) + 1
            end = low
        return start


def _first_nonzero(data: np.ndarray) -> int:
    step = 1 << 16
    for low in range(0, len(data), step):
        part = data[low : low + step]
        if part.max():  # the fastest test that numpy has: 40 GB/s
            return low + int((part != 0).argmax())
    return -1
