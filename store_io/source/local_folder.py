"""A folder of this machine, read by system calls: the only module that opens the copy's files there.

Nothing of it is changed: no file is opened but a regular one of the store itself (a link that leads out of it is not), never for
writing, and its access time is left alone where the system allows that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from store_io.base.errors import Denied, NotAFile, StoreChanged, Unreadable
from store_io.source.byte_file import FAILED, UNLISTED, BasicFile, ByteFile, Found, reason

_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
_NO_ATIME = getattr(os, "O_NOATIME", 0)
_LAST = (1 << 63) - 1  # ns: the year 2262; some file systems have later times
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)

Entries = list[tuple[str, os.stat_result | None]]  # (name, lstat; None where even that failed)


class LocalFile(BasicFile):
    def __init__(self, path: str, descriptor: int, size: int):
        self.path, self.size, self._descriptor = path, size, descriptor

    def _fill(self, position: int, view: memoryview) -> int:
        return os.preadv(self._descriptor, [view], position)

    def next_data(self, position: int) -> int:
        if position >= self.size:
            return self.size
        try:
            return min(self.size, os.lseek(self._descriptor, position, os.SEEK_DATA))
        except OSError as error:
            # ENXIO: nothing but a hole follows. Anything else: this file system does not say.
            return self.size if error.errno == errno.ENXIO else position

    def next_hole(self, position: int) -> int:
        try:
            return min(self.size, os.lseek(self._descriptor, position, os.SEEK_HOLE))
        except OSError:
            return self.size

    def descriptor(self) -> int | None:
        return self._descriptor

    @property
    def allocated(self) -> int:
        try:
            return os.fstat(self._descriptor).st_blocks * 512
        except OSError as error:
            raise Unreadable(f"{self.path}: cannot be looked up: {reason(error)}") from error

    def close(self) -> None:
        if self._descriptor >= 0:
            _close(self._descriptor)
            self._descriptor = -1


class LocalFolder:
    def __init__(self, root: str):
        self.root = os.path.abspath(root)
        self.real = _led_to(self.root, self.root)
        self.allowed: tuple[str, ...] = (self.real,)  # real folders that links may lead to
        self._real_folders = {"": self.real}  # of the folders of files opened so far: most files share theirs with others

    def has(self, relative: str) -> bool:
        return _lstat(os.path.join(self.root, relative), relative) is not None

    def mode(self, relative: str) -> int | None:
        """Return the permissions of a file or folder; None if nothing of the store is there. Raises Unreadable."""
        real = self._real(relative, relative) if relative else self.real
        try:
            return stat.S_IMODE(os.stat(real).st_mode) if self._inside(real) else None
        except OSError as error:
            if error.errno in _LEADS_NOWHERE:
                return None
            raise _refused(relative or self.root, error) from error

    def _inside(self, real: str) -> bool:
        return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.allowed)

    def _real(self, relative: str, path: str) -> str:
        """`os.path.realpath` below the root, but for asking about each folder on the way again and again. path: in the store."""
        folder, _, name = relative.rpartition("/")
        if folder not in self._real_folders:
            self._real_folders[folder] = self._real(folder, path)
        full = os.path.join(self._real_folders[folder], name)
        entry = _lstat(full, path)
        return _led_to(full, path) if entry is not None and stat.S_ISLNK(entry.st_mode) else full

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        real = self._real(relative, path)
        if not self._inside(real):
            raise NotAFile(f"{path}: a link that leads out of the store, which is never followed")
        try:
            # Looked at before it is opened: opening a FIFO or a device may already do something.
            _regular(os.stat(real, follow_symlinks=False), path)
            descriptor = _open_unmarked(real)
            try:
                return LocalFile(path, descriptor, _regular(os.fstat(descriptor), path).st_size)
            except BaseException:
                _close(descriptor)
                raise
        except FileNotFoundError as error:
            raise StoreChanged(f"{path}: is not there any more") from error
        except OSError as error:
            raise _refused(path, error) from error

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        folder = os.path.join(self.root, relative) if relative else self.root
        if self._inside(_led_to(folder, folder)):
            yield from self._walk(folder, self._entries(folder), "", depth, set())

    def _walk(self, folder: str, entries: Entries, prefix: str, depth: int, linked: set[str]) -> Iterator[Found]:
        """Yield the entries of a folder and of the folders below.

        linked: real folders entered through a link. Each is entered once, so that links among folders cannot multiply.
        """
        for name, entry in entries:
            path = prefix + _readable(name)
            if path != prefix + name:  # no text in any encoding that results are written in
                yield path, "unreadable", 0, 0
                continue
            full = os.path.join(folder, name)
            kind, size, mtime_ns, real = self._look(entry, full, folder)
            if real is not None and kind == "directory":
                kind = "link_out" if real in linked else kind
                linked.add(real)
            below: Entries = []
            if kind == "directory" and depth > 1:
                try:
                    below = self._entries(full)
                except Unreadable:
                    kind = UNLISTED
            yield path, kind, size, mtime_ns
            yield from self._walk(full, below, path + "/", depth - 1, linked)

    def _look(self, entry: os.stat_result | None, full: str, folder: str) -> tuple[str, int, int, str | None]:
        """Return (kind, size, mtime_ns, real path if it is a link)."""
        real = None
        if entry is not None and stat.S_ISLNK(entry.st_mode):
            try:
                real, inside = _led_to(full, full), _led_to(folder, folder)
            except Unreadable:
                return FAILED, 0, _changed(entry), None
            circle = inside == real or inside.startswith(real.rstrip(os.sep) + os.sep)
            if circle or not self._inside(real):
                return "link_out", 0, _changed(entry), real
            try:
                entry = os.stat(full)
            except OSError as error:  # it leads to nothing, or in a circle
                return "unreadable" if error.errno in _LEADS_NOWHERE else FAILED, 0, 0, real
        if entry is None:
            return FAILED, 0, 0, real
        if stat.S_ISDIR(entry.st_mode):
            return "directory", 0, _changed(entry), real
        if stat.S_ISREG(entry.st_mode):
            return "file", entry.st_size, _changed(entry), real
        return "special", 0, _changed(entry), real

    @staticmethod
    def _entries(folder: str) -> Entries:
        """Return (name, lstat) of everything in the folder, by name; None if even that fails. An absent folder is empty."""
        try:
            descriptor = _open_unmarked(folder, getattr(os, "O_DIRECTORY", 0), follow=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise Unreadable(f"{folder}: cannot be listed: {reason(error)}") from error
        found: Entries = []
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    try:
                        found.append((entry.name, os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)))
                    except OSError:
                        found.append((entry.name, None))
        except OSError as error:
            raise Unreadable(f"{folder}: cannot be listed: {reason(error)}") from error
        finally:
            _close(descriptor)
        return sorted(found, key=lambda item: item[0])


def _open_unmarked(path: str, flags: int = 0, follow: bool = False) -> int:
    """Open a descriptor to read, without leaving an access time if this process may do so.

    It may for its own files, or as root.
    """
    flags |= _OPEN_FLAGS & ~getattr(os, "O_NOFOLLOW", 0) if follow else _OPEN_FLAGS
    if _NO_ATIME:
        try:
            return os.open(path, flags | _NO_ATIME)
        except PermissionError:
            pass
    return os.open(path, flags)


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # all that was wanted was read
        os.close(descriptor)


def _changed(entry: os.stat_result) -> int:
    """Give the file's time, ns, or the nearest that 63 bits can hold."""
    return max(-_LAST, min(entry.st_mtime_ns, _LAST))


