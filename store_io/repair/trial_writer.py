"""A store that a repair would make, without making it: what a dry run works on instead of a copy.

    with TrialWriter.beside(target, scratch, origin) as writer:   # takes the place of a StoreWriter
        writer.copy(source, path, path)                           # only remembers where the bytes are
        writer.write(path, position, data)                        # these go to a hidden folder in `scratch`
        open_source(writer.location)                              # the store as it would be by now

Only what differs from the origin takes space: rebuilt queues and index files, bridges, a donor's messages. So every step of a
repair, its audits too, does what it would do, and all numbers are those of the run. Nothing is written beside the target.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import os
import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schemas.rows import StoreFile
from store_io.base.errors import StoreChanged
from store_io.repair.store_writer import StoreFileWriter, StoreWriter, WriteFailed
from store_io.source.byte_source import ByteFile, ByteSource, DerivedLocation, StoreLocation, open_source

NAME = "store-audit-dry-run"
_FILES, _TABLES = "files", "tables"
_TABLE_BYTES = 1 << 32


@dataclass(frozen=True, slots=True)
class _Entry:
    """One name of the store. origin: the file of the origin that it is a copy of, "" where it is new or a folder.
    own: whether the scratch folder has a file of its path too, with the bytes of the ranges `changed`, ascending; a new file lies
    there wholly."""

    kind: str
    size: int = 0
    mtime_ns: int = 0
    origin: str = ""
    own: bool = False
    changed: tuple[tuple[int, int], ...] = ()


_Table = dict[str, _Entry]
_live: dict[tuple[int, str], _Table] = {}  # by process and scratch folder: there a source shows what is written at once


class TrialWriter:
    """Takes the place of a `StoreWriter`. Picklable: what tasks on other processes write are places made for them before."""

    def __init__(self, target: str, scratch: StoreWriter, origin: StoreLocation):
        self.target, self._scratch, self.origin = target, scratch, origin
        self._table: _Table = {}
        self._saved = 0
        self._current = False

    def __getstate__(self) -> dict[str, Any]:
        return {"target": self.target, "_scratch": self._scratch, "origin": self.origin}

    @staticmethod
    @contextlib.contextmanager
    def beside(target: str, scratch: str, origin: StoreLocation) -> Iterator[TrialWriter]:
        """A writer for what would be at `target`, which keeps the differences below the folder `scratch`; they go with the
        block, and those of a run that was killed go with the next one's. Raises WriteFailed."""
        with StoreWriter.beside(f"{scratch.rstrip('/')}/{NAME}") as inner:
            trial = TrialWriter(target, inner, origin)
            _live[os.getpid(), inner.root] = trial._table
            try:
                yield trial
            finally:
                del _live[os.getpid(), inner.root]

    def another(self) -> contextlib.AbstractContextManager[TrialWriter]:
        """A second trial from the same origin."""
        return TrialWriter.beside(self.target, os.path.dirname(self._scratch.folder), self.origin)

    @property
    def root(self) -> str:
        """Where new files lie, whole, under their own paths."""
        return f"{self._scratch.root}/{_FILES}"

    @property
    def location(self) -> StoreLocation:
        """The store as it is now; what tasks write into files made for them shows through."""
        if not self._current:
            self._saved += 1
            self._scratch.put(f"{_TABLES}/{self._saved}", pickle.dumps(self._table, protocol=5))
            self._current = True
        return _TrialLocation(self.origin.root, self.origin.parts, self._scratch.root, self._saved)

    def free_bytes(self) -> int:
        """What is free where the store would lie."""
        return StoreWriter(self.target, "").free_bytes()

    def require(self, needed: int, what: str) -> None:
        """Nothing: a dry run tells what would be needed, and what is free."""

    def flush(self) -> None:
        """Nothing: it need not outlast the run."""

    # ---- files -----------------------------------------------------------------------------------------------------

    def _put(self, path: str, entry: _Entry) -> None:
        self._table[path] = entry
        self._current = False

    def _new(self, path: str) -> None:
        """Make the folders above a name that is not there yet."""
        pieces = path.split("/")
        for count in range(1, len(pieces)):
            self.make_folder("/".join(pieces[:count]))
        if path in self._table:
            raise WriteFailed(f"{path}: cannot be written: it exists")

    def _entry(self, path: str) -> _Entry:
        entry = self._table.get(path)
        if entry is None or entry.kind != "file":
            raise WriteFailed(f"{path}: cannot be written: there is no such file")
        return entry

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it."""
        if path not in self._table:
            self._new(path)
            self._put(path, _Entry("directory"))

    def copy(self, source: ByteSource, path: str, to: str, mtime_ns: int = 0) -> None:
        """Remember that the file is one of the origin. Raises as the source does."""
        self._new(to)
        with source.open(path) as file:
            self._put(to, _Entry("file", file.size, mtime_ns or time.time_ns(), path))

    def create(self, path: str, size: int) -> None:
        """A new file of that many zeros."""
        self._new(path)
        self._scratch.create(f"{_FILES}/{path}", size)
        self._put(path, _Entry("file", size, time.time_ns(), own=True))

    def put(self, path: str, data: bytes) -> None:
        """A small file, in place of one that may be there."""
        self.remove(path)
        self.create(path, 0)
        self.write(path, 0, data)

    def open(self, path: str) -> FileWriter:
        """An existing file, open to be written; in a task only one that was made for it."""
        if not hasattr(self, "_table"):
            return self._scratch.open(f"{_FILES}/{path}")
        entry = self._entry(path)
        if not entry.own:
            self._scratch.create(f"{_FILES}/{path}", entry.size)
            self._put(path, replace(entry, own=True))
        return _TrialFileWriter(self, path, self._scratch.open(f"{_FILES}/{path}"))

    def write(self, path: str, position: int, data: bytes | memoryview) -> None:
        """Write bytes into an existing file; its time stays."""
        with self.open(path) as file:
            file.write(position, data)

    def zero(self, path: str, start: int, end: int) -> None:
        """Make bytes [start, end) of an existing file zeros; size and time stay."""
        with self.open(path) as file:
            file.zero(start, end)

    def resize(self, path: str, size: int) -> None:
        """Give an existing file another length, zeros behind what it had; its time stays."""
        with self.open(path) as file:
            file.resize(size)

    def set_time(self, path: str, mtime_ns: int) -> None:
        """When the file counts as changed."""
        self._put(path, replace(self._entry(path), mtime_ns=mtime_ns))

    def move(self, path: str, to: str) -> None:
        """Another name for a file."""
        self._new(to)
        entry = self._entry(path)
        if entry.own:
            self._scratch.move(f"{_FILES}/{path}", f"{_FILES}/{to}")
        del self._table[path]
        self._put(to, entry)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing where there is none."""
        if path not in self._table:
            return
        below = [name for name in self._table if name.startswith(path + "/")] if self._table[path].kind == "directory" else []
        for name in (path, *below):
            del self._table[name]
        self._scratch.remove(f"{_FILES}/{path}")
        self._current = False

    def _wrote(self, path: str, start: int, end: int) -> None:
        """Note that these bytes lie in the scratch folder from now on."""
        entry = self._entry(path)
        size = max(entry.size, end)
        if entry.origin:
            changed = _with(entry.changed, min(start, entry.size), end)
            if changed == entry.changed:
                return
            self._put(path, replace(entry, size=size, changed=changed))
        elif size != entry.size:
            self._put(path, replace(entry, size=size))

    def _resized(self, path: str, size: int) -> None:
        entry = self._entry(path)
        changed = tuple((start, min(end, size)) for start, end in entry.changed if start < size)
        if entry.origin and size > entry.size:
            changed = _with(changed, entry.size, size)
        self._put(path, replace(entry, size=size, changed=changed))


