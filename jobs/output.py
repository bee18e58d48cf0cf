"""Result files under --out: whole or not there. Written beside, flushed to the disk, then renamed into place.

A run first takes away what an earlier one left for the same stores, result.json before all else, and writes its own
result.json last. So whoever finds a result.json finds all that it speaks of.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Sequence

from pyarrow import ArrowException, fs

from store_io.errors import StoreError

RESULT = "result.json"
STORE_FILES = ("plan.json", "findings.jsonl", "report.html")
_TEMPORARY = ".writing"


class OutputFailed(StoreError):
    """A result cannot be written."""


class OutputFolder:
    """The folder of --out. Names are relative to it, with at most one "/": "result.json", "NAME/plan.json"."""

    def __init__(self, out: str):
        """out: an absolute path, or a URI of a file system that pyarrow knows. Nothing is touched yet."""
        self.out = out
        self._remote: fs.FileSystem | None = None
        self._root = out
        if "://" in out:
            try:
                self._remote, self._root = fs.FileSystem.from_uri(out)
            except (ArrowException, OSError, ValueError) as problem:
                raise OutputFailed(f"{out}: {problem}") from None

    def begin(self, stores: Sequence[str]) -> None:
        """Make the folders, and remove what an earlier run left there. Raises OutputFailed."""
        self._remove(RESULT)
        for store in stores:
            for name in STORE_FILES:
                self._remove(f"{store}/{name}")
            self._make_folder(store)

    def write(self, name: str, chunks: str | Iterable[str]) -> None:
        """Write one file atomically; text is UTF-8. Raises OutputFailed, and leaves no part of it then."""
        self._check(name)
        parts = [chunks] if isinstance(chunks, str) else chunks
        if self._remote is not None:
            self._write_remote(name, parts)
            return
        folder, _, last = f"{self._root}/{name}".rpartition("/")
        temporary = f"{folder}/.{last}.{os.getpid()}-{secrets.token_hex(4)}{_TEMPORARY}"
        try:
            try:
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
                with os.fdopen(handle, "wb") as file:
                    for part in parts:
                        file.write(part.encode("utf-8", "backslashreplace"))
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(temporary, f"{folder}/{last}")
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            _sync_folder(folder)
        except OSError as problem:
            raise OutputFailed(f"{folder}/{last}: cannot write: {problem.strerror or problem}") from None

    def _write_remote(self, name: str, parts: Iterable[str]) -> None:
        """An object store shows an object once it is whole; elsewhere a rename does it."""
        assert self._remote is not None
        path = f"{self._root}/{name}"
        whole = self._remote.type_name in ("s3", "gcs", "abfs")
        target = path if whole else f"{path}.{secrets.token_hex(4)}{_TEMPORARY}"
        try:
            with self._remote.open_output_stream(target) as file:
                for part in parts:
                    file.write(part.encode("utf-8", "backslashreplace"))
            if not whole:
                self._remote.move(target, path)
        except (ArrowException, OSError) as problem:
            raise OutputFailed(f"{self.out}/{name}: cannot write: {problem}") from None

    def _make_folder(self, store: str) -> None:
        self._check(store)
        try:
            if self._remote is not None:
                self._remote.create_dir(f"{self._root}/{store}", recursive=True)
                return
            os.makedirs(self._root, exist_ok=True)
            path = f"{self._root}/{store}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise OutputFailed(f"{path}: cannot write there: it is a link or no folder")
            for left in os.scandir(path):
                if left.name.startswith(".") and left.name.endswith(_TEMPORARY):
                    os.unlink(left.path)
        except (ArrowException, OSError) as problem:
            raise OutputFailed(
                f"{self.out}/{store}: cannot make the folder: {getattr(problem, 'strerror', None) or problem}"
            ) from None

    def _remove(self, name: str) -> None:
        self._check(name)
        path = f"{self._root}/{name}"
        try:
            if self._remote is not None:
                if self._remote.get_file_info(path).type != fs.FileType.NotFound:
                    self._remote.delete_file(path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            pass
        except NotADirectoryError:
            pass  # told when the folder is made
        except (ArrowException, OSError) as problem:
            raise OutputFailed(
                f"{path}: cannot remove the earlier one: {getattr(problem, 'strerror', None) or problem}"
            ) from None

    def _check(self, name: str) -> None:
        parts = name.split("/")
        if not 1 <= len(parts) <= 2 or any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ValueError(f"no name of a result: {name!r}")


def _sync_folder(folder: str) -> None:
    """Make a rename last; file systems that cannot sync a folder do without."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)
