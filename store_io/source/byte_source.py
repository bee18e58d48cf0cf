"""Bytes of a copied store: with `s3_folder` and `hdfs_folder` the only module that opens its files, and only to read.

A store lies under one root; parts of it (`commitlog`, `consumequeue`, `index`) may lie elsewhere. All paths here are those of
`StoreFile.path`: relative to the root, with "/", wherever their files lie. Local folders are read with system calls, objects
(`s3://`) by `s3_folder`, `hdfs://` by `hdfs_folder`, other file systems through pyarrow.

Nothing of the source is changed: no file is opened but a regular one of the store itself (a link that leads out of it is not),
never for writing, and its access time is left alone where the system allows that. Reads are plain reads, so a file that shrinks
underneath is an error, not a crash.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from schemas.rows import StoreFile
from schemas.store_names import COMMITLOG, PARTS
from store_io.base.errors import NotAStore, StoreChanged, StoreError, Unreadable, UsageError
from store_io.base.paths import is_hdfs, is_inner_path, is_s3, is_uri, without_login
from store_io.base.read_rate import PIECE_BYTES, ReadRate

if TYPE_CHECKING:
    from store_io.source.hdfs_folder import HdfsFolder
    from store_io.source.s3_folder import S3Folder

MAX_DEPTH = 8  # folders below a part; a store has five, so what is deeper is listed by its name alone
SMALL_BYTES = 64 << 20

TWIN = re.compile(r"(commitlog|consumequeue|index)\[([2-9]|[1-9][0-9]+)\]")
_NO_ATIME = getattr(os, "O_NOATIME", 0)
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)

Found = tuple[str, str, int, int]  # (path below the folder, kind, size, mtime_ns)
Entries = list[tuple[str, os.stat_result | None]]  # (name, lstat; None where even that failed)


@dataclass(frozen=True)
class StoreLocation:
    """Where a copy lies. Picklable.

    root: a local path or a URI.  parts: (name, folders) for each part that lies elsewhere, folders again paths or URIs; the
    part's folder below the root, if there is one, is then not looked at. Only a CommitLog can have several folders.
    max_rate: bytes that all processes of this machine read of it in a second (`base.read_rate`); 0: as many as they can.
    since: when it was named, ns. What a process keeps of an object is used again only if it was read after that.
    """

    root: str
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    max_rate: int = field(default=0, compare=False, repr=False, kw_only=True)
    since: int = field(default_factory=time.time_ns, compare=False, repr=False, kw_only=True)


class DerivedLocation(StoreLocation):
    """A store that is not a folder: it gives its own ByteSource."""

    def source(self) -> ByteSource:
        """Its bytes, names and all."""
        raise NotImplementedError


def folder_of(path: str) -> str:
    """The folder that the broker sees around a file of the store.

    A name that is in several CommitLog folders has one path for each: commitlog/NAME, commitlog[2]/NAME, ... For the broker
    all of them lie in "commitlog".
    """
    folder = path.rpartition("/")[0]
    first, slash, rest = folder.partition("/")
    twin = TWIN.fullmatch(first)
    return (twin[1] if twin else first) + slash + rest


def name_of(path: str) -> str:
    """A file's or folder's own name: the last part of its path."""
    return path.rpartition("/")[2]


class ByteFile(Protocol):
    """One open file. A context manager; `path` as it was asked for, `size` as it was when it was opened."""

    path: str
    size: int

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        """Fill the buffer with the bytes from `position` on; the number of bytes read, short only at the file's end.

        Raises StoreChanged where the file has become shorter than `size`, Unreadable where the medium fails.
        """

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on, fewer only at the file's end."""
        buffer = bytearray(max(0, min(size, self.size - position)))
        self.read_into(position, memoryview(buffer))
        return bytes(buffer)

    def next_data(self, position: int) -> int:
        """A position p >= `position` such that all bytes between are zero: where a sparse file's next data begins, or its end."""
        return min(position, self.size)

    def next_hole(self, position: int) -> int:
        """A position after `position` up to which there is data; the file's end where the file system does not say."""
        return self.size

    def descriptor(self) -> int | None:
        """The open file's descriptor, to read only, for copies that the system itself makes; None where it has none."""
        return None

    @property
    def allocated(self) -> int:
        """Bytes of the medium that the file takes: less than `size` where it has holes, if the file system says."""
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
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{self.path}: cannot be read at {position + done}: {_reason(error)}") from error
        return done


