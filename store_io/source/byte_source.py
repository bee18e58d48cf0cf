"""Bytes of a copied store, wherever its files lie.

A store lies under one root; parts of it (`commitlog`, `consumequeue`, `index`) may lie elsewhere. All paths here are those of
`StoreFile.path`: relative to the root, with "/". Files are opened by the folders alone: `local_folder` on this machine,
`s3_folder` and `hdfs_folder` for `s3://` and `hdfs://`, `arrow_folder` for other file systems. None of them writes.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from schemas.layouts.store_names import BATCH_QUEUES, COMMITLOG, EXT, INDEX, PARTS, QUEUES, TIMER_LOG
from schemas.rows import StoreFile
from store_io.base.errors import Denied, NotAFile, NotAStore, StoreChanged, StoreError, Unreached, Unreadable, UsageError
from store_io.base.failed_reads import note, noting
from store_io.base.java.java_compat import parse_number
from store_io.base.paths import is_hdfs, is_inner_path, is_s3, is_uri, without_login
from store_io.base.read_rate import PIECE_BYTES, ReadRate
from store_io.source.arrow_folder import ArrowFolder
from store_io.source.byte_file import FAILED, UNLISTED, ByteFile, Folder, Found, reason
from store_io.source.local_folder import LocalFolder

if TYPE_CHECKING:
    from store_io.source.hdfs_folder import HdfsFolder
    from store_io.source.s3_folder import S3Folder

MAX_DEPTH = 8  # folders below a part; a store has five, so what is deeper is listed by its name alone
SMALL_BYTES = 64 << 20
_MOST = (1 << 63) - 1  # bytes or nanoseconds
_OF_A_VOLUME = "lost+found"  # a folder that mkfs makes, for what fsck finds: no topic and no number

TWIN = re.compile(r"(commitlog|consumequeue|index)\[([2-9]|[1-9][0-9]+)\]")


@dataclass(frozen=True)
class StoreLocation:
    """The place of a copy. Picklable.

    root: a local path or a URI.
    parts: (name, folders) for each part that lies elsewhere, folders again paths or URIs; the part's folder below the root, if
    there is one, is then not looked at. Only a CommitLog can have several folders.
    max_rate: bytes that all processes of this machine read of it in a second (`base.read_rate`); 0: as many as they can.
    since: the time at which it was named, ns. A process uses its kept parts of an object again only if they were read after that.
    """

    root: str
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    max_rate: int = field(default=0, compare=False, repr=False, kw_only=True)
    since: int = field(default_factory=time.time_ns, compare=False, repr=False, kw_only=True)


class DerivedLocation(StoreLocation):
    """A store that is not a folder: it gives its own ByteSource."""

    def source(self) -> ByteSource:
        """Return its bytes, names and all."""
        raise NotImplementedError


def folder_of(path: str) -> str:
    """Return the folder that the broker sees around a file of the store.

    A name that is in several CommitLog folders has one path for each: commitlog/NAME, commitlog[2]/NAME, ... For the broker
    all of them lie in "commitlog".
    """
    folder = path.rpartition("/")[0]
    first, slash, rest = folder.partition("/")
    twin = TWIN.fullmatch(first)
    return (twin[1] if twin else first) + slash + rest


def name_of(path: str) -> str:
    """Return a file's or folder's own name: the last part of its path."""
    return path.rpartition("/")[2]


class _RatedFile(ByteFile):
    """A file of which no more is read than its machine may read in that time."""

    def __init__(self, file: ByteFile, rate: ReadRate):
        self.path, self.size, self._file, self._rate = file.path, file.size, file, rate

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        wanted, done = max(0, min(len(view), self.size - position)), 0
        while done < wanted:
            size = min(PIECE_BYTES, wanted - done)
            with noting(self.path):
                try:
                    self._rate.wait(size)
                except OSError as error:
                    raise Unreadable(f"{self.path}: cannot be read at {position + done}: {reason(error)}") from error
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


class ByteSource:
    """All files of one store. Paths as in `StoreFile.path`."""

    def __init__(self, location: StoreLocation, root: Folder, parts: dict[str, list[Folder]]):
        self.location = location
        self._root, self._parts = root, parts
        self._rate = ReadRate(location.max_rate) if location.max_rate else None

    def open(self, path: str, sparsely: bool = False) -> ByteFile:
        """Open the file to read.

        sparsely: little of it will be read, here and there, beside many other files.

        Raises NotAFile, Unreadable if the system refuses, StoreChanged if the file is gone.
        """
        with noting(path):
            folder, relative = self._locate(path)
            file = folder.open(relative, path, sparsely)
        return file if self._rate is None else _RatedFile(file, self._rate)

    @property
    def local(self) -> bool:
        """Say whether all of it lies on this machine."""
        folders = [self._root, *(folder for part in self._parts.values() for folder in part)]
        return all(isinstance(folder, LocalFolder) for folder in folders)

    def address(self, path: str) -> str:
        """Return the place of the file: a local path, or a URI."""
        folder, relative = self._locate(path)
        if isinstance(folder, LocalFolder):
            return os.path.join(folder.root, relative)
        return f"{self.location.root.rstrip('/')}/{path}"

    def mode(self, path: str) -> int | None:
        """Return the permissions of a file or folder, of the store itself "". None if nothing is there, or not on this machine.

        Raises Unreadable.
        """
        with noting(path or self.location.root):
            folder, relative = self._locate(path) if path else (self._root, "")
            return folder.mode(relative) if isinstance(folder, LocalFolder) else None

    def read_small(self, path: str, limit: int | None = None) -> bytes:
        """Return the whole file. Raises as `open` does, and NotAFile where it is larger than `limit` bytes, else SMALL_BYTES."""
        limit = SMALL_BYTES if limit is None else limit
        with noting(path), self.open(path) as file:
            if file.size > limit:
                raise NotAFile(f"{path}: {file.size} bytes, more than the {limit} that such a file can have")
            return file.read(0, file.size)

    def names(self) -> list[StoreFile]:
        """Return the names directly under the root, and the parts that lie elsewhere as directories; by name."""
        with noting(self.location.root):
            found = [StoreFile(*_listed("", *entry)) for entry in self._root.walk("", 1) if entry[0] not in self._parts]
        found += [StoreFile(name, "directory") for name in self._parts]
        return sorted(found, key=lambda entry: entry.path)

    def list_tree(self, name: str) -> list[StoreFile]:
        """Return everything below one folder under the root, by path. Nothing is opened, links out of the store are not followed.

        A part in several folders is their union; a name that an earlier one has too comes as "part[2]/name" and so on.
        """
        found = {entry.path: entry for entry in self.walk_tree(name)}
        return sorted(found.values(), key=lambda entry: entry.path)

    def walk_tree(self, name: str) -> Iterator[StoreFile]:
        """Yield the files of a tree one by one, in no order."""
        sizes: dict[int, int] = {}  # few different ones, which a million files share
        with noting(name):
            if name not in self._parts:
                for entry in self._root.walk(name, MAX_DEPTH):
                    path, kind, size, mtime_ns = _listed(f"{name}/", *entry)
                    yield StoreFile(path, kind, sizes.setdefault(size, size), mtime_ns)
                return
            met: set[str] = set()  # names in the folders so far
            for number, folder in enumerate(self._parts[name], 1):
                twins: set[str] = set()  # names that an earlier folder has too, all below them gets the other path as well
                own: set[str] = set()
                for entry in folder.walk("", MAX_DEPTH):
                    top = entry[0].partition("/")[0]
                    if "/" not in entry[0]:
                        own.add(top)
                        if top in met:
                            twins.add(top)
                    path, kind, size, mtime_ns = _listed(f"{name}[{number}]/" if top in twins else f"{name}/", *entry)
                    yield StoreFile(path, kind, sizes.setdefault(size, size), mtime_ns)
                met |= own

    def _locate(self, path: str) -> tuple[Folder, str]:
        if not is_inner_path(path):
            raise NotAFile(f"{path!r}: no path inside a store")
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


def _listed(prefix: str, path: str, kind: str, size: int, mtime_ns: int) -> Found:
    """Return a found file by its path in the store. Raises Unreadable if a server says a size or time out of range."""
    path = prefix + path
    if not (0 <= size <= _MOST and -_MOST <= mtime_ns <= _MOST):
        raise Unreadable(f"{path}: cannot be listed: the server says {size} bytes, changed at {mtime_ns} ns: out of range")
    if kind == UNLISTED and is_never_opened(path):
        kind = "directory"
    if kind in (FAILED, UNLISTED):
        note(path, Unreadable(f"{path}: cannot be read or listed"))
        kind = "unreadable"
    return path, kind, size, mtime_ns


def is_never_opened(path: str) -> bool:
    """Say whether no release opens a folder at this path of a store: one of a volume, or one where files alone belong.

    Source: MappedFileQueue.load, ConsumeQueueStore.loadConsumeQueues, IndexService.load (recovery.md 2, 8.1).
    """
    top, *names = path.split("/")
    twin = TWIN.fullmatch(top)
    top = twin[1] if twin else top
    if not names or _OF_A_VOLUME in names:
        return bool(names)
    if top in (QUEUES, BATCH_QUEUES, EXT):
        return len(names) > 2 or len(names) == 2 and parse_number(names[1], 32) is None
    return top in (COMMITLOG, INDEX, TIMER_LOG)


class OpenFiles:
    """Files of a source that stay open until `close`: the `most` that were opened last."""

    def __init__(self, source: ByteSource, most: int = 64):
        self._source, self._most = source, most
        self._files: dict[str, ByteFile] = {}

    def open(self, path: str) -> ByteFile:
        """Return the file, open to read. Raises as `ByteSource.open`."""
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
    """Return the bytes of the store at that location. Looks at nothing yet but the file system itself.

    Raises UsageError for an unknown part or a malformed URI, Unreached if a file system does not answer.
    """
    if isinstance(location, DerivedLocation):
        return location.source()
    for name, folders in location.parts:
        if name not in PARTS or not folders:
            raise UsageError(f"{name!r}: only {', '.join(PARTS)} can lie elsewhere, each in at least one folder")
        if name != COMMITLOG and len(folders) > 1:
            raise UsageError(f"{name}: {len(folders)} folders, only the CommitLog can have several")
    with noting(location.root):
        root = _open_folder(location.root, location.since)
        parts = {name: [_open_folder(folder, location.since) for folder in folders] for name, folders in location.parts}
    local = [f for f in (root, *(f for part in parts.values() for f in part)) if isinstance(f, LocalFolder)]
    for folder in local:
        folder.allowed = tuple(f.real for f in local)
    return ByteSource(location, root, parts)


def read_beside(location: StoreLocation, suffix: str, limit: int) -> bytes | None:
    """Return the first bytes of the regular file beside the store's folder with its name and this suffix.

    limit: the most bytes to return. None without such a file, or if the surroundings of the store may not be read: the file is
    none of the store's.
    """
    if isinstance(location, DerivedLocation):
        return None
    try:
        path = local_path(location.root)
        if path is not None:
            around, name = os.path.split(os.path.realpath(path))
            folder: Folder = LocalFolder(around)
        else:
            around, _, name = location.root.rstrip("/").rpartition("/")
            folder = _open_folder(around, location.since)
        if not name:
            return None
        with folder.open(name + suffix, name + suffix) as file:
            return file.read(0, min(file.size, limit))
    except (StoreChanged, Denied):
        return None
    except Unreadable as error:
        note(name + suffix, error)
        return None
    except (StoreError, OSError, ValueError):
        return None


def local_path(location: str) -> str | None:
    """Return the local path of a path or a `file:` URI; None for other file systems."""
    if not is_uri(location):
        return location
    parsed = urlsplit(location)
    if parsed.scheme.lower() != "file":
        return None
    if parsed.netloc not in ("", "localhost"):
        raise UsageError(f"{location}: a file URI of another machine")
    return unquote(parsed.path)


def shown(location: str) -> str:
    """Return the location as text for people: without what a URI may carry to log in."""
    return without_login(location) if is_uri(location) else location


def check_root(location: str, since: int | None = None) -> None:
    """Raise NotAStore or Unreadable, in one sentence, where the location is not a folder that can be listed. since: as in
    `StoreLocation`; None: now."""
    path = local_path(location)
    if path is None:
        try:
            kind = _open_remote(location, time.time_ns() if since is None else since).kind("")
        except Unreached as error:
            raise NotAStore(str(error)) from error
        if kind != "directory":  # where nothing lies an object store has no folder
            found = "a file" if kind == "file" else "nothing"
            raise NotAStore(f"{shown(location)}: {found} is there, not a store directory")
        return
    try:
        entry = os.stat(path)
    except FileNotFoundError as error:
        raise NotAStore(f"{shown(location)}: there is nothing of this name") from error
    except (OSError, ValueError) as error:
        raise Unreadable(f"{shown(location)}: cannot be looked up: {reason(error)}") from error
    if not stat.S_ISDIR(entry.st_mode):
        raise NotAStore(f"{shown(location)}: a file, not a store directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise Unreadable(f"{shown(location)}: no permission to list it")


def _open_folder(location: str, since: int) -> Folder:
    path = local_path(location)
    if path is not None:
        if not path or "\0" in path:
            raise UsageError(f"{location!r}: not a path")
        return LocalFolder(path)
    return _open_remote(location, since)


def _open_remote(location: str, since: int) -> ArrowFolder | HdfsFolder | S3Folder:
    if is_s3(location):
        from store_io.source.s3_folder import S3Folder  # its client takes 0.2 s to load

        return S3Folder(location, since)
    if is_hdfs(location):
        from store_io.source.hdfs_folder import HdfsFolder

        return HdfsFolder(location, since)
    try:
        file_system, root = pafs.FileSystem.from_uri(location)
    except (ValueError, pa.ArrowException) as error:
        raise UsageError(f"{shown(location)}: not a URI that can be read: {reason(error)}") from error
    except OSError as error:
        raise Unreached(f"{shown(location)}: the file system does not answer: {reason(error)}") from error
    return ArrowFolder(file_system, root)
