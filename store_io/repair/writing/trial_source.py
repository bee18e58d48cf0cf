"""The store of a dry run, read: an origin, and a scratch folder with what differs from it.

`FILES` in the scratch folder holds the bytes that differ, under the paths of their files; `TABLES` holds numbered tables, each of
which says what the store was at one moment.
"""

from __future__ import annotations

import bisect
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from schemas.rows import StoreFile
from store_io.base.errors import StoreChanged
from store_io.base.locks import made_once
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
        """The first place that `find` sees inside of a part, else the file's end."""
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