class _LocalFile(BasicFile):
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
        return os.fstat(self._descriptor).st_blocks * 512

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _ArrowFile(BasicFile):
    def __init__(self, path: str, file: Any):
        self.path, self._file, self.size = path, file, file.size()

    def _fill(self, position: int, view: memoryview) -> int:
        self._file.seek(position)
        return int(self._file.readinto(view))

    def close(self) -> None:
        self._file.close()


class _RatedFile(ByteFile):
    """A file of which no more is read than its machine may read in that time."""

    def __init__(self, file: ByteFile, rate: ReadRate):
        self.path, self.size, self._file, self._rate = file.path, file.size, file, rate

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        wanted, done = max(0, min(len(view), self.size - position)), 0
        while done < wanted:
            size = min(PIECE_BYTES, wanted - done)
            try:
                self._rate.wait(size)
            except OSError as error:
                raise Unreadable(f"{self.path}: cannot be read at {position + done}: {_reason(error)}") from error
            done += self._file.read_into(position + done, view[done : done + size])
        return done

    def next_data(self, position: int) -> int:
        return self._file.next_data(position)

    def next_hole(self, position: int) -> int:
        return self._file.next_hole(position)

    @property
    def allocated(self) -> int:
        return self._file.allocated

    def close(self) -> None:
        self._file.close()


class _Folder(Protocol):
    """One tree of files: the store's root, or a part that lies elsewhere."""

    def has(self, relative: str) -> bool: ...

    def open(self, relative: str, path: str) -> ByteFile: ...

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        """Everything below the folder `relative` ("" is the tree itself), down to `depth` levels. An absent one is empty."""


class _LocalFolder:
    def __init__(self, root: str):
        self.root = os.path.abspath(root)
        self.real = os.path.realpath(self.root)
        self.allowed: tuple[str, ...] = (self.real,)  # real folders that links may lead to
        self._real_folders = {"": self.real}  # of the folders of files opened so far: most files share theirs with others

    def has(self, relative: str) -> bool:
        return os.path.lexists(os.path.join(self.root, relative))

    def _inside(self, real: str) -> bool:
        return any(real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in self.allowed)

    def _real(self, relative: str) -> str:
        """`os.path.realpath` below the root, but for asking about each folder on the way again and again."""
        folder, _, name = relative.rpartition("/")
        if folder not in self._real_folders:
            self._real_folders[folder] = self._real(folder)
        path = os.path.join(self._real_folders[folder], name)
        return os.path.realpath(path) if os.path.islink(path) else path

    def open(self, relative: str, path: str) -> ByteFile:
        real = self._real(relative)
        if not self._inside(real):
            raise Unreadable(f"{path}: a link that leads out of the store, which is never followed")
        try:
            # Looked at before it is opened: opening a FIFO or a device may already do something.
            _regular(os.stat(real, follow_symlinks=False), path)
            descriptor = _open_unmarked(real)
        except FileNotFoundError as error:
            raise StoreChanged(f"{path}: is not there any more") from error
        except OSError as error:
            raise Unreadable(f"{path}: cannot be opened: {_reason(error)}") from error
        try:
            return _LocalFile(path, descriptor, _regular(os.fstat(descriptor), path).st_size)
        except BaseException:
            os.close(descriptor)
            raise

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        folder = os.path.join(self.root, relative) if relative else self.root
        if self._inside(os.path.realpath(folder)):
            yield from self._walk(folder, self._entries(folder), "", depth, set())

    def _walk(self, folder: str, entries: Entries, prefix: str, depth: int, linked: set[str]) -> Iterator[Found]:
        """linked: real folders entered through a link. Each is entered once, so that links among folders cannot multiply."""
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
                    kind = "unreadable"
            yield path, kind, size, mtime_ns
            yield from self._walk(full, below, path + "/", depth - 1, linked)

    def _look(self, entry: os.stat_result | None, full: str, folder: str) -> tuple[str, int, int, str | None]:
        """(kind, size, mtime_ns, real path where it is a link)."""
        real = None
        if entry is not None and stat.S_ISLNK(entry.st_mode):
            real = os.path.realpath(full)
            inside = os.path.realpath(folder)
            circle = inside == real or inside.startswith(real.rstrip(os.sep) + os.sep)
            if circle or not self._inside(real):
                return "link_out", 0, entry.st_mtime_ns, real
            try:
                entry = os.stat(full)
            except OSError:
                entry = None
        if entry is None:
            return "unreadable", 0, 0, real
        if stat.S_ISDIR(entry.st_mode):
            return "directory", 0, entry.st_mtime_ns, real
        if stat.S_ISREG(entry.st_mode):
            return "file", entry.st_size, entry.st_mtime_ns, real
        return "special", 0, entry.st_mtime_ns, real

    @staticmethod
    def _entries(folder: str) -> Entries:
        """(name, lstat) of everything in the folder, by name; None where even that fails. An absent folder is empty."""
        try:
            descriptor = _open_unmarked(folder, getattr(os, "O_DIRECTORY", 0), follow=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise Unreadable(f"{folder}: cannot be listed: {_reason(error)}") from error
        found: Entries = []
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    try:
                        found.append((entry.name, os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)))
                    except OSError:
                        found.append((entry.name, None))
        except OSError as error:
            raise Unreadable(f"{folder}: cannot be listed: {_reason(error)}") from error
        finally:
            os.close(descriptor)
        return sorted(found, key=lambda item: item[0])


