"""Bytes that are written once and read back now and then: they lie in temporary files, so that very many take no memory.

The files have no name: nobody else can open them, and the system removes them with the process, however it ends. What nothing
refers to any more gives its room back.
"""

from __future__ import annotations

import os
import tempfile
import threading
from typing import IO

from store_io.base.errors import StoreError

FILE_BYTES = 64 << 20  # of one file; a file goes when all that was written to it is gone


class NoRoom(StoreError):
    """Temporary files cannot be written or read back."""


class Spilled:
    """Some bytes in a file. Pickled they are the bytes themselves: another process has no such file."""

    __slots__ = ("_at", "_file", "_size")

    def __init__(self, file: IO[bytes], at: int, size: int):
        self._file, self._at, self._size = file, at, size

    def read(self) -> bytes:
        """The bytes. Raises NoRoom."""
        try:
            data = os.pread(self._file.fileno(), self._size, self._at)
        except OSError as problem:
            raise _failed("read", problem) from None
        if len(data) != self._size:
            raise NoRoom(f"{tempfile.gettempdir()}: a temporary file of this run holds {len(data):,} bytes of {self._size:,}")
        return data

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        return bytes, (self.read(),)


class _Files:
    """The file that is written to now; those before it live as long as something refers to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._end = 0

    def add(self, data: bytes) -> Spilled:
        with self._lock:
            try:
                if self._file is None or self._end >= FILE_BYTES:
                    self._file, self._end = tempfile.TemporaryFile(buffering=0), 0
                done = 0
                while done < len(data):
                    done += os.pwrite(self._file.fileno(), data[done:], self._end + done)
            except OSError as problem:
                raise _failed("write", problem) from None
            at, self._end = self._end, self._end + len(data)
            return Spilled(self._file, at, len(data))

    def forget(self) -> None:
        """A new process leaves its parent's file alone."""
        self.__init__()  # type: ignore[misc]


_files = _Files()
os.register_at_fork(after_in_child=lambda: _files.forget())


def spill(data: bytes) -> Spilled:
    """Put these bytes into a temporary file. Raises NoRoom where they cannot be written."""
    return _files.add(data)


def _failed(what: str, problem: OSError) -> NoRoom:
    why = problem.strerror or str(problem)
    return NoRoom(f"{tempfile.gettempdir()}: cannot {what} a temporary file of this run: {why} (TMPDIR names another folder)")
