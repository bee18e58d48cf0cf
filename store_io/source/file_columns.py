"""The names of a store in little memory: as columns, of which a `StoreFile` is made when it is looked at.

A million files take 70 MB, where an object for each would take 300. Where there are few, the objects are kept as well.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import overload

from schemas.rows import StoreFile
from store_io.base.packed import FEW, ByPlace

_STEP = 64  # of very many paths so many are looked through one by one


class FileColumns(ByPlace[StoreFile]):
    """Files by path, each path once: of two with the same path the later one stays. Sizes and times have at most 63 bits."""

    def __init__(self, files: Iterable[StoreFile]):
        paths: list[bytes] = []
        kinds, sizes, times = bytearray(), array("q"), array("q")
        self._kind_names: list[str] = []
        numbers: dict[str, int] = {}
        for file in files:
            paths.append(_stored(file.path))
            kinds.append(numbers.setdefault(file.kind, len(numbers)))
            sizes.append(file.size)
            times.append(file.mtime_ns)
        self._kind_names = list(numbers)
        order = sorted(range(len(paths)), key=paths.__getitem__)
        order = [one for one, after in zip(order, [*order[1:], -1], strict=False) if after < 0 or paths[one] != paths[after]]
        self._kinds = bytes(kinds[number] for number in order)
        self._sizes, self._times = array("q", (sizes[n] for n in order)), array("q", (times[n] for n in order))
        self._ends, end = array("q", [0]), 0
        for number in order:
            end += len(paths[number])
            self._ends.append(end)
        self._text = b"".join(paths[number] for number in order)
        self._few = [self._file(place) for place in range(len(order))] if len(order) <= FEW else None
        self._step = _STEP if self._few is None else 1
        self._stepped = [paths[number] for number in order[:: self._step]]

    def __len__(self) -> int:
        return len(self._kinds)

    def _at(self, place: int) -> StoreFile:
        return self._few[place] if self._few is not None else self._file(place)

    def __iter__(self) -> Iterator[StoreFile]:
        return iter(self._few) if self._few is not None else self._each()

    def _each(self) -> Iterator[StoreFile]:
        """Yield files as `_file` makes them, in less time: there are many passes over all files."""
        text, names, start = self._text, self._kind_names, 0
        for end, kind, size, time in zip(self._ends[1:], self._kinds, self._sizes, self._times, strict=True):
            path = text[start:end].decode("utf-8", "surrogatepass")
            yield StoreFile(path, names[kind], size, time)
            start = end

    def _file(self, place: int) -> StoreFile:
        path, kind = self._path(place).decode("utf-8", "surrogatepass"), self._kind_names[self._kinds[place]]
        return StoreFile(path, kind, self._sizes[place], self._times[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileColumns) and len(self) == len(other) and all(map(StoreFile.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(self._text)

    def _path(self, place: int) -> bytes:
        return self._text[self._ends[place] : self._ends[place + 1]]

    def place(self, path: str) -> int:
        """Return the place of the first file whose path is not below this one; their number if there is none."""
        wanted = _stored(path)
        at = bisect_left(self._stepped, wanted)
        if self._step == 1 or not at:
            return at
        low, high = (at - 1) * self._step, min(at * self._step, len(self))  # the path at `low` is below, that at `high` is not
        return low + 1 + bisect_left(range(low + 1, high), wanted, key=self._path)

    def find(self, path: str) -> StoreFile | None:
        """Return the file with this path."""
        place = self.place(path)
        return self[place] if place < len(self) and self._path(place) == _stored(path) else None


def _stored(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")  # in the order of these bytes texts are in that of their letters


class FilesByPath(Mapping[str, StoreFile]):
    """The files as a mapping."""

    def __init__(self, files: FileColumns):
        self._files = files

    def __getitem__(self, path: str) -> StoreFile:
        found = self._files.find(path)
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        return (file.path for file in self._files)

    def __len__(self) -> int:
        return len(self._files)


class Chosen(Sequence[StoreFile]):
    """Some of a sequence of files, as their places in it."""

    def __init__(self, files: Sequence[StoreFile], places: Iterable[int] = ()):
        self._files, self._places = files, array("q", places)

    def append(self, place: int) -> None:
        """Add the file at this place."""
        self._places.append(place)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> StoreFile: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[StoreFile]: ...
    def __getitem__(self, place: int | slice) -> StoreFile | Sequence[StoreFile]:
        if isinstance(place, slice):
            return Chosen(self._files, self._places[place])
        return self._files[self._places[place]]

    def __iter__(self) -> Iterator[StoreFile]:
        return (self._files[place] for place in self._places)
