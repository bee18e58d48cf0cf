"""Makes the n-th system call below some folders fail, once, as a bad sector or a network that is gone for a moment does."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

READING = (
    "open", "stat", "lstat", "scandir", "listdir", "readlink", "preadv", "pread", "read", "fstat", "lseek", "copy_file_range",
    "sendfile",
)  # fmt: skip
CHANGING = ("pwrite", "write", "ftruncate", "mkdir", "utime", "unlink", "rmdir", "rename", "fsync", "close")

_readlink = os.readlink


class Calls:
    """count: how many calls there were.  failed: the path below its folder, and the call, of the one that was made to fail."""

    def __init__(self, folders: Sequence[Path], fail_at: int, number: int):
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._fail_at, self._number = fail_at, number
        self._lock = threading.Lock()
        self.count = 0
        self.failed = ("", "")

    @staticmethod
    def _path(what: Any, dir_fd: int | None) -> str:
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
        folder = next((one for one in self._folders if path == one or path.startswith(one + os.sep)), None)
        if folder is None:
            return
        with self._lock:
            number, self.count = self.count, self.count + 1
        if number == self._fail_at:
            self.failed = os.path.relpath(path, folder), call
            raise OSError(self._number, os.strerror(self._number), path)


@contextlib.contextmanager
def failing_calls(
    folders: Sequence[Path], names: Sequence[str] = READING, fail_at: int = -1, number: int = errno.EIO
) -> Iterator[Calls]:
    """The calls of this process that have these names and are about what lies in these folders; one of them fails.

    A file that is closed is closed, whether it is said to have failed or not. Opening to write is no reading.
    """
    calls = Calls(folders, fail_at, number)

    def guarded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            if name == "open" and len(words) > 1 and words[1] & (os.O_WRONLY | os.O_RDWR):
                return real(*words, **more)
            what = words[1] if name == "sendfile" else words[0] if words else "."
            if name == "close":
                try:
                    calls.meets(name, what, None)
                finally:
                    real(what)
                return None
            calls.meets(name, what, more.get("dir_fd"))
            return real(*words, **more)

        return call

    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(os, name, guarded(name, getattr(os, name))))
        yield calls


def failing_reads(root: Path, fail_at: int = -1, number: int = errno.EIO) -> contextlib.AbstractContextManager[Calls]:
    """The calls that read below one folder; see `failing_calls`."""
    return failing_calls([root], READING, fail_at, number)
