"""A store's files in HDFS.

A file costs two questions to the NameNode, what it is and where its blocks lie, and reads from a DataNode, each of one range of
`remote_file`. Its version is its length and the time of its last change. What a DataNode sends is
held against HDFS's own checksums.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from store_io.base import locks
from store_io.base.errors import NotAFile, StoreChanged, StoreError, Unreadable
from store_io.base.paths import name_node_and_path
from store_io.source.byte_file import ByteFile, Found
from store_io.source.disk_cache import remembered
from store_io.source.hdfs_client import client, data_client, failing, is_denied, problem
from store_io.source.remote_file import Reading, RemoteFile

if TYPE_CHECKING:
    from hdfs_native import FileReader, FileStatus

MILLISECOND = 1_000_000  # ns
_THREADS = 16


class HdfsFolder:
    """A folder as a tree of files. Links do not exist there."""

    def __init__(self, uri: str, since: int):
        self.server, path = name_node_and_path(uri)
        self.root = path.rstrip("/")
        self._uri, self._since = uri, since

    def _full(self, relative: str) -> str:
        return f"{self.root}/{relative}" if relative else self.root or "/"

    def _shown(self, path: str) -> str:
        return f"hdfs://{self.server}{path}"

    def kind(self, relative: str) -> str:
        """Return "file", "directory", or "" if nothing is there. Raises StoreError."""
        path = self._full(relative)
        with failing(self._shown(path), "cannot be looked up"):
            try:
                return "directory" if client(self.server).get_file_info(path).isdir else "file"
            except FileNotFoundError:
                return ""

    def has(self, relative: str) -> bool:
        """Say whether there is anything of this name. Raises StoreError."""
        return bool(self.kind(relative))

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        """Return the file. Raises StoreChanged where it is gone, Unreadable."""
        return HdfsFile(self.server, self._full(relative), path, Reading(self._uri, self._since, sparsely))

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        """Everything below the folder `relative`; see `byte_file`. Raises StoreError where it cannot be listed; a folder below
        that this user may not list is unreadable."""
        yield from remembered(self._uri, f"{relative}/ {depth}", self._since, lambda: self._walked(relative, depth))

    def _walked(self, relative: str, depth: int) -> list[Found]:
        listed = self._listed(self._full(relative))
        if isinstance(listed, StoreError):
            raise listed
        found: dict[str, Found] = {}
        level: list[tuple[str, Sequence[FileStatus] | StoreError]] = [("", listed)]
        with ThreadPoolExecutor(_THREADS) as threads:
            for depth_left in reversed(range(depth)):
                folders: list[str] = []
                for prefix, entries in level:
                    if isinstance(entries, StoreError):
                        found[prefix] = prefix, "unreadable", 0, 0
                        continue
                    for entry in entries:
                        path = f"{prefix}/{entry.path.rpartition('/')[2]}".lstrip("/")
                        kind, size = ("directory", 0) if entry.isdir else ("file", entry.length)
                        found[path] = path, kind, size, entry.modification_time * MILLISECOND
                        if entry.isdir:
                            folders.append(path)
                if not depth_left:
                    break
                base = relative + "/" if relative else ""
                level = list(zip(folders, threads.map(self._listed, [self._full(base + path) for path in folders]), strict=True))
        return sorted(found.values())

    def _listed(self, path: str) -> Sequence[FileStatus] | StoreError:
        """Return the names directly in the folder, nothing if it is absent or a file. If this user may not see it, the error."""
        shown = self._shown(path)
        with failing(shown, "cannot be listed"):
            found = []
            try:
                for entry in client(self.server).list_status(path):
                    locks.check()
                    found.append(entry)
            except FileNotFoundError:
                return []
            except RuntimeError as error:
                if is_denied(error):
                    return problem(error, shown, "cannot be listed")
                raise
        return [] if len(found) == 1 and found[0].path == path else found  # a file lists itself


class HdfsFile(RemoteFile):
    """One file.

    The client keeps the places of the blocks of the file that it opened, so a later one of this name is not mixed in.
    """

    def __init__(self, server: str, full: str, path: str, reading: Reading):
        self._server, self._full = server, full
        self._reader: FileReader | None = None
        self._lock = threading.Lock()
        super().__init__((f"hdfs://{server}", full), path, reading)

    def _first(self, most: int) -> tuple[bytes, int, str]:
        size, version = self._now()
        self._reader = self._reader_of(size)
        return self._read(self._reader, 0, min(most, size), version), size, version

    def _part(self, start: int, size: int) -> bytes:
        with self._lock:
            if self._reader is None:  # the first bytes are kept from an earlier opening
                self._check(self._version)
                self._reader = self._reader_of(self.size)
            reader = self._reader
        return self._read(reader, start, size, self._version)

    def _now(self) -> tuple[int, str]:
        """Return the file's length and version."""
        with failing(self.path):
            status = client(self._server).get_file_info(self._full)
        if status.isdir:
            raise NotAFile(f"{self.path}: a directory, not a file")
        return status.length, f"{status.length} {status.modification_time}"

    def _reader_of(self, size: int) -> FileReader:
        with failing(self.path, "cannot be opened"):
            reader = data_client(self._server).read(self._full)
        if len(reader) != size:
            raise StoreChanged(f"{self.path}: had {size:,} bytes, and {len(reader):,} when it was opened: something writes to it")
        return reader

    def _read(self, reader: FileReader, start: int, size: int, version: str) -> bytes:
        try:
            with failing(self.path):
                data = reader.read_range(start, size) if size else b""
        except Unreadable:
            self._check(version)  # blocks of a file that is gone cannot be read: that is the better answer
            raise
        if len(data) != size:
            raise Unreadable(f"{self.path}: cannot be read: {len(data)} of the {size} bytes from {start} on came")
        return data

    def _check(self, version: str) -> None:
        """Raise StoreChanged if the file is another by now."""
        if self._now()[1] != version:
            raise StoreChanged(f"{self.path}: was replaced or changed while it was read")