class _ArrowFolder:
    """A tree on any file system that pyarrow reaches. Links do not exist there, and what is no file or folder is special."""

    def __init__(self, file_system: pafs.FileSystem, root: str):
        self.file_system, self.root = file_system, root.rstrip("/")

    def _full(self, relative: str) -> str:
        return f"{self.root}/{relative}" if relative else self.root

    def kind(self, relative: str) -> str:
        """ "file", "directory", or "" where nothing is there."""
        try:
            kind = self.file_system.get_file_info(self._full(relative)).type
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{self._full(relative)}: cannot be looked up: {_reason(error)}") from error
        return {pafs.FileType.Directory: "directory", pafs.FileType.NotFound: ""}.get(kind, "file")

    def has(self, relative: str) -> bool:
        return bool(self.kind(relative))

    def open(self, relative: str, path: str) -> ByteFile:
        try:
            if self.file_system.get_file_info(self._full(relative)).type == pafs.FileType.Directory:
                raise Unreadable(f"{path}: a directory, not a file")
            return _ArrowFile(path, self.file_system.open_input_file(self._full(relative)))
        except FileNotFoundError as error:
            raise StoreChanged(f"{path}: is not there any more") from error
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{path}: cannot be opened: {_reason(error)}") from error

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        base = self._full(relative)
        try:
            selector = pafs.FileSelector(base, allow_not_found=True, recursive=depth > 1)
            infos = self.file_system.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{relative or self.root}: cannot be listed: {_reason(error)}") from error
        kinds = {pafs.FileType.File: "file", pafs.FileType.Directory: "directory"}
        skipped = base.lstrip("/")
        for info in sorted(infos, key=lambda i: i.path):
            path = info.path.lstrip("/")[len(skipped) :].strip("/")
            if path:
                yield path, kinds.get(info.type, "special"), max(0, info.size or 0), info.mtime_ns or 0


