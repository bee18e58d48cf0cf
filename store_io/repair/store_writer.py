"""A new store directory, written beside its place and renamed into it: the only module that writes a store's files.

    writer = StoreWriter.beside(target)      # a folder of its own, hidden, in the target's folder
    writer.copy(source, path)                # and create, write, zero, remove
    with writer.placing():                   # one run at a time
        writer.publish()                     # flushed to the disk, then renamed: whole or not there

Nothing outside of that folder is ever written, and no file in it is a link: what a source holds as one is copied as a file.
Paths are those of `StoreFile.path`, relative and with "/".
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from store_io.base.errors import StoreError
from store_io.source.byte_source import ByteFile, ByteSource, StoreLocation

COPY_BYTES = 64 << 20  # copied by one call of the system
WINDOW_BYTES = 4 << 20
_FICLONE = 0x40049409
_PUNCH, _KEEP_SIZE = 0x2, 0x1
_MARK = ".repairing-"
_LOCK = "lock"
_STORE = "store"
_ZEROS = bytes(1 << 20)


class WriteFailed(StoreError):
    """The new store cannot be written: no space, no permission, a medium that fails."""


@dataclass(frozen=True)
class StoreWriter:
    """The new store while it is made. Picklable: tasks on other processes write into the same folder.

    target: where it will be.  folder: the hidden folder beside it.  root: the store inside.
    """

    target: str
    folder: str

    @property
    def root(self) -> str:
        return os.path.join(self.folder, _STORE)

    @property
    def location(self) -> StoreLocation:
        """The store as it is read while it is made."""
        return StoreLocation(self.root)

    # ---- the whole -------------------------------------------------------------------------------------------------

    @staticmethod
    @contextlib.contextmanager
    def beside(target: str) -> Iterator[StoreWriter]:
        """A writer for a new store at that absolute path. Whatever ends the block, nothing stays but a published store.

        What an earlier run left that was killed is removed; a run that is under way is left alone. Raises WriteFailed.
        """
        parent, name = os.path.split(target)
        lock = -1
        with _told(target):
            _remove_stale(parent, name)
            while lock < 0:  # another run may have taken the folder for one that was left, before it was locked
                folder = os.path.join(parent, f".{name}{_MARK}{secrets.token_hex(4)}")
                lock = _locked_folder(folder)
        try:
            with _told(target):
                os.mkdir(os.path.join(folder, _STORE), 0o777)
            yield StoreWriter(target, folder)
        finally:
            _remove_folder(folder)
            os.close(lock)

    @contextlib.contextmanager
    def placing(self) -> Iterator[None]:
        """While this lasts no other run puts anything into the target's folder. Raises WriteFailed where the target is there by
        now."""
        path = os.path.dirname(self.target)
        with _told(self.target):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # a file system without locks: then the rename alone decides
                fcntl.flock(folder, fcntl.LOCK_EX)
            if os.path.lexists(self.target):
                raise WriteFailed(f"{self.target}: exists by now, so another run was faster; nothing was put there")
            yield
        finally:
            os.close(folder)

    @property
    def published(self) -> bool:
        """Whether the store has left the hidden folder for its place."""
        return not os.path.lexists(self.root)

    def publish(self) -> None:
        """Flush all to the disk and rename the store to its place. Raises WriteFailed, also where something is there by now."""
        with _told(self.target):
            self._sync(self.root)
            if os.path.lexists(self.target):
                raise WriteFailed(f"{self.target}: exists by now; nothing was put there")
            _rename_new(self.root, self.target)
            _sync_path(os.path.dirname(self.target))

    def flush(self) -> None:
        """Have what was written so far on the disk. Raises WriteFailed."""
        with _told(self.target):
            self._sync(self.root)

    def free_bytes(self) -> int:
        """What is free for this user where the store will lie."""
        with _told(self.target):
            status = os.statvfs(os.path.dirname(self.target))
        return status.f_bavail * status.f_frsize

    def require(self, needed: int, what: str) -> None:
        """Raise WriteFailed where less than that is free. what: a phrase with its verb: "the copy needs"."""
        free = self.free_bytes()
        if needed > free:
            raise WriteFailed(f"{self.target}: {what} {needed} bytes, {free} are free there")

    def _sync(self, folder: str) -> None:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda e: e.name)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                self._sync(entry.path)
            else:
                _sync_path(entry.path)
        _sync_path(folder)

    # ---- files -----------------------------------------------------------------------------------------------------

    def _full(self, path: str) -> str:
        pieces = path.split("/")
        if "\0" in path or any(piece in ("", ".", "..") for piece in pieces):
            raise WriteFailed(f"{path!r}: no path inside a store")
        return os.path.join(self.root, *pieces)

    def folder_of(self, path: str) -> None:
        """Make the folders above a file."""
        with _told(path):
            os.makedirs(os.path.dirname(self._full(path)), exist_ok=True)

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        with _told(path):
            os.makedirs(self._full(path), exist_ok=True)

    def create(self, path: str, size: int) -> None:
        """A new file of that many zeros, a hole where the file system has such."""
        self.folder_of(path)
        with _told(path):
            descriptor = os.open(self._full(path), _NEW, 0o666)
            try:
                os.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)

    def put(self, path: str, data: bytes) -> None:
        """A small file, in place of one that may be there."""
        self.remove(path)
        self.create(path, 0)
        self.write(path, 0, data)

    def copy(self, source: ByteSource, path: str, to: str, mtime_ns: int = 0) -> None:
        """Copy a file of the source, holes as holes: shared blocks where the file system can, else its own. Never a link.

        Raises StoreChanged or Unreadable where the source is at fault, WriteFailed where the copy is.
        """
        self.folder_of(to)
        with source.open(path) as file:
            with _told(to):
                descriptor = os.open(self._full(to), _NEW, 0o666)
            try:
                with _told(to):
                    cloned = _clone(file, descriptor)
                if not cloned:
                    with _told(to):
                        os.ftruncate(descriptor, file.size)
                    _copy_data(file, descriptor, to)
                if mtime_ns > 0:  # a file system that does not tell gives 0
                    with _told(to):
                        os.utime(descriptor, ns=(mtime_ns, mtime_ns))
            finally:
                os.close(descriptor)

    def open(self, path: str) -> StoreFileWriter:
        """An existing file of the new store, open to be written."""
        with _told(path):
            return StoreFileWriter(path, os.open(self._full(path), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW))

    def write(self, path: str, position: int, data: bytes | memoryview) -> None:
        """Write bytes into an existing file; its time stays."""
        with self.open(path) as file:
            before = file.mtime_ns
            file.write(position, data)
            file.set_time(before)

    def zero(self, path: str, start: int, end: int) -> None:
        """Make bytes [start, end) of an existing file zeros, a hole where possible; size and time stay."""
        with self.open(path) as file:
            before = file.mtime_ns
            file.zero(start, end)
            file.set_time(before)

    def resize(self, path: str, size: int) -> None:
        """Give an existing file another length, zeros behind what it had; its time stays."""
        with self.open(path) as file:
            before = file.mtime_ns
            file.resize(size)
            file.set_time(before)

    def set_time(self, path: str, mtime_ns: int) -> None:
        """When the file counts as changed: retention goes by it."""
        with self.open(path) as file:
            file.set_time(mtime_ns)

    def move(self, path: str, to: str) -> None:
        """Another name for a file of the new store."""
        self.folder_of(to)
        with _told(to):
            _rename_new(self._full(path), self._full(to))

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""
        full = self._full(path)
        with _told(path):
            try:
                status = os.lstat(full)
            except FileNotFoundError:
                return
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(full)
            else:
                os.unlink(full)


_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class StoreFileWriter:
    """One file of a new store, open to be written. A context manager; all methods raise WriteFailed."""

    def __init__(self, path: str, descriptor: int):
        self.path, self._descriptor = path, descriptor

    def __enter__(self) -> StoreFileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def mtime_ns(self) -> int:
        return os.fstat(self._descriptor).st_mtime_ns

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def set_time(self, mtime_ns: int) -> None:
        with _told(self.path):
            os.utime(self._descriptor, ns=(mtime_ns, mtime_ns))

    def resize(self, size: int) -> None:
        with _told(self.path):
            os.ftruncate(self._descriptor, size)

    def write(self, position: int, data: bytes | memoryview | np.ndarray) -> None:
        """All of the bytes, from that position on."""
        view = (data if isinstance(data, memoryview) else memoryview(data)).cast("B")  # type: ignore[arg-type]
        with _told(self.path):
            while len(view):
                count = os.pwrite(self._descriptor, view, position)
                view, position = view[count:], position + count

    def zero(self, start: int, end: int) -> None:
        if start < end and not _punch(self._descriptor, start, end - start):
            for at in range(start, end, len(_ZEROS)):
                self.write(at, _ZEROS[: min(len(_ZEROS), end - at)])


# ---- system calls ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _clone(file: ByteFile, descriptor: int) -> bool:
    """Have the new file share the source's blocks until one is written; False where the file system cannot."""
    origin = file.descriptor()
    if origin is None:
        return False
    try:
        fcntl.ioctl(descriptor, _FICLONE, origin)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        return False
    return True


