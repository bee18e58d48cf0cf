"""Makes the n-th system call that reads below a folder fail, as a bad sector or a network that is gone for a moment does."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

BY_PATH = ("open", "stat", "lstat", "scandir", "listdir", "readlink")
BY_DESCRIPTOR = ("preadv", "pread", "read", "fstat", "lseek", "copy_file_range", "sendfile")


class Reads:
    """count: how many calls there were.  failed: the path below the folder, and the call, of the one that was made to fail."""

    def __init__(self, root: Path, fail_at: int, number: int):
        self._root, self._fail_at, self._number = os.path.realpath(root), fail_at, number
        self._lock = threading.Lock()
        self.count = 0
        self.failed = ("", "")

    def _path(self, what: Any, dir_fd: int | None) -> str:
        """The path that a call is about, by the link that the system has for a descriptor."""
        if isinstance(what, int):
            try:
                return _readlink(f"/proc/self/fd/{what}")
            except OSError:
                return ""
        around = _readlink(f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
        return os.path.normpath(os.path.join(around, os.fsdecode(what)))

    def meets(self, call: str, what: Any, dir_fd: int | None) -> None:
        """Raise where this is the call that is to fail."""
        path = self._path(what, dir_fd)
        if path != self._root and not path.startswith(self._root + os.sep):
            return
        with self._lock:
            number, self.count = self.count, self.count + 1
        if number == self._fail_at:
            self.failed = os.path.relpath(path, self._root), call
            raise OSError(self._number, os.strerror(self._number), path)


_readlink = os.readlink


@contextlib.contextmanager
def failing_reads(root: Path, fail_at: int = -1, number: int = errno.EIO) -> Iterator[Reads]:
    """The reads of this process below that folder, of which the one with this number fails."""
    reads = Reads(root, fail_at, number)

    def guarded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            if name == "open" and len(words) > 1 and words[1] & (os.O_WRONLY | os.O_RDWR):
                return real(*words, **more)
            reads.meets(name, words[1] if name == "sendfile" else words[0] if words else ".", more.get("dir_fd"))
            return real(*words, **more)

        return call

    with contextlib.ExitStack() as stack:
        for name in (*BY_PATH, *BY_DESCRIPTOR):
            stack.enter_context(mock.patch.object(os, name, guarded(name, getattr(os, name))))
        yield reads
