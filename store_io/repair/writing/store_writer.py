"""A new store directory, written beside its place and renamed into it: the only module that writes a store's files.

    with StoreWriter.beside(target) as writer:   # a hidden folder in the target's folder
        writer.copy(source, path, path)          # and create, write, zero, remove
        with writer.placing():                   # one run at a time
            writer.publish()                     # flushed to the disk, then renamed: whole or not there

Files that go beside the store wait in `writer.waiting`, under their final names; `publish` puts them in place before the store.
Nothing else outside of that folder is ever written, and no file in it is a link: what a source holds as one is copied as a file.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import secrets
import shutil
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from store_io.base.errors import StoreError
from store_io.base.locks import lock_named
from store_io.base.paths import is_inner_path
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation


class Flushed:
    """Paths that nothing was written to since they were flushed. Safe among threads.

    Only this process's writes are seen. So once the writer was packed for another process, nothing counts as flushed any more.
    """

    def __init__(self, alone: bool = True) -> None:
        self._lock = threading.Lock()
        self._writes: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self._flushed: dict[str, int] = {}
        self._alone = alone

    def __reduce__(self) -> Any:
        self._alone = False
        return Flushed, (False,)

    def wrote(self, path: str) -> None:
        """Note that the file, or the names in the folder, are not what they were."""
        with self._lock:
            self._writes[path] += 1

    def forget(self, folder: str) -> None:
        """Note that a folder of that path is gone, or another one, with all that was in it."""
        below = folder + "/"
        with self._lock:
            for path in {*self._writes, *self._flushed}:
                if path == folder or path.startswith(below):
                    self._writes[path] += 1

    def opened(self, path: str) -> None:
        """Note that the file is open to be written: until it is closed it does not count as flushed."""
        with self._lock:
            self._open[path] += 1

    def closed(self, path: str) -> None:
        """Note the end of one such opening."""
        with self._lock:
            self._open[path] -= 1
            self._writes[path] += 1

    def state(self, path: str) -> int | None:
        """Return the value that `done` wants to know of the path before it is flushed. None if it is on the disk as it is."""
        with self._lock:
            writes = self._writes[path]
            return None if self._alone and self._flushed.get(path) == writes and not self._open[path] else writes

    def done(self, path: str, state: int) -> None:
        """Note that it was flushed after `state` was taken."""
        with self._lock:
            self._flushed[path] = state


COPY_BYTES = 16 << 20  # copied by one call of the system
FLUSH_THREADS = 16  # files flushed at once: the disk does so in one go
WINDOW_BYTES = 4 << 20
_FICLONE = 0x40049409
_PUNCH, _KEEP_SIZE = 0x2, 0x1
_FULL = (errno.ENOSPC, errno.EDQUOT)
_MARK = ".repairing-"
_LOCK = "lock"
_STORE = "store"
_WORKSHOP = "workshop"
_ASIDE = "aside"
_WAITING = "beside"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_ZEROS = bytes(1 << 20)

Reached = Callable[[int], None]


class WriteFailed(StoreError):
    """The new store cannot be written: no space, no permission, a medium that fails."""


@dataclass(frozen=True)
class StoreWriter:
    """The new store while it is made. Picklable: tasks on other processes write into the same folder.

    target: its final path.
    folder: the hidden folder beside it. Paths are those of `StoreFile.path`: relative, with "/".
    copies: whether `copy` copies bytes, which takes its time.
    """

    target: str
    folder: str
    flushed: Flushed = field(default_factory=Flushed, repr=False, compare=False)

    copies: ClassVar[bool] = True

    @property
    def root(self) -> str:
        """Return the folder in which new files lie under their own paths until the store is in its place."""
        return os.path.join(self.folder, _STORE)

    @property
    def location(self) -> StoreLocation:
        """Return the store as it is now, to be read."""
        return StoreLocation(self.root)

    def workshop(self) -> str:
        """Return a new, empty folder beside the new store, in which another program may write. Raises WriteFailed."""
        path = os.path.join(self.folder, _WORKSHOP)
        with _write_errors(path):
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path, 0o700)
        return path

    @property
    def aside(self) -> StoreWriter:
        """Return a writer for files that lie beside the new store while it is made, and are no part of it."""
        folder = os.path.join(self.folder, _ASIDE)
        return StoreWriter(folder, folder)

    @property
    def waiting(self) -> str:
        """Return the folder in which files wait that are put beside the new store when it gets its name."""
        return os.path.join(self.folder, _WAITING)

    # ---- the whole -------------------------------------------------------------------------------------------------

    @staticmethod
    @contextlib.contextmanager
    def beside(target: str) -> Iterator[StoreWriter]:
        """Yield a writer for a new store at that absolute path. Whatever ends the block, nothing stays but a published store.

        The rest of a killed run is removed; a run that is under way is left alone. Raises WriteFailed.
        """
        parent, name = os.path.split(target)
        lock = -1
        with _write_errors(target):
            _remove_stale(parent, name)
            while lock < 0:  # another run may have taken the folder for one that was left, before it was locked
                folder = os.path.join(parent, f".{name}{_MARK}{secrets.token_hex(4)}")
                lock = _locked_folder(folder)
        try:
            with _write_errors(target):
                os.mkdir(os.path.join(folder, _WAITING), 0o700)
                os.mkdir(os.path.join(folder, _STORE), 0o777)
            yield StoreWriter(target, folder)
        finally:
            _remove_folder(folder)
            _close(lock)

    @contextlib.contextmanager
    def placing(self) -> Iterator[None]:
        """Keep other runs from putting anything into the target's folder. Raises WriteFailed if the target exists."""
        path = os.path.dirname(self.target)
        with _write_errors(self.target):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # a file system without locks: then the rename alone decides
                fcntl.flock(folder, fcntl.LOCK_EX)
            if os.path.lexists(self.target):
                raise WriteFailed(f"{self.target}: exists by now, so another run was faster; nothing was put there")
            yield
        finally:
            _close(folder)

    @property
    def published(self) -> bool:
        """Say whether the store has left the hidden folder for its place."""
        try:
            os.lstat(self.root)
        except FileNotFoundError:
            return True
        except OSError:  # it cannot be looked up: what surely is there is not removed for that
            return os.path.lexists(self.target)
        return False

    def publish(self) -> None:
        """Flush all to the disk, put what waits beside the store in place, and rename the store to its place.

        Raises WriteFailed, also if something is there; then no file beside it stays that was not there before.
        """
        with _write_errors(self.target):
            self._flush_all()
            if os.path.lexists(self.target):
                raise WriteFailed(f"{self.target}: exists by now; nothing was put there")
        folder, moved = os.path.dirname(self.target), set[str]()
        try:
            self._put_beside(folder, moved)
            with _write_errors(self.target):
                _rename_new(self.root, self.target)
        except BaseException as problem:
            left = [] if self.published else take_back({*_put_by(self.folder), *moved})
            if left and isinstance(problem, WriteFailed):
                raise WriteFailed(f"{problem}; remove {' and '.join(left)}, which this run cannot remove again") from problem
            raise
        try:
            _sync_path(folder)
        except OSError as error:
            raise WriteFailed(
                f"{self.target}: is in place and whole, but {folder} cannot be flushed to the disk ({error.strerror or error}):"
                " a loss of power may undo it"
            ) from error

    def _put_beside(self, folder: str, moved: set[str]) -> None:
        """Give the files that wait their places, on the disk. moved: gets the names of those that wait no more."""
        with _write_errors(self.waiting):
            names = sorted(os.listdir(self.waiting))
        for name in names:
            path = os.path.join(folder, name)
            with _write_errors(path):
                if os.path.lexists(path):
                    raise WriteFailed(f"{path}: exists by now, of another new store; nothing was put there")
                _link_new(os.path.join(self.waiting, name), path, moved)
        if names:
            with _write_errors(folder):
                _sync_path(folder)

    def narrow(self, source: ByteSource) -> None:
        """Let nobody but the owner do more with a file or folder than with the source's of that path.

        If the source has none, the narrowest of its modes applies. Raises WriteFailed.
        """
        least, others = {False: 0o7777, True: 0o7777}, []
        with _write_errors(self.target):
            for full in (self.root, *_paths_below(self.root)):
                is_folder, mode = os.path.isdir(full), source.mode(full[len(self.root) + 1 :])
                if mode is None:
                    others.append((full, is_folder))
                else:
                    least[is_folder] &= mode
                    self._narrow(full, is_folder, mode)
            for full, is_folder in others:
                self._narrow(full, is_folder, least[is_folder])

    def _narrow(self, full: str, is_folder: bool, mode: int) -> None:
        before = stat.S_IMODE(os.lstat(full).st_mode)
        after = before & (mode | (0o700 if is_folder else 0o600))  # a broker writes all of it
        if after != before:
            os.chmod(full, after)
            self.flushed.wrote(full)

    def flush(self) -> None:
        """Have on the disk what was written so far. Raises WriteFailed, as all that follow do."""
        with _write_errors(self.target):
            self._flush_all()

    def flush_file(self, path: str) -> None:
        """Have one file's bytes on the disk, so that a later `flush` finds less to do."""
        with _write_errors(path), contextlib.suppress(FileNotFoundError):  # a step may remove it meanwhile
            self._flush_path(self._full(path))

    def _flush_all(self) -> None:
        paths = [self.root, *_paths_below(self.root)]
        with ThreadPoolExecutor(FLUSH_THREADS) as threads:
            try:
                list(threads.map(self._flush_in_place, paths))
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    def _flush_in_place(self, full: str) -> None:
        with _write_errors(self.target + full.removeprefix(self.root)):  # the path that it is to have
            self._flush_path(full)

    def _flush_path(self, full: str) -> None:
        state = self.flushed.state(full)
        if state is not None:
            _sync_path(full)
            self.flushed.done(full, state)

    def free_bytes(self) -> int:
        """Return the bytes that are free for this user in the place of the store."""
        with _write_errors(self.target):
            status = os.statvfs(os.path.dirname(self.target))
        return status.f_bavail * status.f_frsize

    def require(self, needed: int, what: str) -> None:
        """Raise WriteFailed if less than that is free.

        what: a phrase with its verb: "the copy needs".
        """
        free = self.free_bytes()
        if needed > free:
            raise WriteFailed(f"{self.target}: {what} {needed} bytes, {free} are free there")

    # ---- files -----------------------------------------------------------------------------------------------------

    def _full(self, path: str) -> str:
        if not is_inner_path(path):
            raise WriteFailed(f"{path!r}: no path inside a store")
        return os.path.join(self.root, path)

    def _told(self, path: str) -> str:
        """Return the path as an error names it: the whole path for a file aside, which is none of the new store."""
        return self._full(path) if self.target == self.folder else path

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        with _write_errors(path):
            self._make_folders(self._full(path))

    def _make_folders(self, full: str) -> None:
        if os.path.isdir(full):
            return
        os.makedirs(full, exist_ok=True)
        while len(full) >= len(self.root):
            self.flushed.wrote(full)
            full = os.path.dirname(full)

    def _new(self, path: str) -> StoreFileWriter:
        """Return a new, empty file, and the folders above it."""
        full = self._full(path)
        with _write_errors(self._told(path)):
            self._make_folders(os.path.dirname(full))
            self.flushed.wrote(os.path.dirname(full))
            return self._writing(path, os.open(full, _NEW, 0o666))

    def _writing(self, path: str, descriptor: int) -> StoreFileWriter:
        full = self._full(path)
        self.flushed.opened(full)
        return StoreFileWriter(self._told(path), descriptor, lambda: self.flushed.closed(full))

    def create(self, path: str, size: int) -> None:
        """Create a file of that many zeros, and the folders above it."""
        with self._new(path) as file:
            file.resize(size)

    def copy(self, source: ByteSource, path: str, to: str, mtime_ns: int = 0, reached: Reached | None = None) -> None:
        """Copy a file of the source, holes as holes. Raises StoreChanged or Unreadable if the source is at fault.

        reached: called after each piece with the number of bytes so far.
        """
        with source.open(path) as file, self._new(to) as made:
            made.take_all(file, reached)
            if mtime_ns > 0:  # a file system that does not know it gives 0
                made.set_time(mtime_ns)

    def open(self, path: str) -> StoreFileWriter:
        """Return an existing file, open to be written."""
        with _write_errors(self._told(path)):
            return self._writing(path, os.open(self._full(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))

    @contextlib.contextmanager
    def _keeping_time(self, path: str) -> Iterator[StoreFileWriter]:
        with self.open(path) as file:
            before = file.mtime_ns
            yield file
            file.set_time(before)

    def put(self, path: str, data: bytes) -> None:
        """Write a small file, in place of one that may be there."""
        self.remove(path)
        self.create(path, 0)
        self.write(path, 0, data)

    def write(self, path: str, position: int, data: bytes | memoryview) -> None:
        """Write bytes into an existing file; its time stays."""
        with self._keeping_time(path) as file:
            file.write(position, data)

    def zero(self, path: str, start: int, end: int) -> None:
        """Make bytes [start, end) of an existing file zeros; size and time stay."""
        with self._keeping_time(path) as file:
            file.zero(start, end)

    def resize(self, path: str, size: int) -> None:
        """Give an existing file another length; its time stays."""
        with self._keeping_time(path) as file:
            file.resize(size)

    def set_time(self, path: str, mtime_ns: int) -> None:
        """Set the modification time, by which retention deletes."""
        with self.open(path) as file:
            file.set_time(mtime_ns)

    def move(self, path: str, to: str) -> None:
        """Give a file another name."""
        with _write_errors(to):
            self._make_folders(os.path.dirname(self._full(to)))
            _rename_new(self._full(path), self._full(to))
            self._name_changed(path)
            self._name_changed(to)

    def _name_changed(self, path: str, is_folder: bool = False) -> None:
        """Note that the name came, went, or is another file's or folder's: it and the folder around it are to be flushed."""
        (self.flushed.forget if is_folder else self.flushed.wrote)(self._full(path))
        self.flushed.wrote(os.path.dirname(self._full(path)))

    def take_in(self, name: str, to: str) -> int:
        """Move a regular file of the workshop into the new store: its size."""
        if not is_inner_path(name):
            raise WriteFailed(f"{name!r}: no name of a file")
        origin = os.path.join(self.folder, _WORKSHOP, name)
        with _write_errors(to):
            status = os.lstat(origin)
            if not stat.S_ISREG(status.st_mode):
                raise WriteFailed(f"{to}: what was to be moved there is no regular file")
            self._make_folders(os.path.dirname(self._full(to)))
            _rename_new(origin, self._full(to))
            self._name_changed(to)
        return status.st_size

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; do nothing if there is none."""
        full = self._full(path)
        with _write_errors(self._told(path)):
            try:
                status = os.lstat(full)
            except FileNotFoundError:
                return
            is_folder = stat.S_ISDIR(status.st_mode)
            self._name_changed(path, is_folder)
            if is_folder:
                shutil.rmtree(full)
            else:
                os.unlink(full)


class StoreFileWriter:
    """One file of the new store, open to be written. A context manager; all methods raise WriteFailed."""

    def __init__(self, path: str, descriptor: int, closed: Callable[[], None] = lambda: None):
        self.path, self.descriptor, self.closed = path, descriptor, closed

    def __enter__(self) -> StoreFileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            self.closed()
            with _write_errors(self.path):  # a file system of another machine may say only now that it could not write
                os.close(descriptor)

    @property
    def mtime_ns(self) -> int:
        with _write_errors(self.path):
            return os.fstat(self.descriptor).st_mtime_ns

    def set_time(self, mtime_ns: int) -> None:
        with _write_errors(self.path):
            os.utime(self.descriptor, ns=(mtime_ns, mtime_ns))

    def resize(self, size: int) -> None:
        with _write_errors(self.path):
            os.ftruncate(self.descriptor, size)

    def write(self, position: int, data: bytes | memoryview | np.ndarray) -> None:
        """Write all of the bytes, from that position on."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]  # of an array too
        with _write_errors(self.path):
            while len(view):
                count = os.pwrite(self.descriptor, view, position)
                view, position = view[count:], position + count

    def zero(self, start: int, end: int) -> None:
        """Put zeros in place of bytes [start, end), a hole if possible."""
        if start < end and not _punch(self.descriptor, start, end - start):
            for at in range(start, end, len(_ZEROS)):
                self.write(at, _ZEROS[: end - at])

    # ---- copying ---------------------------------------------------------------------------------------------------

    def take_all(self, file: ByteFile, reached: Reached | None = None) -> None:
        """Take all bytes of that file, holes as holes: blocks that both share if the file system can. Never a link."""
        reached = reached or _nobody
        if self._clone(file):
            return
        self.resize(file.size)
        reached(0)
        at = file.next_data(0)
        while at < file.size:
            end = min(file.next_hole(at), file.size)
            if end <= at:
                end = file.size
            self._take(file, at, end, reached)
            at = file.next_data(end)

    def _clone(self, file: ByteFile) -> bool:
        """Share the other file's blocks until one is written; return False if the file system cannot."""
        origin = file.descriptor()
        if origin is None:
            return False
        with _write_errors(self.path):
            try:
                fcntl.ioctl(self.descriptor, _FICLONE, origin)
            except OSError as error:
                if error.errno in (*_FULL, errno.EIO):
                    raise
                return False
        return True

    def _take(self, file: ByteFile, at: int, end: int, reached: Reached) -> None:
        """Copy bytes [at, end), which are data: by the system, else through a window in which zeros stay holes."""
        origin = file.descriptor()
        with _write_errors(self.path):
            while origin is not None and at < end:
                try:
                    count = os.copy_file_range(origin, self.descriptor, min(COPY_BYTES, end - at), at, at)
                except OSError as error:
                    if error.errno in _FULL:
                        raise
                    break  # another file system, an old kernel, or a medium that fails, which reading below finds out
                if count == 0:
                    break  # the file became shorter, which reading below finds out
                at += count
                reached(at)
        buffer = np.empty(min(WINDOW_BYTES, end - at), np.uint8)
        while at < end:
            view = buffer[: end - at]
            count = file.read_into(at, view)
            if view[:count].any():
                self.write(at, view[:count])
            at += count
            reached(at)


def _nobody(position: int) -> None:
    """Drop the bytes: nobody waits for them."""


# ---- system calls ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _write_errors(path: str) -> Iterator[None]:
    """Raise errors of the system as WriteFailed."""
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _punch(descriptor: int, start: int, size: int) -> bool:
    """Make a hole; return False if the file system has none."""
    function = _system_call("fallocate", ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    return function is not None and bool(function(descriptor, _PUNCH | _KEEP_SIZE, start, size) == 0)


def _system_call(name: str, *kinds: Any) -> Any:
    """Return the C library's function; None if it has none of that name."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is not None:
        function.argtypes = kinds
    return function


def _paths_below(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda e: e.name)
    for entry in found:
        yield entry.path
        if entry.is_dir(follow_symlinks=False):
            yield from _paths_below(entry.path)


def _sync_path(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_new(origin: str, target: str) -> None:
    """Rename without ever replacing something, by the system if it can."""
    rename = _system_call("renameat2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if rename is not None:
        if rename(-100, os.fsencode(origin), -100, os.fsencode(target), 1) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise OSError(code, os.strerror(code), target)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(origin, target)


def _link_new(origin: str, target: str, moved: set[str]) -> None:
    """Give a file a second name, never in place of another file's. If the file system has no links, it loses the first one."""
    try:
        os.link(origin, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_new(origin, target)
        moved.add(target)


def _put_by(folder: str) -> list[str]:
    """Return the files beside the target that the run with this hidden folder has put there: they still wait in it as well."""
    waiting, found = os.path.join(folder, _WAITING), list[str]()
    with contextlib.suppress(OSError):
        for name in os.listdir(waiting):
            path = os.path.join(os.path.dirname(folder), name)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(os.path.join(waiting, name)), os.lstat(path)):
                    found.append(path)
    return found


def take_back(paths: Iterable[str]) -> list[str]:
    """Remove the files. Returns those that cannot be removed."""
    left = []
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError:
            left.append(path)
    return left


def left_beside(target: str) -> set[str]:
    """Return the files that killed runs have put beside the target, whose stores never got their place.

    The next run into the target removes them. Those of a store that was in its place are never among them.
    """
    found = set[str]()
    for folder, lock in _stale(*os.path.split(target)):
        if os.path.isdir(os.path.join(folder, _STORE)):
            found.update(_put_by(folder))
        _close(lock)
    return found


def _close(descriptor: int) -> None:
    """Close a folder or a lock: nothing that was written depends on it."""
    with contextlib.suppress(OSError):
        os.close(descriptor)


def _locked_folder(folder: str) -> int:
    """Make the hidden folder and lock it. Returns its lock, or -1 if another run has removed it meanwhile."""
    os.mkdir(folder, 0o700)
    path = os.path.join(folder, _LOCK)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return -1
    if lock_named(lock, path, wait=True):
        return lock
    _close(lock)
    return -1


def _remove_folder(folder: str) -> None:
    """Remove a hidden folder, its lock last: as long as anything is in it the next run knows what it is."""
    for _ in range(2):  # a call may fail for a moment; what is left after that the next run removes
        for name in (_STORE, _WORKSHOP, _ASIDE, _WAITING):  # the store first: with it, files beside the target are taken back
            with contextlib.suppress(OSError):  # rmtree raises one even so, if a folder's close fails
                shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
        with contextlib.suppress(OSError):
            if set(os.listdir(folder)) <= {_LOCK}:
                shutil.rmtree(folder, ignore_errors=True)


def _stale(parent: str, name: str) -> Iterator[tuple[str, int]]:
    """Yield (hidden folder, its lock, held now) of each run for this target that was killed: nobody holds its lock.

    A folder without a lock is removed if it is empty: its run was killed before it had one, or after that was removed. One that
    is not empty is not ours.
    """
    for path in Path(parent).glob("." + glob.escape(name) + _MARK + "*"):
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)
            continue
        try:
            held = lock_named(lock, str(path / _LOCK))
        except OSError:
            held = False
        if held:
            yield str(path), lock
        else:
            _close(lock)


def _remove_stale(parent: str, name: str) -> None:
    """Remove what runs for this target that were killed have left: hidden folders, and files beside the target."""
    for folder, lock in _stale(parent, name):
        try:
            if os.path.isdir(os.path.join(folder, _STORE)):
                take_back(_put_by(folder))
            _remove_folder(folder)
        finally:
            _close(lock)
