"""Keeps the fetched bytes of other machines' files on this machine's disk, for all processes of a run: no byte comes twice.

Each file there has a file here. Its head names the version that it holds, a table has the checksum of each grain that is here,
and the grains lie at their places. A process locks a range before it fetches the range, so that others wait for it. The folder
is one of the run's temporary folders: the JVM's on the driver's machine, that of Spark's executor on other machines. Its owner
removes it. Bytes that cannot be kept, because there is no folder or no room, are fetched again by each process that needs them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pickle
import shutil
import stat
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from store_io.base import locks
from store_io.base.crc import checksum

_T = TypeVar("_T")
PLACE = "STORE_AUDIT_FETCHED"  # the variable that names the folder
GRAIN_BYTES = 64 << 10  # what is kept, checked and fetched by
MOST_BYTES = 16 << 30  # of all files in the folder, and no more than half of what is free when the folder is made
MOST_FILES = 200_000
LONGEST_BYTES = 1 << 40  # of a file of which anything is kept: a process has a byte for each of its grains
LARGE_BYTES = 8 << 20  # files of more leave a quarter of the room to others, which several tasks read
_HEAD_BYTES = 4096
_HEAD = struct.Struct("<8sqqqH")  # mark, when it was asked for in ns, its size, bytes of the value, bytes of the version
_MARK = b"fetched1"
_SUM = struct.Struct("<II")  # a grain's CRC-32, and the same with the grain's number and a mark in it
_SUM_MARK = 0x5AFE0000
_USED = struct.Struct("<qqq")  # bytes that there may be, bytes and files that there are
_LOCK = struct.Struct("hhqqi0q")  # struct flock
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_LONGEST_LOOK = 0.05  # s, between two looks at a lock


class Opened(NamedTuple):
    """A file's state at the first request for it. version: "" if it has none.  asked: the time of that request, ns."""

    size: int
    version: str
    asked: int


def folder() -> str:
    """Return the folder of this process; "" without one."""
    place = os.environ.get(PLACE, "")
    if not os.path.isdir(place):  # on an executor's machine; Spark's own name says that Spark removes it
        first = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
        place = first if os.path.basename(first).startswith("blockmgr-") and os.path.isdir(first) else ""
    if not place:
        return ""
    made = f"{place}/fetched"
    with contextlib.suppress(OSError):
        os.mkdir(made, 0o700)
    try:
        entry = os.lstat(made)
    except OSError:
        return ""
    return made if stat.S_ISDIR(entry.st_mode) and entry.st_uid == os.geteuid() else ""


def forget(root: str) -> None:
    """Give back what is kept of the store with this root."""
    if own := folder():
        shutil.rmtree(_below(own, root), ignore_errors=True)
        with contextlib.suppress(OSError), _used(own) as used:
            used[1:] = _there(own)


def has_room(size: int) -> bool:
    """Say whether a file of this size would be kept here."""
    own = folder()
    return bool(own) and _room(own, size, size, 0)


def remembered(root: str, name: str, since: int, make: Callable[[], _T]) -> _T:
    """Return the result of `make`, or of an earlier call by any process of the run after `since`, ns.

    The result is pickled.
    """
    kept = KeptFile.of(root, f"value {name}")
    if kept is None:
        return make()
    with contextlib.closing(kept), kept.locked(0, _HEAD_BYTES):
        value = kept.value(since)
        if value is None:
            asked = time.time_ns()
            made = make()
            kept.put_value(asked, pickle.dumps(made, protocol=5))
            return made
        found: _T = pickle.loads(value)
        return found