def _lstat(full: str, path: str) -> os.stat_result | None:
    """Return the facts of this name, or None. Raises Unreadable."""
    try:
        return os.lstat(full)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error


def _refused(path: str, error: OSError | ValueError) -> Unreadable:
    """Return the error to raise if the system does not open this path."""
    kind = Denied if isinstance(error, PermissionError) else Unreadable
    return kind(f"{path}: cannot be opened: {reason(error)}")


def _led_to(link: str, path: str) -> str:
    """Follow a link, or a path with links in it; one that leads nowhere gives the path itself. Raises Unreadable."""
    try:
        try:
            return os.path.realpath(link, strict=True)
        except OSError as error:
            if error.errno not in _LEADS_NOWHERE and not isinstance(error, PermissionError):  # where this user may not look
                raise
            return os.path.realpath(link)
    except OSError as error:
        raise _refused(path, error) from error


def _regular(entry: os.stat_result, path: str) -> os.stat_result:
    if stat.S_ISREG(entry.st_mode):
        return entry
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFLNK: "a link in a circle",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    raise NotAFile(f"{path}: {kinds.get(stat.S_IFMT(entry.st_mode), 'something else')}, not a file")


def _readable(name: str) -> str:
    """Return the name as text: bytes that are no UTF-8 are shown as \\xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
