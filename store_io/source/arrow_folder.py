"""A tree on any file system that pyarrow reaches, but those with modules of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from store_io.base.errors import NotAFile, StoreChanged, Unreadable
from store_io.source.byte_file import BasicFile, ByteFile, Found, reason


class ArrowFile(BasicFile):
    def __init__(self, path: str, file: Any):
        self.path, self._file, self.size = path, file, file.size()

    def _fill(self, position: int, view: memoryview) -> int:
        self._file.seek(position)
        return int(self._file.readinto(view))

    def close(self) -> None:
        self._file.close()


class ArrowFolder:
    """A tree on any file system that pyarrow reaches. Links do not exist there, and what is no file or folder is special."""

    def __init__(self, file_system: pafs.FileSystem, root: str):
        self.file_system, self.root = file_system, root.rstrip("/")

    def _full(self, relative: str) -> str:
        return f"{self.root}/{relative}" if relative else self.root

    def kind(self, relative: str) -> str:
        """Return "file", "directory", or "" if nothing is there."""
        try:
            kind = self.file_system.get_file_info(self._full(relative)).type
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{self._full(relative)}: cannot be looked up: {reason(error)}") from error
        return {pafs.FileType.Directory: "directory", pafs.FileType.NotFound: ""}.get(kind, "file")

    def has(self, relative: str) -> bool:
        return bool(self.kind(relative))

    def open(self, relative: str, path: str, sparsely: bool = False) -> ByteFile:
        try:
            if self.file_system.get_file_info(self._full(relative)).type == pafs.FileType.Directory:
                raise NotAFile(f"{path}: a directory, not a file")
            return ArrowFile(path, self.file_system.open_input_file(self._full(relative)))
        except FileNotFoundError as error:
            raise StoreChanged(f"{path}: is not there any more") from error
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{path}: cannot be opened: {reason(error)}") from error

    def walk(self, relative: str, depth: int) -> Iterator[Found]:
        base = self._full(relative)
        try:
            selector = pafs.FileSelector(base, allow_not_found=True, recursive=depth > 1)
            infos = self.file_system.get_file_info(selector)
        except (OSError, pa.ArrowException) as error:
            raise Unreadable(f"{relative or self.root}: cannot be listed: {reason(error)}") from error
        kinds = {pafs.FileType.File: "file", pafs.FileType.Directory: "directory"}
        skipped = base.lstrip("/")
        for info in sorted(infos, key=lambda i: i.path):
            path = info.path.lstrip("/")[len(skipped) :].strip("/")
            if path:
                yield path, kinds.get(info.type, "special"), max(0, info.size or 0), info.mtime_ns or 0