class KeptFile:
    """Holds the kept bytes of one file, or one value. Several threads may use it. `.close()` when done."""

    def __init__(self, own: str, path: str, handle: int):
        self._own, self.path, self._handle, self._process = own, path, handle, os.getpid()
        self.size = 0
        self._data_at = 0
        self._sound = bytearray()  # by grain: whether this has held it against its checksum

    @classmethod
    def of(cls, root: str, name: str) -> KeptFile | None:
        """Return the file of this name in the store, made if it is not there. None if it cannot be made."""
        own = folder()
        if not own:
            return None
        path = f"{_below(own, root)}/{_digest(name)}"
        try:
            with contextlib.suppress(FileNotFoundError):
                return cls(own, path, os.open(path, _FLAGS))
            with _used(own) as used:
                if used[2] >= MOST_FILES:
                    return None
                used[2] += 1
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), 0o700)
            return cls(own, path, os.open(path, _FLAGS | os.O_CREAT, 0o600))
        except OSError:
            return None

    @contextlib.contextmanager
    def locked(self, start: int, end: int) -> Iterator[None]:
        """Hold a range of the file here while other processes wait. Systems without such locks hold the whole file."""
        pause = 0.001
        while not _lock(self._handle, fcntl.F_WRLCK, start, end):
            locks.check()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK)
        try:
            yield
        finally:
            _lock(self._handle, fcntl.F_UNLCK, start, end)

    def fetching(self, first: int, end: int) -> contextlib.AbstractContextManager[None]:
        """Hold these grains while they are fetched."""
        return self.locked(self._data_at + first * GRAIN_BYTES, self._data_at + end * GRAIN_BYTES)

    # ---- the head --------------------------------------------------------------------------------------------------

    def opened(self, since: int) -> Opened | None:
        """Return the file as it was asked for after `since`; None if its server must be asked."""
        head = self._head()
        if head is None or not head[0].version or head[0].asked < since:
            return None
        self._has_size(head[0].size)
        return head[0]

    def begin(self, opened: Opened) -> bool:
        """Begin to hold this version of the file, and nothing of another. Return False if that cannot be noted."""
        if opened.size > LONGEST_BYTES:
            return False
        head = self._head()
        try:
            other = os.fstat(self._handle).st_size > 0 if head is None else head[0][:2] != opened[:2]
            if other:  # whoever has the other open reads on
                os.unlink(self.path)
                handle = os.open(self.path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
                os.close(self._handle)
                self._handle = handle
            self._put_head(opened, 0)
        except OSError:
            return False
        self._has_size(opened.size)
        return True

    def value(self, since: int) -> bytes | None:
        """Return the value that was asked for after `since`; None without one."""
        head = self._head()
        if head is None or head[0].asked < since:
            return None
        with contextlib.suppress(OSError):
            value = os.pread(self._handle, head[1], _HEAD_BYTES)
            if len(value) == head[1] and checksum.crc32(value) == head[0].size:
                return value
        return None

    def put_value(self, asked: int, value: bytes) -> None:
        """Keep this value if there is room."""
        if _room(self._own, len(value), len(value), len(value)):
            with contextlib.suppress(OSError):
                _write(self._handle, value, _HEAD_BYTES)
                self._put_head(Opened(checksum.crc32(value), "", asked), len(value))

    def _head(self) -> tuple[Opened, int] | None:
        with contextlib.suppress(OSError, struct.error, UnicodeDecodeError):
            data = os.pread(self._handle, _HEAD_BYTES, 0)
            mark, asked, size, value_bytes, version_bytes = _HEAD.unpack_from(data)
            end = _HEAD.size + version_bytes
            if mark == _MARK and data[end : end + 4] == checksum.crc32(data[:end]).to_bytes(4, "big"):
                return Opened(size, data[_HEAD.size : end].decode(), asked), value_bytes
        return None

    def _put_head(self, opened: Opened, value_bytes: int) -> None:
        version = opened.version.encode()
        head = _HEAD.pack(_MARK, opened.asked, opened.size, value_bytes, len(version)) + version
        if len(head) + 4 > _HEAD_BYTES:
            raise OSError("the version is too long to be noted")
        _write(self._handle, head + checksum.crc32(head).to_bytes(4, "big"), 0)

    def _has_size(self, size: int) -> None:
        self.size = size
        grains = -(-size // GRAIN_BYTES)
        self._data_at = _HEAD_BYTES + -(-grains * _SUM.size // _HEAD_BYTES) * _HEAD_BYTES
        self._sound = bytearray(grains)

    # ---- grains ----------------------------------------------------------------------------------------------------

    def has(self, grain: int) -> bool:
        """Say whether the grain is here."""
        return bool(self._sound[grain]) or self._sum(grain) is not None

    def read_into(self, position: int, view: memoryview) -> int:
        """Fill the view up to a grain that is missing or does not equal its checksum. Return the number of bytes."""
        done = 0
        while done < len(view) and position + done < self.size:
            grain, within = divmod(position + done, GRAIN_BYTES)
            part = view[done : done + min(GRAIN_BYTES, self.size - grain * GRAIN_BYTES) - within]
            if not self._read(grain, within, part):
                break
            done += len(part)
        return done

    def _read(self, grain: int, within: int, part: memoryview) -> bool:
        start = grain * GRAIN_BYTES
        with contextlib.suppress(OSError):
            if self._sound[grain]:
                return os.preadv(self._handle, [part], self._data_at + start + within) == len(part)
            if (wanted := self._sum(grain)) is None:
                return False
            count = min(GRAIN_BYTES, self.size - start)
            data = os.pread(self._handle, count, self._data_at + start)
            if len(data) == count and checksum.crc32(data) == wanted:
                part[:] = data[within : within + len(part)]
                self._sound[grain] = 1
                return True
        return False

    def put(self, first: int, data: bytes) -> bool:
        """Keep these grains, from the grain `first` on. Return False if there is no room."""
        if not _room(self._own, len(data), self.size, len(data)):
            return False
        sums = b"".join(
            _both(checksum.crc32(data[at : at + GRAIN_BYTES]), first + at // GRAIN_BYTES)
            for at in range(0, len(data), GRAIN_BYTES)
        )
        try:
            _write(self._handle, data, self._data_at + first * GRAIN_BYTES)
            _write(self._handle, sums, _HEAD_BYTES + first * _SUM.size)
        except OSError:  # the disk is full
            return False
        return True

    def _sum(self, grain: int) -> int | None:
        with contextlib.suppress(OSError):
            data = os.pread(self._handle, _SUM.size, _HEAD_BYTES + grain * _SUM.size)
            if len(data) == _SUM.size and data == _both(crc := _SUM.unpack(data)[0], grain):
                return int(crc)
        return None

    def close(self) -> None:
        if self._handle >= 0 and self._process == os.getpid():  # in a process that was forked the number may be another file's
            with contextlib.suppress(OSError):
                os.close(self._handle)
        self._handle = -1

    __del__ = close  # a thread that still fetches may be the last to need it


def _both(crc: int, grain: int) -> bytes:
    return _SUM.pack(crc, crc ^ _SUM_MARK ^ grain)


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _below(own: str, root: str) -> str:
    return f"{own}/{_digest(root)}"


def _write(handle: int, data: bytes, position: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(handle, view, position)
        view, position = view[count:], position + count


def _lock(handle: int, kind: int, start: int, end: int) -> bool:
    """Lock the range, or unlock it. Return False if another holds it. On a file system without locks nothing is locked."""
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _LOCK.pack(kind, os.SEEK_SET, start, end - start, 0))
        else:
            fcntl.flock(handle, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


# ---- room ----------------------------------------------------------------------------------------------------------


def _room(own: str, more: int, size: int, taken: int) -> bool:
    """Say whether there is room for this many more bytes of a file of this size. If so, count `taken` of them as used."""
    with contextlib.suppress(OSError), _used(own) as used:
        most = used[0] if size <= LARGE_BYTES else used[0] - used[0] // 4
        if used[1] + more <= most and used[2] <= MOST_FILES:
            used[1] += taken
            return True
    return False


@contextlib.contextmanager
def _used(own: str) -> Iterator[list[int]]:
    """Yield the numbers of `_USED`, which the caller may change. Raises OSError if they cannot be read, or not be written."""
    handle = os.open(f"{own}/used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        data = os.pread(handle, _USED.size, 0)
        before = list(_USED.unpack(data)) if len(data) == _USED.size else [_most(own), 0, 0]
        used = before.copy()
        yield used
        if used != before or not data:
            _write(handle, _USED.pack(*used), 0)
    finally:
        os.close(handle)  # and with it the lock


def _most(own: str) -> int:
    return min(MOST_BYTES, shutil.disk_usage(own).free // 2)


def _there(own: str) -> tuple[int, int]:
    """Return the bytes of disk that the files in the folder take, and the number of files."""
    found: list[Any] = []
    for place, _, names in os.walk(own):
        for name in names:
            with contextlib.suppress(OSError):
                found.append(os.lstat(f"{place}/{name}").st_blocks * 512)
    return sum(found), len(found)
