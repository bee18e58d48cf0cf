"""A store that a repair would make, without making it: what a dry run works on instead of a copy.

    with TrialWriter.below(scratch, target, origin) as writer:    # takes the place of a StoreWriter
        writer.copy(source, path, path)                           # only remembers where the bytes are
        writer.write(path, position, data)                        # these go to a hidden folder in `scratch`
        open_source(writer.location)                              # the store as it would be by now

Kept as each audit of a damaged store works out a repair by it, for its plan: a copy would take as much disk as the store.
`store_io.repair.log.edits` is no second such thing: its acts are carried out on either writer.

Only what differs from the origin takes space: rebuilt queues and index files, bridges, a donor's messages. So every step of a
repair, its audits too, does what it would do, and all numbers are those of the run. Nothing is written beside the target.
`FILES` in the scratch folder holds the bytes that differ, under the paths of their files; `TABLES` holds numbered tables, each of
which says what the store was at one moment.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from schemas.rows import StoreFile
from store_io.base.errors import StoreChanged
from store_io.base.locks import made_once
from store_io.repair.writing.store_writer import Reached, StoreFileWriter, StoreWriter, WriteFailed
from store_io.source.byte_file import BasicFile, ByteFile
from store_io.source.byte_source import ByteSource, DerivedLocation, StoreLocation, open_source

FILES, TABLES = "files", "tables"
_TABLE_BYTES = 1 << 32


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """One name of the store.

    origin: the file of the origin that it is a copy of, "" if it is new or a folder.
    own: the scratch folder has a file of its path too, with the bytes of the ranges `changed`, ascending; it has all bytes of a
    new file.
    """

    kind: str
    size: int = 0
    mtime_ns: int = 0
    origin: str = ""
    own: bool = False
    changed: tuple[tuple[int, int], ...] = ()


Table = dict[str, TrialEntry]
live_tables: dict[tuple[int, str], Table] = {}  # by process and scratch folder, so that a reader in it sees writes at once


@dataclass(frozen=True)
class TrialLocation(DerivedLocation):
    """The store at the moment of table `number`. Picklable."""

    scratch: str = ""
    number: int = 0

    def source(self) -> ByteSource:
        return _TrialSource(self)


@made_once(2)
def _table(scratch: str, number: int) -> Table:
    table: Table = pickle.loads(open_source(StoreLocation(scratch)).read_small(f"{TABLES}/{number}", _TABLE_BYTES))
    return table


class _TrialSource(ByteSource):
    def __init__(self, location: TrialLocation):
        origin = open_source(StoreLocation(location.root, location.parts, since=location.since))
        super().__init__(location, origin._root, origin._parts)
        self._origin, self._scratch = origin, open_source(StoreLocation(location.scratch))
        live = live_tables.get((os.getpid(), location.scratch))
        self._table = live if live is not None else _table(location.scratch, location.number)

    def open(self, path: str, sparsely: bool = False) -> ByteFile:
        entry = self._table.get(path)
        if entry is None or entry.kind != "file":
            raise StoreChanged(f"{path}: is not there any more")
        file = self._origin.open(entry.origin, sparsely) if entry.origin else self._scratch.open(f"{FILES}/{path}")
        if entry.origin and (entry.changed or entry.size != file.size):
            return _TrialFile(path, entry, file, self._scratch.open(f"{FILES}/{path}"))
        file.path = path
        return file

    def names(self) -> list[StoreFile]:
        return self._listed(path for path in self._table if "/" not in path)

    def walk_tree(self, name: str) -> Iterator[StoreFile]:
        yield from self._listed(path for path in self._table if path.startswith(name + "/"))

    def _listed(self, paths: Iterable[str]) -> list[StoreFile]:
        return [StoreFile(path, (e := self._table[path]).kind, e.size, e.mtime_ns) for path in sorted(paths)]


class _TrialFile(BasicFile):
    """A file of the origin with ranges of its own."""

    def __init__(self, path: str, entry: TrialEntry, origin: ByteFile, own: ByteFile):
        self.path, self.size = path, entry.size
        self._origin, self._own, self._changed = origin, own, entry.changed

    def _part_at(self, position: int) -> tuple[ByteFile, int]:
        """Return (file that holds the byte, end of the part in which the byte lies)."""
        at = bisect.bisect_right(self._changed, position, key=lambda r: r[0]) - 1
        if at >= 0 and position < self._changed[at][1]:
            return self._own, min(self._changed[at][1], self.size)
        return self._origin, min(self._changed[at + 1][0] if at + 1 < len(self._changed) else self.size, self.size)

    def _fill(self, position: int, view: memoryview) -> int:
        file, end = self._part_at(position)
        return file.read_into(position, view[: end - position])

    def _first(self, find: Callable[[ByteFile, int], int], position: int) -> int:
        """Return the first place that `find` sees inside of a part, else the file's end."""
        while position < self.size:
            file, end = self._part_at(position)
            found = find(file, position)
            if found < end:
                return found
            position = end
        return self.size

    def next_data(self, position: int) -> int:
        return self._first(lambda file, at: file.next_data(at), position)

    def next_hole(self, position: int) -> int:
        return self._first(lambda file, at: file.next_hole(at), position)

    @property
    def allocated(self) -> int:
        return min(self.size, self._origin.allocated + self._own.allocated)

    def close(self) -> None:
        self._origin.close()
        self._own.close()


