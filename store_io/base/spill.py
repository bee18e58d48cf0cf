"""Bytes that are written once and read back now and then: they lie in temporary files, so that very many take no memory.

The files have no name: nobody else can open them, and the system removes them with the process, however it ends. A file of
FILE_BYTES goes when nothing refers to any of its bytes any more. Where a disk is full the bytes stay in memory instead.
"""

from __future__ import annotations

import os
import tempfile
import threading
from typing import IO

from schemas.advice import Cause
from store_io.base.errors import StoreError

FILE_BYTES = 64 << 20  # of one file


class NotReadBack(StoreError):
    """A temporary file cannot be read any more."""

    cause = Cause.TEMPORARY_FILE_LOST


class _File:
    """A file without a name, which is closed when nothing refers to it."""

    def __init__(self) -> None:
        """Raises OSError."""
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    @property
    def descriptor(self) -> int:
        return self._file.fileno()


class Spilled:
    """Some bytes in a file. Pickled they are the bytes themselves: another process has no such file."""

    __slots__ = ("_at", "_file", "_size")

    def __init__(self, file: _File, at: int, size: int):
        self._file, self._at, self._size = file, at, size

    def read(self) -> bytes:
        """Return the bytes. Raises NotReadBack."""
        return self.read_part(0, self._size)

    def read_part(self, start: int, size: int) -> bytes:
        """Return `size` of the bytes, from `start` on. Raises NotReadBack."""
        try:
            data = os.pread(self._file.descriptor, size, self._at + start)
        except OSError as problem:
            raise NotReadBack(f"a temporary file of this run cannot be read: {problem.strerror or problem}") from None
        if len(data) != size:
            raise NotReadBack(f"a temporary file of this run holds {len(data):,} bytes of {size:,}")
        return data

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        return bytes, (self.read(),)


class _Files:
    """The file that is written to now; those before it live as long as something refers to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: _File | None = None
        self._end = 0

    def add(self, data: bytes) -> Spilled:
        """Raises OSError."""
        with self._lock:
            if self._file is None or self._end >= FILE_BYTES:
                self._file, self._end = _File(), 0
            done = 0
            while done < len(data):
                done += os.pwrite(self._file.descriptor, data[done:], self._end + done)
            at, self._end = self._end, self._end + len(data)
            return Spilled(self._file, at, len(data))


_files = _Files()


def _begin_anew() -> None:
    """Leave the parent's file alone in a new process."""
    global _files
    _files = _Files()


os.register_at_fork(after_in_child=_begin_anew)


def bytes_of(data: Spilled | bytes) -> bytes:
    """Return the bytes that were spilled. Raises NotReadBack."""
    return data if isinstance(data, bytes) else data.read()


def part_of(data: Spilled | bytes, start: int, size: int) -> bytes:
    """Return some of the bytes that were spilled. Raises NotReadBack."""
    return data[start : start + size] if isinstance(data, bytes) else data.read_part(start, size)


def spill(data: bytes) -> Spilled | bytes:
    """Put these bytes into a temporary file; return the bytes themselves if it cannot be written."""
    try:
        return _files.add(data)
    except OSError:  # a full disk above all: what was found must not be lost for it
        return data