class ByteSource:
    """All files of one store. Paths as in `StoreFile.path`."""

    def __init__(self, location: StoreLocation, root: _Folder, parts: dict[str, list[_Folder]]):
        self.location = location
        self._root, self._parts = root, parts
        self._rate = ReadRate(location.max_rate) if location.max_rate else None

    def open(self, path: str) -> ByteFile:
        """The file, open to read. Raises Unreadable (no regular file of this store, or refused by the system), StoreChanged
        where it is gone."""
        folder, relative = self._locate(path)
        file = folder.open(relative, path)
        return file if self._rate is None else _RatedFile(file, self._rate)

    def address(self, path: str) -> str:
        """Where the file lies: a local path, or a URI."""
        folder, relative = self._locate(path)
        if isinstance(folder, _LocalFolder):
            return os.path.join(folder.root, relative)
        return f"{self.location.root.rstrip('/')}/{path}"

    def read_small(self, path: str, limit: int | None = None) -> bytes:
        """The whole file. Raises as `open` does, and Unreadable where it is larger than `limit` bytes, else SMALL_BYTES."""
        limit = SMALL_BYTES if limit is None else limit
        with self.open(path) as file:
            if file.size > limit:
                raise Unreadable(f"{path}: {file.size} bytes, more than the {limit} that such a file can have")
            return file.read(0, file.size)

    def names(self) -> list[StoreFile]:
        """What lies directly under the root, and the parts that lie elsewhere as directories; by name."""
        found = [StoreFile(*entry) for entry in self._root.walk("", 1) if entry[0] not in self._parts]
        found += [StoreFile(name, "directory") for name in self._parts]
        return sorted(found, key=lambda entry: entry.path)

    def list_tree(self, name: str) -> list[StoreFile]:
        """Everything below one folder under the root, by path; nothing is opened, links out of the store are not followed.

        A part in several folders is their union; a name that an earlier one has too comes as "part[2]/name" and so on.
        """
        found = {entry.path: entry for entry in self.walk_tree(name)}
        return sorted(found.values(), key=lambda entry: entry.path)

    def walk_tree(self, name: str) -> Iterator[StoreFile]:
        """The same one by one, in no order."""
        sizes: dict[int, int] = {}  # few different ones, which a million files share
        if name not in self._parts:
            for path, kind, size, mtime_ns in self._root.walk(name, MAX_DEPTH):
                yield StoreFile(f"{name}/{path}", kind, sizes.setdefault(size, size), mtime_ns)
            return
        met: set[str] = set()  # names in the folders so far
        for number, folder in enumerate(self._parts[name], 1):
            twins: set[str] = set()  # names that an earlier folder has too, all below them gets the other path as well
            own: set[str] = set()
            for path, kind, size, mtime_ns in folder.walk("", MAX_DEPTH):
                top = path.partition("/")[0]
                if "/" not in path:
                    own.add(path)
                    if path in met:
                        twins.add(path)
                full = f"{name}[{number}]/{path}" if top in twins else f"{name}/{path}"
                yield StoreFile(full, kind, sizes.setdefault(size, size), mtime_ns)
            met |= own

    def _locate(self, path: str) -> tuple[_Folder, str]:
        if not is_inner_path(path):
            raise Unreadable(f"{path!r}: no path inside a store")
        first, _, relative = path.partition("/")
        twin = TWIN.fullmatch(first)
        if twin and len(self._parts.get(twin[1], [])) >= int(twin[2]):
            return self._parts[twin[1]][int(twin[2]) - 1], relative
        if first not in self._parts:
            return self._root, path
        folders = self._parts[first]
        for folder in folders[:-1]:
            if folder.has(relative):
                return folder, relative
        return folders[-1], relative


class OpenFiles:
    """Files of a source that stay open until `close`: the `most` that were opened last."""

    def __init__(self, source: ByteSource, most: int = 64):
        self._source, self._most = source, most
        self._files: dict[str, ByteFile] = {}

    def open(self, path: str) -> ByteFile:
        """The file, open to read. Raises as `ByteSource.open`."""
        if path not in self._files:
            if len(self._files) >= self._most:
                self._files.pop(next(iter(self._files))).close()
            self._files[path] = self._source.open(path)
        return self._files[path]

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}


def open_source(location: StoreLocation) -> ByteSource:
    """The bytes of the store at that location. Looks at nothing yet but the file system itself.

    Raises UsageError for an unknown part or a malformed URI, NotAStore where a file system does not answer.
    """
    if isinstance(location, DerivedLocation):
        return location.source()
    for name, folders in location.parts:
        if name not in PARTS or not folders:
            raise UsageError(f"{name!r}: only {', '.join(PARTS)} can lie elsewhere, each in at least one folder")
        if name != COMMITLOG and len(folders) > 1:
            raise UsageError(f"{name}: {len(folders)} folders, only the CommitLog can have several")
    root = _open_folder(location.root, location.since)
    parts = {name: [_open_folder(folder, location.since) for folder in folders] for name, folders in location.parts}
    local = [f for f in (root, *(f for part in parts.values() for f in part)) if isinstance(f, _LocalFolder)]
    for folder in local:
        folder.allowed = tuple(f.real for f in local)
    return ByteSource(location, root, parts)


