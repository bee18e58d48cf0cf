"""The files of one table's folder, and the removal of those that it does not need: nothing else is ever removed.

On this machine no link is followed: what a link names is not the table's, whatever its name. In S3 keys below the table's prefix
are its files, in HDFS the files below its folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from jobs.remote_files import HdfsFiles, S3Files
from jobs.tables.table_address import hadoop_path, refuse_links
from store_io.base.paths import is_hdfs, is_s3

LOG = "_delta_log"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class StoredFile:
    """One file.

    path: below the table's folder.
    modified: seconds since 1970.
    """

    path: str
    size_bytes: int
    modified: float


class TableFolder(Protocol):
    """One table's folder."""

    def files(self) -> list[StoredFile]:
        """All regular files in it, those of its log too. Raises OSError."""

    def remove(self, paths: Sequence[str]) -> None:
        """Remove these files, and folders that are empty then. One that is gone already is no error. Raises OSError."""


class LocalTableFolder:
    """A folder of this machine."""

    def __init__(self, path: str):
        """Take a folder. Raises TablesFailed if it is a link or has one below it: then some of its files lie elsewhere."""
        self._root = path.rstrip("/")
        refuse_links(self._root)

    def files(self) -> list[StoredFile]:
        """See `TableFolder`."""
        return list(self._below(""))

    def _below(self, folder: str) -> Iterator[StoredFile]:
        with os.scandir(f"{self._root}/{folder}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(f"{folder}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    yield StoredFile(f"{folder}{entry.name}", found.st_size, found.st_mtime)

    def remove(self, paths: Sequence[str]) -> None:
        """See `TableFolder`."""
        folders: set[str] = set()
        for path in paths:
            folder, _, name = path.rpartition("/")
            with contextlib.suppress(FileNotFoundError), self._opened(folder) as handle:
                if stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=handle)
            folders.add(folder)
        for folder in folders - {""}:
            above, _, name = folder.rpartition("/")
            with contextlib.suppress(OSError), self._opened(above) as handle:
                os.rmdir(name, dir_fd=handle)

    @contextlib.contextmanager
    def _opened(self, folder: str) -> Iterator[int]:
        """A folder below the table's, reached without any link. Raises OSError."""
        handle = os.open(self._root, _FOLDER)
        try:
            for name in filter(None, folder.split("/")):
                if name == "..":
                    raise FileNotFoundError(folder)
                handle, above = os.open(name, _FOLDER, dir_fd=handle), handle
                os.close(above)
            yield handle
        finally:
            os.close(handle)


class RemoteFolder:
    """A prefix of a bucket, or a folder in HDFS: there are no links there."""

    def __init__(self, files: S3Files | HdfsFiles):
        self._files = files

    def files(self) -> list[StoredFile]:
        """See `TableFolder`."""
        return [StoredFile(name, size, modified) for name, size, modified in self._files.names()]

    def remove(self, paths: Sequence[str]) -> None:
        """See `TableFolder`."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(path)
        for folder in {path.rpartition("/")[0] for path in paths} - {""}:
            with contextlib.suppress(OSError):
                self._files.remove_empty(folder)


def table_folder(uri: str) -> TableFolder:
    """The folder at a table's address. Raises TablesFailed."""
    if is_s3(uri) or is_hdfs(uri):
        return RemoteFolder(S3Files(uri) if is_s3(uri) else HdfsFiles(uri))
    return LocalTableFolder(hadoop_path(uri))