class _TrialFileWriter:
    """One file of the store, open to be written; used as a `StoreFileWriter` is."""

    def __init__(self, trial: TrialWriter, path: str, file: StoreFileWriter):
        self._trial, self.path, self._file = trial, path, file

    def __enter__(self) -> _TrialFileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def write(self, position: int, data: bytes | memoryview | np.ndarray) -> None:
        self._file.write(position, data)
        size = data.nbytes if isinstance(data, memoryview | np.ndarray) else len(data)
        self._trial._wrote(self.path, position, position + size)

    def zero(self, start: int, end: int) -> None:
        end = min(end, self._trial._entry(self.path).size)
        if start < end:
            self._file.zero(start, end)
            self._trial._wrote(self.path, start, end)

    def resize(self, size: int) -> None:
        self._file.resize(size)
        self._trial._resized(self.path, size)


def _with(ranges: tuple[tuple[int, int], ...], start: int, end: int) -> tuple[tuple[int, int], ...]:
    """The ranges with one more; those that touch are one."""
    low = bisect.bisect_left(ranges, start, key=lambda r: r[1])
    high = bisect.bisect_right(ranges, end, key=lambda r: r[0])
    if low < high:
        start, end = min(start, ranges[low][0]), max(end, ranges[high - 1][1])
    return (*ranges[:low], (start, end), *ranges[high:])