def _copy_data(file: ByteFile, descriptor: int, path: str) -> None:
    at = file.next_data(0)
    while at < file.size:
        end = min(file.next_hole(at), file.size)
        if end <= at:
            end = file.size
        _copy_range(file, descriptor, path, at, end)
        at = file.next_data(end)


def _copy_range(file: ByteFile, descriptor: int, path: str, at: int, end: int) -> None:
    """Bytes [at, end), which are data: by the system, else through a window in which zeros stay holes."""
    origin = file.descriptor()
    while origin is not None and at < end:
        try:
            count = os.copy_file_range(origin, descriptor, min(COPY_BYTES, end - at), at, at)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise WriteFailed(f"{path}: cannot be written: {error.strerror}") from error
            break  # another file system, an old kernel, or a medium that fails: reading it oneself tells
        if count == 0:
            break  # the file became shorter, which reading it tells
        at += count
    buffer = np.empty(min(WINDOW_BYTES, max(1, end - at)), np.uint8)
    out = StoreFileWriter(path, os.dup(descriptor)) if at < end else None
    try:
        while at < end and out is not None:
            view = buffer[: min(len(buffer), end - at)]
            count = file.read_into(at, view)
            if view[:count].any():
                out.write(at, view[:count])
            at += count
    finally:
        if out is not None:
            out.close()