NAME = "store-audit-dry-run"


class TrialWriter(StoreWriter):
    """Takes the place of a `StoreWriter`. In a task on another process it opens only files that were made before.

    folder: the hidden folder in the scratch folder.
    root: the folder of the files that differ from the origin.
    """

    copies = False

    def __init__(self, target: str, folder: str, origin: StoreLocation):
        super().__init__(target, folder)
        self.origin = origin
        self._scratch = StoreWriter(target, folder)
        self._table: Table = {}
        self._saved = 0
        self._current = False
        self._lock = threading.RLock()  # tasks write from several threads

    def __getstate__(self) -> dict[str, Any]:
        return {"target": self.target, "folder": self.folder, "origin": self.origin, "flushed": self.flushed}

    @staticmethod
    @contextlib.contextmanager
    def below(scratch: str, target: str, origin: StoreLocation) -> Iterator[TrialWriter]:
        """Yield a writer that keeps the differences below the folder `scratch`.

        target: the path at which the store would be. The differences go with the block, and those of a run that was killed go
        with the next one's. Raises WriteFailed.
        """
        with StoreWriter.beside(f"{scratch.rstrip('/')}/{NAME}") as inner:
            trial = TrialWriter(target, inner.folder, origin)
            live_tables[os.getpid(), inner.root] = trial._table
            try:
                yield trial
            finally:
                del live_tables[os.getpid(), inner.root]

    def another(self) -> contextlib.AbstractContextManager[TrialWriter]:
        """Return a second trial from the same origin."""
        return TrialWriter.below(os.path.dirname(self.folder), self.target, self.origin)

    @property
    def root(self) -> str:
        return f"{super().root}/{FILES}"

    @property
    def location(self) -> StoreLocation:
        """Return the store as it is now, with what tasks have written into files that were made for them."""
        if not self._current:
            self._saved += 1
            self._scratch.put(f"{TABLES}/{self._saved}", pickle.dumps(self._table, protocol=5))
            self._current = True
        return TrialLocation(self.origin.root, self.origin.parts, self._scratch.root, self._saved, since=self.origin.since)

    def require(self, needed: int, what: str) -> None:
        """Do nothing: a dry run reports needed and free space instead."""

    def flush(self) -> None:
        """Do nothing: what is written need not outlast the run."""

    # ---- files -----------------------------------------------------------------------------------------------------

    def _put(self, path: str, entry: TrialEntry) -> None:
        self._table[path] = entry
        self._current = False

    def _name(self, path: str) -> None:
        """Make the folders above a name that is not there yet."""
        pieces = path.split("/")
        for count in range(1, len(pieces)):
            self.make_folder("/".join(pieces[:count]))
        if path in self._table:
            raise WriteFailed(f"{path}: cannot be written: it exists")

    def entry(self, path: str) -> TrialEntry:
        """Return a file of the store."""
        entry = self._table.get(path)
        if entry is None or entry.kind != "file":
            raise WriteFailed(f"{path}: cannot be written: there is no such file")
        return entry

    def make_folder(self, path: str) -> None:
        if path not in self._table:
            self._name(path)
            self._put(path, TrialEntry("directory"))

    def copy(self, source: ByteSource, path: str, to: str, mtime_ns: int = 0, reached: Reached | None = None) -> None:
        self._name(to)
        with source.open(path) as file:
            self._put(to, TrialEntry("file", file.size, mtime_ns or time.time_ns(), path))

    def create(self, path: str, size: int) -> None:
        self._name(path)
        super().create(path, size)
        self._put(path, TrialEntry("file", size, time.time_ns(), own=True))

    def open(self, path: str) -> StoreFileWriter:
        if not hasattr(self, "_table"):
            return super().open(path)
        with self._lock:
            entry = self.entry(path)
            if not entry.own:
                super().create(path, entry.size)
                self._put(path, replace(entry, own=True))
        return _TrialFileWriter(self, super().open(path))

    def set_time(self, path: str, mtime_ns: int) -> None:
        self._put(path, replace(self.entry(path), mtime_ns=mtime_ns))

    def move(self, path: str, to: str) -> None:
        self._name(to)
        entry = self.entry(path)
        if entry.own:
            super().move(path, to)
        del self._table[path]
        self._put(to, entry)

    def take_in(self, name: str, to: str) -> int:
        self._name(to)
        size = super().take_in(name, to)
        self._put(to, TrialEntry("file", size, time.time_ns(), own=True))
        return size

    def remove(self, path: str) -> None:
        if path not in self._table:
            return
        below = [name for name in self._table if name.startswith(path + "/")] if self._table[path].kind == "directory" else []
        for name in (path, *below):
            del self._table[name]
        super().remove(path)
        self._current = False

    def wrote(self, path: str, start: int, end: int) -> None:
        """Note that these bytes lie in the scratch folder from now on."""
        with self._lock:
            entry = self.entry(path)
            changed = _with(entry.changed, min(start, entry.size), end) if entry.origin else ()
            if end > entry.size or changed != entry.changed:
                self._put(path, replace(entry, size=max(entry.size, end), changed=changed))

    def resized(self, path: str, size: int) -> None:
        """Note the file's new length."""
        entry = self.entry(path)
        changed = tuple((start, min(end, size)) for start, end in entry.changed if start < size)
        if entry.origin and size > entry.size:
            changed = _with(changed, entry.size, size)
        self._put(path, replace(entry, size=size, changed=changed))