def read_beside(location: StoreLocation, suffix: str, limit: int) -> bytes | None:
    """The first bytes, `limit` at most, of the regular file beside the store's folder that has its name and this suffix; None
    where it is absent or cannot be read."""
    if isinstance(location, DerivedLocation):
        return None
    try:
        path = local_path(location.root)
        if path is not None:
            around, name = os.path.split(os.path.realpath(path))
            folder: _Folder = _LocalFolder(around)
        else:
            around, _, name = location.root.rstrip("/").rpartition("/")
            folder = _open_folder(around, location.since)
        if not name:
            return None
        with folder.open(name + suffix, name + suffix) as file:
            return file.read(0, min(file.size, limit))
    except (StoreError, OSError, ValueError):
        return None


def local_path(location: str) -> str | None:
    """The local path of a path or a `file:` URI; None for other file systems."""
    if not is_uri(location):
        return location
    parsed = urlsplit(location)
    if parsed.scheme.lower() != "file":
        return None
    if parsed.netloc not in ("", "localhost"):
        raise UsageError(f"{location}: a file URI of another machine")
    return unquote(parsed.path)


def shown(location: str) -> str:
    """The location as text for people: without what a URI may carry to log in."""
    return without_login(location) if is_uri(location) else location


def check_root(location: str) -> None:
    """Raise NotAStore or Unreadable, in one sentence, where the location is not a folder that can be listed."""
    path = local_path(location)
    if path is None:
        kind = _open_remote(location, time.time_ns()).kind("")
        if kind != "directory":  # where nothing lies an object store has no folder
            found = "a file" if kind == "file" else "nothing"
            raise NotAStore(f"{shown(location)}: {found} is there, not a store directory")
        return
    try:
        entry = os.stat(path)
    except FileNotFoundError as error:
        raise NotAStore(f"{shown(location)}: there is nothing of this name") from error
    except (OSError, ValueError) as error:
        raise Unreadable(f"{shown(location)}: cannot be looked up: {_reason(error)}") from error
    if not stat.S_ISDIR(entry.st_mode):
        raise NotAStore(f"{shown(location)}: a file, not a store directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise Unreadable(f"{shown(location)}: no permission to list it")


def _open_folder(location: str, since: int) -> _Folder:
    path = local_path(location)
    if path is not None:
        if not path or "\0" in path:
            raise UsageError(f"{location!r}: not a path")
        return _LocalFolder(path)
    return _open_remote(location, since)


def _open_remote(location: str, since: int) -> _ArrowFolder | HdfsFolder | S3Folder:
    if is_s3(location):
        from store_io.source.s3_folder import S3Folder  # its client takes 0.2 s to load

        return S3Folder(location, since)
    if is_hdfs(location):
        from store_io.source.hdfs_folder import HdfsFolder

        return HdfsFolder(location, since)
    try:
        file_system, root = pafs.FileSystem.from_uri(location)
    except (ValueError, pa.ArrowException) as error:
        raise UsageError(f"{shown(location)}: not a URI that can be read: {_reason(error)}") from error
    except OSError as error:
        raise NotAStore(f"{shown(location)}: the file system does not answer: {_reason(error)}") from error
    return _ArrowFolder(file_system, root)


def _open_unmarked(path: str, flags: int = 0, follow: bool = False) -> int:
    """A descriptor to read, without leaving an access time where this process may do so (its own files, or as root)."""
    flags |= _OPEN_FLAGS & ~getattr(os, "O_NOFOLLOW", 0) if follow else _OPEN_FLAGS
    if _NO_ATIME:
        try:
            return os.open(path, flags | _NO_ATIME)
        except PermissionError:
            pass
    return os.open(path, flags)


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
    raise Unreadable(f"{path}: {kinds.get(stat.S_IFMT(entry.st_mode), 'something else')}, not a file")


def _readable(name: str) -> str:
    """The name as text: bytes that are no UTF-8 are shown as \\xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _reason(error: BaseException) -> str:
    """The system's words for what went wrong, without its number."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return without_login(" ".join(text.split())) or type(error).__name__
