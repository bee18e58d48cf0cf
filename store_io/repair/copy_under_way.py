"""A copy while it is made: it can be read at once, and a read of bytes that are not there yet waits for them.

    with CopyUnderWay(location, writer) as copying:
        audit(copying.location)     # reads the copy while threads write it
        copied = copying.finish()   # raises what the copy raises

So the audit of the copy takes little more time than the copy: it reads bytes that were written just before, and what it needs is
loaded while the first of them come. What is copied is flushed to the disk meanwhile, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition
from types import TracebackType
from typing import Any

from schemas.rows import StoreFile
from store_io.base.errors import StoreChanged
from store_io.repair.repair_copy import COPY_THREADS, Copied, check_source, plan_copy
from store_io.repair.repair_work import RepairRequest
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import BasicFile, ByteFile, ByteSource, DerivedLocation, StoreLocation, open_source

EARLY_FLUSH_BYTES = 16 << 20  # of a file from which on it is flushed as soon as it is there
_WHOLE = 1 << 63


@contextlib.contextmanager
def started(request: RepairRequest) -> Iterator[CopyUnderWay]:
    """A copy beside the request's target, from its first byte on. Nothing of it stays but a published store.

    Raises StoreError where a repair is pointless or not written.
    """
    check_source(request.location, request.plan.broker_conf)
    with StoreWriter.beside(request.target) as writer, CopyUnderWay(request.location, writer) as copying:
        yield copying


class CopyUnderWay:
    """Threads that copy all that lies at a location. A context manager: what is still to be copied at its end is not.

    Raises StoreError where one CommitLog cannot be made of several folders, WriteFailed where too little is free.
    """

    def __init__(self, location: StoreLocation, writer: StoreWriter):
        self.writer, self.plan = writer, plan_copy(location, writer)
        self._there: dict[str, int] = {}  # by path, how many bytes from the start on
        self._changed = Condition()
        self._ended = False  # by a failure, or because nobody wants it any more
        for folder in self.plan.folders:
            writer.make_folder(folder)
        self._copiers, self._flushers = ThreadPoolExecutor(COPY_THREADS), ThreadPoolExecutor(COPY_THREADS)
        self._flushed: list[Future[None]] = []
        # Small files first: the audit begins with them. Then the largest, which take longest.
        ordered = sorted(self.plan.regular, key=lambda e: (e.size >= EARLY_FLUSH_BYTES, -e.size, e.path))
        self._copied = [self._copiers.submit(self._copy, entry) for entry in ordered]

    def __enter__(self) -> CopyUnderWay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()
        self._copiers.shutdown(cancel_futures=True)
        self._flushers.shutdown(cancel_futures=True)

    @property
    def location(self) -> StoreLocation:
        """The copy, to be read now. For another process it is the copy when it is whole."""
        if not self.writer.copies:
            self.finish()
            return self.writer.location
        return _GrowingLocation(self.writer.root, (), self)

    def finish(self) -> Copied:
        """Wait for the last byte. Raises what the copy of a file has raised."""
        for copied in self._copied:
            copied.result()
        return self.plan.copied

    def flush(self) -> None:
        """Wait until the large files are on the disk as they were copied. Raises WriteFailed where one is not."""
        for flushed in self._flushed:
            flushed.result()

    def wait(self, path: str, position: int) -> None:
        """Return when the file's bytes up to that position are there. Raises StoreChanged where they never will be."""
        with self._changed:
            while self._there.get(path, -1) < position and not self._ended:
                self._changed.wait()
            if self._there.get(path, -1) < position:
                raise StoreChanged(f"{path}: its copy has ended before byte {position}")

    def _copy(self, entry: StoreFile) -> None:
        try:
            self.writer.copy(
                self.plan.source, entry.path, entry.path, entry.mtime_ns, lambda position: self._reached(entry.path, position)
            )
        except BaseException:
            self._end()
            raise
        self._reached(entry.path, _WHOLE)
        if entry.size >= EARLY_FLUSH_BYTES and self.writer.copies:
            self._flushed.append(self._flushers.submit(self.writer.flush_file, entry.path))

    def _reached(self, path: str, position: int) -> None:
        with self._changed:
            if self._ended:
                raise StoreChanged(f"{path}: its copy was stopped at byte {position}")
            self._there[path] = position
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@dataclass(frozen=True)
class _GrowingLocation(DerivedLocation):
    copying: CopyUnderWay | None = None

    def source(self) -> ByteSource:
        assert self.copying is not None
        return _GrowingSource(self, self.copying)

    def __reduce__(self) -> Any:
        assert self.copying is not None
        self.copying.finish()
        return StoreLocation, (self.root,)


class _GrowingSource(ByteSource):
    """Names, sizes and times are those that the copy will have."""

    def __init__(self, location: _GrowingLocation, copying: CopyUnderWay):
        real = open_source(StoreLocation(location.root))
        super().__init__(location, real._root, real._parts)
        self._copying = copying

    def open(self, path: str) -> ByteFile:
        if path not in self._copying.plan.by_path:
            return super().open(path)
        self._copying.wait(path, 0)
        return _GrowingFile(super().open(path), self._copying)

    def names(self) -> list[StoreFile]:
        return [entry for path, entry in sorted(self._copying.plan.by_path.items()) if "/" not in path]

    def list_tree(self, name: str) -> list[StoreFile]:
        return [entry for path, entry in sorted(self._copying.plan.by_path.items()) if path.startswith(name + "/")]


class _GrowingFile(BasicFile):
    def __init__(self, file: ByteFile, copying: CopyUnderWay):
        self.path, self.size = file.path, file.size
        self._file, self._copying = file, copying

    def _fill(self, position: int, view: memoryview) -> int:
        self._copying.wait(self.path, min(position + len(view), self.size))
        return self._file.read_into(position, view)

    def _whole(self) -> ByteFile:
        self._copying.wait(self.path, _WHOLE)
        return self._file

    def next_data(self, position: int) -> int:
        return self._whole().next_data(position)

    def next_hole(self, position: int) -> int:
        return self._whole().next_hole(position)

    def descriptor(self) -> int | None:
        return self._whole().descriptor()

    @property
    def allocated(self) -> int:
        return self._whole().allocated

    def close(self) -> None:
        self._file.close()
