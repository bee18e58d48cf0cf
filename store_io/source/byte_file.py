"""A file of a copy, and a tree of such files: what every medium offers to read.

Reads are plain reads, so a file that shrinks underneath is an error, not a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Protocol

import numpy as np
import pyarrow as pa

from store_io.base.errors import StoreChanged, Unreadable
from store_io.base.failed_reads import note
from store_io.base.paths import without_login

Found = tuple[str, str, int, int]  # (path below the folder, kind, size, mtime_ns)
UNLISTED = "unlisted"  # the kind of a folder that cannot be listed: the source notes it unless no release opens that folder
FAILED = "failed"  # the kind of what the medium did not let us look up or list: the source notes it, and calls it "unreadable"


class ByteFile(Protocol):
    """One open file. A context manager; `path` as it was asked for, `size` as it was when it was opened."""

    path: str
    size: int

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        """Fill the buffer with the bytes from `position` on. Returns the number of bytes read, short only at the file's end.

        Raises StoreChanged if the file has become shorter than `size`, Unreadable if the medium fails.
        """

    def read(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position` on, fewer only at the file's end."""
        buffer = bytearray(max(0, min(size, self.size - position)))
        self.read_into(position, memoryview(buffer))
        return bytes(buffer)

    def next_data(self, position: int) -> int:
        """Return a position p >= `position` such that all bytes between are zero.

        It is the begin of a sparse file's next data, or the file's end.
        """
        return min(position, self.size)

    def next_hole(self, position: int) -> int:
        """Return a position after `position` up to which there is data. It is the file's end if the file system does not say."""
        return self.size

    def descriptor(self) -> int | None:
        """Return the open file's descriptor, to read only, for copies that the system itself makes; None without one."""
        return None

    @property
    def allocated(self) -> int:
        """Return the bytes of the medium that the file takes.

        They are less than `size` if it has holes and the file system says so.
        """
        return self.size

    def close(self) -> None: ...

    def __enter__(self) -> ByteFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class BasicFile(ByteFile):
    """Reads by `_fill` of the subclass: (position, view) -> bytes read, 0 at the end only."""

    def _fill(self, position: int, view: memoryview) -> int:
        raise NotImplementedError

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        wanted = max(0, min(len(view), self.size - position))
        done = 0
        try:
            while done < wanted:
                count = self._fill(position + done, view[done:wanted])
                if count == 0:
                    raise StoreChanged(f"{self.path}: had {self.size} bytes and ended at {position + done} while it was read")
                done += count
        except Unreadable as error:
            note(self.path, error)
            raise
        except (OSError, pa.ArrowException) as error:
            failed = Unreadable(f"{self.path}: cannot be read at {position + done}: {reason(error)}")
            note(self.path, failed)
            raise failed from error
        return done


class Folder(Protocol):
    """One tree of files: the store's root, or a part that lies elsewhere."""

    def has(self, relative: str) -> bool: ...

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        """Open a file.

        sparsely: little of it will be read, here and there, beside many other files.
        """

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        """Return everything below the folder `relative` ("" is the tree itself), down to `depth` levels.

        An absent one is empty.
        """


def reason(error: BaseException) -> str:
    """Return the system's words for what went wrong, without its number."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return without_login(" ".join(text.split())) or type(error).__name__
