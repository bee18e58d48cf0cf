"""A copy while it is made. It can be read at once, and a read of bytes that are not there yet waits for them.

    with CopyUnderWay(location, writer) as copying:
        audit(copying.location)     # reads the copy while threads write it
        copied = copying.finish()   # raises what the copy raises

So the audit of the copy takes little more time than the copy: it reads bytes that were written just before, and what it needs is
loaded while the first of them come. What is copied is flushed to the disk meanwhile, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from threading import Condition
from types import TracebackType
from typing import Any

from schemas.rows import StoreFile
from store_io.base.errors import StoreChanged, StoreError
from store_io.repair.repair_copy import COPY_THREADS, Copied, check_source, plan_copy
from store_io.repair.repair_work import RepairRequest, RunTasks
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_file import BasicFile, ByteFile
from store_io.source.byte_source import ByteSource, DerivedLocation, StoreLocation, open_source

EARLY_FLUSH_BYTES = 16 << 20  # of a file from which on it is flushed as soon as it is there
_WHOLE = 1 << 63


@contextlib.contextmanager
def started(request: RepairRequest, run_here: RunTasks | None = None) -> Iterator[CopyUnderWay]:
    """Yield a copy beside the request's target, from its first byte on. Nothing of it stays but a published store.

    run_here: runs tasks in this process, which alone can read the copy while it is made. None: the repair's own runner does.

    Raises StoreError where a repair is pointless or not written.
    """
    check_source(request.location, request.plan.broker_conf)
    with StoreWriter.beside(request.target) as writer, CopyUnderWay(request.location, writer, run_here) as copying:
        yield copying


class CopyUnderWay:
    """Threads that copy all that lies at a location, as long as its `with` lasts. What is not copied by then stays out.

    Raises StoreError where one CommitLog cannot be made of several folders, WriteFailed where too little is free.
    """

    def __init__(self, location: StoreLocation, writer: StoreWriter, run_here: RunTasks | None = None):
        self.writer, self.plan, self.run_here = writer, plan_copy(location, writer), run_here
        self._there: dict[str, int] = {}  # by path, how many bytes from the start on
        self._changed = Condition()
        self._under_way = False  # from the first file on, until a failure or until nobody wants it any more
        self._failure: BaseException | None = None  # the first; it stops all other files, which fail by that
        for folder in self.plan.folders:
            writer.make_folder(folder)
        self._copiers, self._flushers = ThreadPoolExecutor(COPY_THREADS), ThreadPoolExecutor(COPY_THREADS)
        self._copied: list[Future[None]] = []
        self._flushed: list[Future[None]] = []

    def __enter__(self) -> CopyUnderWay:
        # Small files first: the audit begins with them. Then the largest, which take longest.
        ordered = sorted(self.plan.regular, key=lambda e: (e.size >= EARLY_FLUSH_BYTES, -e.size, e.path))
        self._under_way = True
        try:
            for entry in ordered:
                self._copied.append(self._copiers.submit(self._copy, entry))
        except BaseException:  # an interrupt, or no thread can be started
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def _stop(self) -> None:
        self._end()
        self._copiers.shutdown(cancel_futures=True)
        self._flushers.shutdown(cancel_futures=True)

    @property
    def location(self) -> StoreLocation:
        """Return the copy, to be read now. For another process it is the copy when it is whole."""
        if not self.writer.copies:
            self.finish()
            return self.writer.location
        return _GrowingLocation(self.writer.root, (), self)

    def finish(self) -> Copied:
        """Wait for the last byte. Raises the error of the first file that failed, StoreChanged if the copy was stopped."""
        wait_for(self._copied, return_when=FIRST_EXCEPTION)
        if self._failure is not None:
            raise self._failure
        if len(self._copied) < len(self.plan.regular) or any(copied.cancelled() for copied in self._copied):
            raise StoreChanged("the copy was stopped before it was whole")
        return self.plan.copied

    def flush(self) -> None:
        """Wait until the large files are on the disk as they were copied. Raises WriteFailed if one is not."""
        for flushed in self._flushed:
            flushed.result()

    def wait(self, path: str, position: int) -> None:
        """Return when the file's bytes up to that position are copied. Raises StoreError if they never will be.

        That is no failed read (`Unreadable`), which would replace the error that has ended the copy: `finish` raises that.
        """
        if not self.copies(path):
            raise StoreChanged(f"{path}: no file that is copied")
        with self._changed:
            while self._there.get(path, -1) < position and self._under_way:
                self._changed.wait()
            if self._there.get(path, -1) < position:
                raise StoreError(f"{path}: its copy has ended before byte {position}")

    def copies(self, path: str) -> bool:
        """Say whether the path is a regular file that the copy contains."""
        entry = self.plan.by_path.get(path)
        return entry is not None and entry.kind == "file"

    def _copy(self, entry: StoreFile) -> None:
        try:
            self.writer.copy(
                self.plan.source, entry.path, entry.path, entry.mtime_ns, lambda position: self._reached(entry.path, position)
            )
            self._reached(entry.path, _WHOLE)
            if entry.size >= EARLY_FLUSH_BYTES and self.writer.copies:
                self._flushed.append(self._flushers.submit(self.writer.flush_file, entry.path))
        except BaseException as problem:
            self._end(problem)
            raise

    def _reached(self, path: str, position: int) -> None:
        with self._changed:
            if not self._under_way:
                raise StoreChanged(f"{path}: its copy was stopped at byte {position}")
            self._there[path] = position
            self._changed.notify_all()

    def _end(self, failure: BaseException | None = None) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._under_way = False
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

    def open(self, path: str, sparsely: bool = False) -> ByteFile:
        if not self._copying.copies(path):
            return super().open(path)  # which says what is wrong with it
        self._copying.wait(path, 0)
        return _GrowingFile(super().open(path), self._copying)

    def names(self) -> list[StoreFile]:
        return [entry for path, entry in sorted(self._copying.plan.by_path.items()) if "/" not in path]

    def walk_tree(self, name: str) -> Iterator[StoreFile]:
        return (entry for path, entry in sorted(self._copying.plan.by_path.items()) if path.startswith(name + "/"))


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
