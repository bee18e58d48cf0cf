"""Result files under --out: whole or not there. Written beside, flushed to the disk, then renamed into place.

A run first removes what an earlier one left for the same stores, result.json before all else, and writes its own result.json
last. So a result.json means that every file it names is there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from jobs.cli.stores import INDEX, REPLICAS, RESULT
from jobs.runtime.remote_files import TEMPORARY, RemoteFiles, remote_files
from store_io.base.errors import StoreError, UsageError
from store_io.base.locks import lock_named
from store_io.base.paths import is_inner_path, is_uri

FOR_ALL = 0o644  # permissions, where nobody asks for narrower ones
KEPT = ".finished"  # in a store's folder until its run ends (jobs.audit.finished_stores)
_TRIAL, _TRIAL_BYTES = f".trial{TEMPORARY}", 1 << 16  # one name, so that there is never more than one that a killed run left
# Of a store, in the order in which `jobs.audit.one_store` makes their texts; a run first removes those of an earlier one.
STORE_FILES = ("plan.json", "findings.jsonl", "config.json", "report.html")


class OutputFailed(StoreError):
    """A result cannot be written or read."""


class Unwritten(NamedTuple):
    """Why something could not be written. no_room: the disk is full, so that nothing else is wrong with the place."""

    sentence: str
    no_room: bool = False


def said_once(problems: Iterable[Unwritten]) -> list[str]:
    """Return the problems, with those of a full disk as one. It is the first of them, and how many others have the same cause."""
    problems = list(problems)
    full = [place for place, problem in enumerate(problems) if problem.no_room]
    said = [problem.sentence for place, problem in enumerate(problems) if place not in full[1:]]
    if len(full) > 1:
        said[full[0]] += f" (and {len(full) - 1} more {'result' if len(full) == 2 else 'results'}, for the same reason)"
    return said


class OutputFolder:
    """The folder of --out: a path, or a URI of `s3://` or of what pyarrow knows. Nothing is touched before a method is called.

    Names are relative to it, with at most one "/": "result.json", "NAME/plan.json". All methods raise OutputFailed.
    """

    def __init__(self, out: str):
        self.out = out
        self._remote: RemoteFiles | None = None
        if is_uri(out):
            from pyarrow import ArrowException

            try:
                self._remote = remote_files(out)
            except (ArrowException, OSError, ValueError, StoreError) as problem:
                raise OutputFailed(f"{out}: {problem}") from None
        self._root = out.rstrip("/") or "/"

    def begin(self, stores: Sequence[str], keep: bool = False) -> None:
        """Make the folders, also the one of --out itself, and remove what an earlier run left there for these stores.

        keep: not what that run may have kept for being started again.
        """
        self.remove(RESULT)
        self.remove(INDEX)
        self.remove(REPLICAS)
        self._make_folder("")
        for store in stores:
            self._make_folder(store)  # first: where it is a link, what it leads to is not ours
            for name in STORE_FILES if keep else (*STORE_FILES, KEPT):
                self.remove(f"{store}/{name}")

    def try_to_write(self) -> None:
        """Make the folder, and in it something that is removed at once.

        Else nobody would know before the results are ready that they cannot be written.
        """
        self._make_folder("")
        try:
            if self._remote is not None:
                self._remote.try_to_write(_TRIAL)
            else:
                write_local(self._path(_TRIAL), [bytes(_TRIAL_BYTES)])
                os.unlink(self._path(_TRIAL))
        except FileNotFoundError:
            pass  # another run has removed it
        except OSError as problem:
            raise OutputFailed(f"{self.out}: cannot write there: {problem.strerror or problem}") from None

    def write(self, name: str, chunks: str | Iterable[str], mode: int = FOR_ALL) -> None:
        """Write one file, in UTF-8, in place of an earlier one. If it fails no part of the new one is left.

        mode: its permissions at most, on this machine.
        """
        parts = (part.encode("utf-8", "backslashreplace") for part in ([chunks] if isinstance(chunks, str) else chunks))
        path = self._path(name)
        try:
            if self._remote is not None:
                self._remote.write(name, parts)
            else:
                write_local(path, parts, mode=mode)
        except OSError as problem:
            raise OutputFailed(f"{self.out}/{name}: cannot write: {problem.strerror or problem}") from None

    def read(self, name: str, most: int | None = None) -> bytes | None:
        """Read a whole file; None if there is none.

        most: the bytes that it may have.
        """
        path = self._path(name)
        try:
            content = _read_local(path, most) if self._remote is None else self._remote.read(name, most)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise OutputFailed(f"{self.out}/{name}: cannot read: {problem.strerror or problem}") from None
        if most is not None and len(content) > most:
            raise OutputFailed(f"{self.out}/{name}: cannot read: it has more than {most:,} bytes")
        return content

    def _make_folder(self, store: str) -> None:
        path = self._path(store) if store else self._root
        try:
            if self._remote is not None:
                self._remote.make_folder(store)
                return
            if store:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path)
                if not stat.S_ISDIR(os.lstat(path).st_mode):
                    raise OutputFailed(f"{path}: cannot write there: it is a link or no folder")
            else:
                os.makedirs(path, exist_ok=True)
            for left in os.scandir(path):
                if left.name.startswith(".") and left.name.endswith(TEMPORARY):
                    os.unlink(left.path)
        except OSError as problem:
            raise OutputFailed(f"{path}: cannot make the folder: {problem.strerror or problem}") from None

    def remove(self, name: str) -> None:
        """Remove one file, if it is there."""
        path = self._path(name)
        try:
            if self._remote is not None:
                self._remote.remove(name)
            else:
                os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass  # _make_folder reports what is wrong with the folder
        except OSError as problem:
            raise OutputFailed(f"{path}: cannot remove the earlier one: {problem.strerror or problem}") from None

    def _path(self, name: str) -> str:
        if name.count("/") > 1 or not is_inner_path(name):
            raise ValueError(f"no name of a result: {name!r}")
        return f"{self._root}/{name}"


def _read_local(path: str, most: int | None) -> bytes:
    """Return a file's bytes, at most one more than `most`.

    Raises OSError, also for a link and for what could keep a reader waiting.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        entry = os.fstat(handle)
        if not stat.S_ISREG(entry.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        with open(handle, "rb", closefd=False) as file:
            return file.read() if most is None else file.read(min(most, entry.st_size) + 1)  # it takes as much memory as asked
    finally:
        os.close(handle)


def write_local(path: str, parts: Iterable[bytes], for_all: bool = False, mode: int = FOR_ALL) -> None:
    """Write a file of this machine, in place of an earlier one: whole or not at all. Raises OSError.

    for_all: everybody may read it, whatever the umask says.
    mode: its permissions, which the umask narrows.
    """
    folder, _, last = path.rpartition("/")
    folder = folder or "/"
    temporary = f"{folder}/.{last}.{secrets.token_hex(4)}{TEMPORARY}"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            if for_all:
                os.fchmod(handle, FOR_ALL)
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # not every file system can; the rename itself is done
            os.fsync(handle)
    finally:
        os.close(handle)


# ---- one run at a time ---------------------------------------------------------------------------------------------

LOCK_FILE = ".lock"
_UNABLE = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}


