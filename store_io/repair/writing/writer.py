"""What every writer of a new store can do. Paths are those of `StoreFile.path`: relative, with "/"."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

import numpy as np

from store_io.base.errors import StoreError
from store_io.source.byte_source import ByteSource, StoreLocation


class WriteFailed(StoreError):
    """The new store cannot be written: no space, no permission, a medium that fails."""


class FileWriter(ABC):
    """One file of the new store, open to be written. A context manager; all methods raise WriteFailed."""

    path: str

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def write(self, position: int, data: bytes | memoryview | np.ndarray) -> None:
        """Write all of the bytes, from that position on."""

    @abstractmethod
    def zero(self, start: int, end: int) -> None:
        """Make bytes [start, end) zeros, a hole where possible."""

    @abstractmethod
    def resize(self, size: int) -> None:
        """Give the file another length; what is added is zeros."""


class Writer(ABC):
    """Writes one new store. target: where it will be. Picklable; all methods raise WriteFailed."""

    target: str

    @property
    @abstractmethod
    def root(self) -> str:
        """Where new files lie under their own paths until the store is in its place."""

    @property
    @abstractmethod
    def location(self) -> StoreLocation:
        """The store as it is now, to be read."""

    @abstractmethod
    def free_bytes(self) -> int:
        """What is free for this user where the store will lie."""

    @abstractmethod
    def require(self, needed: int, what: str) -> None:
        """Raise WriteFailed where less than that is free. what: a phrase with its verb: "the copy needs"."""

    @abstractmethod
    def flush(self) -> None:
        """Have on the disk what was written so far."""

    @abstractmethod
    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it."""

    @abstractmethod
    def copy(self, source: ByteSource, path: str, to: str, mtime_ns: int = 0) -> None:
        """Copy a file of the source, holes as holes. Raises StoreChanged or Unreadable where the source is at fault."""

    @abstractmethod
    def create(self, path: str, size: int) -> None:
        """A new file of that many zeros, and the folders above it."""

    @abstractmethod
    def open(self, path: str) -> FileWriter:
        """An existing file, open to be written."""

    @abstractmethod
    def set_time(self, path: str, mtime_ns: int) -> None:
        """When the file was last changed: retention decides by it."""

    @abstractmethod
    def move(self, path: str, to: str) -> None:
        """Give a file another name."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""

    def put(self, path: str, data: bytes) -> None:
        """A small file, in place of one that may be there."""
        self.remove(path)
        self.create(path, 0)
        self.write(path, 0, data)

    def keeping_time(self, path: str) -> AbstractContextManager[FileWriter]:
        """An existing file, open to be written, whose time stays."""
        return self.open(path)

    def write(self, path: str, position: int, data: bytes | memoryview) -> None:
        """Write bytes into an existing file; its time stays."""
        with self.keeping_time(path) as file:
            file.write(position, data)

    def zero(self, path: str, start: int, end: int) -> None:
        """Make bytes [start, end) of an existing file zeros; size and time stay."""
        with self.keeping_time(path) as file:
            file.zero(start, end)

    def resize(self, path: str, size: int) -> None:
        """Give an existing file another length; its time stays."""
        with self.keeping_time(path) as file:
            file.resize(size)