class _TrialFileWriter(StoreFileWriter):
    """Notes what is written. It takes over the file's descriptor."""

    def __init__(self, trial: TrialWriter, file: StoreFileWriter):
        super().__init__(file.path, file.descriptor, file.closed)
        self._trial = trial

    def write(self, position: int, data: bytes | memoryview | np.ndarray) -> None:
        super().write(position, data)
        end = position + memoryview(data).nbytes  # type: ignore[arg-type]  # of an array too
        self._trial.wrote(self.path, position, end)

    def zero(self, start: int, end: int) -> None:
        end = min(end, self._trial.entry(self.path).size)
        if start < end:
            super().zero(start, end)
            self._trial.wrote(self.path, start, end)

    def resize(self, size: int) -> None:
        super().resize(size)
        self._trial.resized(self.path, size)


def _with(ranges: tuple[tuple[int, int], ...], start: int, end: int) -> tuple[tuple[int, int], ...]:
    """Return the ranges with one more; those that touch are one."""
    low = bisect.bisect_left(ranges, start, key=lambda r: r[1])
    high = bisect.bisect_right(ranges, end, key=lambda r: r[0])
    if low < high:
        start, end = min(start, ranges[low][0]), max(end, ranges[high - 1][1])
    return (*ranges[:low], (start, end), *ranges[high:])