@contextlib.contextmanager
def hold(out: str, run_id: str, warn: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder of --out, which is made if it is missing. A second run would overwrite files that the first speaks of.

    The lock is flock's on a file that exists as long as the run: it ends with the process, however that ends. A remote --out has
    no lock: there two runs are the caller's to keep apart.
    warn: takes a sentence if nothing can be locked.

    Raises UsageError if another run holds it: nothing of that run is touched then. Any other fault of the folder is reported when
    something is written there.
    """
    handle = None if is_uri(out) else _take(out, warn)
    if handle is None:
        yield
        return
    path = f"{out}/{LOCK_FILE}"
    try:
        with contextlib.suppress(OSError):  # only for the sentence that a second run says
            os.ftruncate(handle, 0)
            os.write(handle, f"run {run_id}, process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # before it is unlocked: a run that locks the file then sees that it has no name any more
        os.close(handle)


def _take(out: str, warn: Callable[[str], None]) -> int | None:
    """Return the locked file; None if the folder or its file system allows none."""
    path = f"{out}/{LOCK_FILE}"
    while True:
        try:
            os.makedirs(out, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        try:
            if lock_named(handle, path):
                return handle
        except BlockingIOError:
            holder = os.read(handle, 300).decode("utf-8", "replace")
            os.close(handle)
            raise UsageError(f"--out {out!r}: {holder or 'another run'} is writing there; wait, or name another folder") from None
        except OSError as problem:
            os.close(handle)
            if problem.errno not in _UNABLE:
                return None
            warn(f"--out {out!r}: its file system has no locks; a second run into it at the same time would mix with this one")
            return None
        os.close(handle)  # the run that held it has removed it: a file of that name, if there is one, is another