Writer = StoreWriter | TrialWriter
FileWriter = StoreFileWriter | _TrialFileWriter


# ---- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TrialLocation(DerivedLocation):
    """The store of a dry run at one moment: the origin, and table number `number` of what differs. Picklable."""

    scratch: str = ""
    number: int = 0

    def source(self) -> ByteSource:
        return _TrialSource(self)


@functools.lru_cache(maxsize=2)
def _table(scratch: str, number: int) -> _Table:
    table: _Table = pickle.loads(open_source(StoreLocation(scratch)).read_small(f"{_TABLES}/{number}", _TABLE_BYTES))
    return table


class _TrialSource(ByteSource):
    """Reads the store of a dry run."""

    def __init__(self, location: _TrialLocation):
        origin = open_source(StoreLocation(location.root, location.parts))
        super().__init__(location, origin._root, origin._parts)
        self._origin, self._scratch = origin, open_source(StoreLocation(location.scratch))
        live = _live.get((os.getpid(), location.scratch))
        self._table = live if live is not None else _table(location.scratch, location.number)

    def open(self, path: str) -> ByteFile:
        entry = self._table.get(path)
        if entry is None or entry.kind != "file":
            raise StoreChanged(f"{path}: is not there any more")
        file = self._origin.open(entry.origin) if entry.origin else self._scratch.open(f"{_FILES}/{path}")
        if entry.origin and (entry.changed or entry.size != file.size):
            file = _TrialFile(path, entry, file, self._scratch.open(f"{_FILES}/{path}"))
        file.path = path
        return file

    def names(self) -> list[StoreFile]:
        return self._listed(path for path in self._table if "/" not in path)

    def list_tree(self, name: str) -> list[StoreFile]:
        return self._listed(path for path in self._table if path.startswith(name + "/"))

    def _listed(self, paths: Iterable[str]) -> list[StoreFile]:
        return [StoreFile(path, (e := self._table[path]).kind, e.size, e.mtime_ns) for path in sorted(paths)]


class _TrialFile:
    """A file of the origin with ranges of its own; a `ByteFile`."""

    def __init__(self, path: str, entry: _Entry, origin: ByteFile, own: ByteFile):
        self.path, self.size = path, entry.size
        self._origin, self._own, self._changed = origin, own, entry.changed

    def _piece(self, position: int) -> tuple[ByteFile, int]:
        """(file that holds the byte, where the piece that it lies in ends)."""
        at = bisect.bisect_right(self._changed, position, key=lambda r: r[0]) - 1
        if at >= 0 and position < self._changed[at][1]:
            return self._own, min(self._changed[at][1], self.size)
        return self._origin, min(self._changed[at + 1][0] if at + 1 < len(self._changed) else self.size, self.size)

    def read_into(self, position: int, buffer: memoryview | np.ndarray) -> int:
        view = (buffer if isinstance(buffer, memoryview) else buffer.data).cast("B")
        wanted, done = max(0, min(len(view), self.size - position)), 0
        while done < wanted:
            file, end = self._piece(position + done)
            count = file.read_into(position + done, view[done : min(wanted, end - position)])
            if count == 0:
                break
            done += count
        return done

    def read(self, position: int, size: int) -> bytes:
        buffer = bytearray(max(0, min(size, self.size - position)))
        self.read_into(position, memoryview(buffer))
        return bytes(buffer)

    def next_data(self, position: int) -> int:
        while position < self.size:
            file, end = self._piece(position)
            found = file.next_data(position)
            if found < end:
                return found
            position = end
        return self.size

    def next_hole(self, position: int) -> int:
        while position < self.size:
            file, end = self._piece(position)
            found = file.next_hole(position)
            if found < end:
                return found
            position = end
        return self.size

    def descriptor(self) -> int | None:
        return None

    @property
    def allocated(self) -> int:
        return min(self.size, self._origin.allocated + self._own.allocated)

    def close(self) -> None:
        self._origin.close()
        self._own.close()

    def __enter__(self) -> _TrialFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