def _punch(descriptor: int, start: int, size: int) -> bool:
    """Make a hole; False where the file system has none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return False
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_longlong, ctypes.c_longlong)
    return bool(function(descriptor, _PUNCH | _KEEP_SIZE, start, size) == 0)


def _sync_path(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename_new(origin: str, target: str) -> None:
    """Rename without ever replacing something, by the system where it can."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        if function(-100, os.fsencode(origin), -100, os.fsencode(target), 1) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise OSError(code, os.strerror(code), target)
    except AttributeError:
        pass
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(origin, target)


def _locked_folder(folder: str) -> int:
    """Make the hidden folder and lock it: its lock, or -1 where another run has removed it meanwhile."""
    os.mkdir(folder, 0o700)
    path = os.path.join(folder, _LOCK)
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return -1
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.fstat(lock).st_nlink and os.path.lexists(path):
        return lock
    os.close(lock)
    return -1


def _remove_folder(folder: str) -> None:
    """Remove a hidden folder, its lock last: as long as anything is in it the next run knows what it is."""
    shutil.rmtree(os.path.join(folder, _STORE), ignore_errors=True)
    with contextlib.suppress(OSError):
        if os.listdir(folder) == [_LOCK]:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(parent: str, name: str) -> None:
    """Remove the hidden folders of runs for this target that were killed: those whose lock nobody holds."""
    for path in Path(parent).glob("." + _escaped(name) + _MARK + "*"):
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(path)  # killed before it had a lock, or behind its removal; one that is not empty is not ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_folder(str(path))
        except OSError:
            pass
        finally:
            os.close(lock)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
