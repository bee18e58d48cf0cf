"""Makes the n-th system call below some folders fail, once, as a bad sector or a network that is gone for a moment does, or a
server that is."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from botocore.exceptions import ClientError

from store_io.source import hdfs_client, s3_client

READING = (
    "open", "stat", "lstat", "scandir", "listdir", "readlink", "preadv", "pread", "read", "fstat", "lseek", "copy_file_range",
    "sendfile",
)  # fmt: skip
CHANGING = ("pwrite", "write", "ftruncate", "mkdir", "utime", "unlink", "rmdir", "rename", "fsync", "close")
REQUESTS = ("open", "preadv")  # the calls for which a file of a server needs an answer

Failure = int | Callable[[str], Exception]  # an error's number, or what is raised for a path


def unreached(path: str) -> Exception:
    """What the HDFS client's error becomes if a server does not answer for a moment."""
    return hdfs_client.problem(OSError("Connection timed out (os error 110)"), path)


def no_bucket(path: str) -> Exception:
    """What the answer becomes if an S3 server does not know its bucket for a moment."""
    return s3_client.problem(ClientError({"Error": {"Code": "NoSuchBucket"}}, "GetObject"), path)


SYSTEMS: tuple[Failure, ...] = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
SERVERS: tuple[Failure, ...] = (unreached, no_bucket)
KINDS = [(READING, SYSTEMS), (REQUESTS, SERVERS)]

_readlink = os.readlink


class Calls:
    """count: how many calls there were.  failed: the path below its folder, and the call, of the one that was made to fail."""

    def __init__(self, folders: Sequence[Path], fail_at: int, failure: Failure):
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._fail_at, self._failure = fail_at, failure
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
            number = self._failure
            raise OSError(number, os.strerror(number), path) if isinstance(number, int) else number(path)


@contextlib.contextmanager
def failing_calls(
    folders: Sequence[Path], names: Sequence[str] = READING, fail_at: int = -1, failure: Failure = errno.EIO
) -> Iterator[Calls]:
    """The calls of this process that have these names and are about what lies in these folders; one of them fails.

    A file that is closed is closed, whether it is said to have failed or not. Opening to write is no reading.
    """
    calls = Calls(folders, fail_at, failure)

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


def failing_reads(root: Path, fail_at: int = -1) -> contextlib.AbstractContextManager[Calls]:
    """The calls that read below one folder; see `failing_calls`."""
    return failing_calls([root], READING, fail_at)
