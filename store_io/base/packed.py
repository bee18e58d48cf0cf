"""Keeps very many small Python values in little memory. They are compressed pickles in temporary files, of which few are open
at a time.

Kept for memory that would not fit: in plain lists and dicts a queue takes some 6.7 KB, a lost one 4.7 KB, and a million of them 5
to 7 GB; packed 1.5 to 1.9 GB (docs/scale.md). It costs time: an audit of 30,000 queues takes 30 s, and 13 s without.

A row of a dict and its texts takes 500 bytes to 2 KB of memory, packed with its neighbours a tenth of that or less, and that lies
in a file (`spill`). Where there are few, nothing is packed: they are a plain list, and a plain dict.
"""

from __future__ import annotations

import pickle
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, Generic, TypeVar, overload

from store_io.base.spill import Spilled, bytes_of, spill

V = TypeVar("V")
T = TypeVar("T")
K = TypeVar("K", bound=tuple[Any, ...] | str)
R = TypeVar("R", bound=tuple[Any, ...])

FEW = 8192  # values that are never packed, but where much is in each
FEW_INSIDE = 8 * FEW  # of what all of them hold: a queue may have a thousand files
_TOGETHER = 1024
_NOT_ALONE = 8  # so few values are not packed by themselves: that would take more than they do
_PART = 256  # neighbours in a map, where the map makes its own parts
_INSIDE = 4 * _PART  # of what they hold; a value that holds more is a part of its own
_OPEN = 8  # parts of a map


def packed(values: Iterable[V], weigh: Callable[[V], int] | None = None) -> Sequence[V]:
    """Return the values in their order: a list if they are `FEW`, else packed. They must not be changed any more.

    weigh: how many things each value holds, if these may be many.
    """
    going = iter(values)
    first: list[V] = []
    inside = 0
    for value in going:
        first.append(value)
        inside += weigh(value) if weigh is not None else 0
        if len(first) > FEW or inside > FEW_INSIDE:
            return PackedList(chain(first, going), weigh)
    return first


def weight_of_row(row: dict[str, Any] | tuple[Any, ...]) -> int:
    """Return how much the lists in a row hold; a tuple of plain values holds none."""
    if row.__class__ is not dict:
        return 0
    return sum([len(value) for value in row.values() if value.__class__ is list])  # isinstance takes as long as all else


def in_parts(items: Iterable[V], most: int, weigh: Callable[[V], int] | None, most_inside: int) -> Iterator[tuple[list[V], int]]:
    """Yield (a part of the items, the weight of the part): at most `most` items and `most_inside` weight.

    An item that weighs more is a part alone.
    """
    going = iter(items)
    if weigh is None:
        while part := list(islice(going, most)):
            yield part, 0
        return
    part, inside = [], 0
    for item in going:
        weight = weigh(item)
        if part and (len(part) >= most or inside + weight > most_inside):
            yield part, inside
            part, inside = [], 0
        part.append(item)
        inside += weight
    if part:
        yield part, inside


Part = Spilled | bytes  # a compressed pickle; in memory where it came from another process, or where the disk is full


def _pack(value: Any) -> Part:
    return spill(zlib.compress(pickle.dumps(value, protocol=5), 1))


def _unpack(data: Part) -> Any:
    return pickle.loads(zlib.decompress(bytes_of(data)))


class PackedValue:
    """A result, or a task, that is opened when its turn comes. content: its pickle."""

    __slots__ = ("_data",)

    def __init__(self, content: bytes):
        self._data: Part = spill(zlib.compress(content, 1))

    def open(self) -> Any:
        """Return the result, made anew each time."""
        return _unpack(self._data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedValue) and bytes_of(self._data) == bytes_of(other._data)

    def __hash__(self) -> int:
        return hash(bytes_of(self._data))


def opened(result: Any) -> Any:
    """Return a result, whether it waits or not."""
    return result.open() if isinstance(result, PackedValue) else result


class ByPlace(Sequence[V]):
    """A sequence that has its values one by one, and is equal to each sequence with equal values, of whatever kind.

    `_at` gives the value at a place, 0 to its length less one.
    """

    def _at(self, place: int) -> V:
        raise NotImplementedError

    @overload
    def __getitem__(self, place: int) -> V: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[V]: ...
    def __getitem__(self, place: int | slice) -> V | Sequence[V]:
        if isinstance(place, slice):
            return [self._at(at) for at in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self._at(place)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)) or len(other) != len(self):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class PackedList(ByPlace[V]):
    """A list that can be read from its start to its end with one part open. Values must not be changed any more.

    It grows at its end, where up to `FEW` values are plain. Reading by place is slower.
    """

    def __init__(self, values: Iterable[V] = (), weigh: Callable[[V], int] | None = None):
        """Pack these values, even few. weigh: as `packed` has it."""
        self._parts: list[Part] = []
        self._starts: list[int] = []  # of each part, the place of its first value
        self._packed = 0
        self._newest: list[V] = []
        self._last: tuple[int, list[V]] = (-1, [])  # the part that was read last, by place
        self._pack(values, weigh)

    def _pack(self, values: Iterable[V], weigh: Callable[[V], int] | None = None) -> None:
        for part, _ in in_parts(values, _TOGETHER, weigh, _INSIDE):
            self._parts.append(_pack(part))
            self._starts.append(self._packed)
            self._packed += len(part)

    def __iadd__(self, values: Iterable[V]) -> PackedList[V]:
        for value in values:
            self._newest.append(value)
            if len(self._newest) > FEW:
                self._pack(self._newest)
                self._newest = []
        return self

    def __len__(self) -> int:
        return self._packed + len(self._newest)

    def __iter__(self) -> Iterator[V]:
        for part in self._parts:
            yield from _unpack(part)
        yield from self._newest

    def _at(self, place: int) -> V:
        if place >= self._packed:
            return self._newest[place - self._packed]
        number = bisect_right(self._starts, place) - 1
        if self._last[0] != number:
            self._last = number, _unpack(self._parts[number])
        return self._last[1][place - self._starts[number]]


def mapped(values: Sequence[T], make: Callable[[T], V]) -> Sequence[V]:
    """Return each value made into another one: of packed values whenever it is asked for."""
    return _Mapped(values, make) if isinstance(values, ByPlace) else [make(value) for value in values]


class _Mapped(ByPlace[V]):
    def __init__(self, values: Sequence[Any], make: Callable[[Any], V]):
        self._values, self._make = values, make

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        return map(self._make, self._values)

    def _at(self, place: int) -> V:
        return self._make(self._values[place])


class PackedWhenMany(Generic[V]):
    """Packs the lists that many things hold, from the one on with which they are many. Lists of a few values stay as they are."""

    def __init__(self) -> None:
        self._held = 0

    def of(self, values: Sequence[V]) -> Sequence[V]:
        """Hold these values. They must not be changed any more."""
        self._held += len(values)
        return PackedList(values) if self._held > FEW and len(values) > _NOT_ALONE else values


def in_order(rows: Iterable[R]) -> Iterator[R]:
    """Return the rows sorted; of very many a part alone is held at a time, the rest lies packed."""
    going = iter(rows)
    parts: list[Sequence[R]] = []
    while part := sorted(islice(going, FEW_INSIDE)):
        parts.append(PackedList(part) if parts or len(part) == FEW_INSIDE else part)
    return merge(*parts)


class PackedMap(Mapping[K, V], Generic[K, V]):
    """A map that grows by whole parts of neighbouring keys. No key of another part lies between two keys of one part.

    A pass in the order of the keys opens each part once; asking for keys at random opens parts again and again.
    """

    def __init__(
        self,
        close: Callable[[V], Any] | None = None,
        reopen: Callable[[K, Any], V] | None = None,
        weigh: Callable[[V], int] | None = None,
        packs: bool = False,
    ) -> None:
        """Make an empty map.

        close: returns the form of a value that is packed; reopen: makes the value of its key and that form. Without them the
        value itself is packed.
        weigh: how many things a value holds, if these may be many.
        packs: pack even few values.
        """
        self._close, self._reopen, self._weigh = close, reopen, weigh
        self.packs = packs  # whether its parts are packed
        self._inside = 0
        self._firsts: list[K] = []  # the smallest key of each part, ascending once it is read
        self._parts: dict[K, dict[K, V] | Part] = {}  # by its smallest key
        self._open: OrderedDict[K, dict[K, V]] = OrderedDict()
        self._count = 0
        self._sorted = True

    @classmethod
    def of(
        cls,
        items: Iterable[tuple[K, V]],
        close: Callable[[V], Any] | None = None,
        reopen: Callable[[K, Any], V] | None = None,
        weigh: Callable[[V], int] | None = None,
        packs: bool = False,
    ) -> PackedMap[K, V]:
        """Hold these items, which come in the order of their keys, each key once. The rest: as for a map that grows."""
        made = cls(close, reopen, weigh, packs)
        for part, inside in in_parts(items, _PART, made._weigh_item(), _INSIDE):
            made._add(dict(part), inside)
        return made

    def _weigh_item(self) -> Callable[[tuple[K, V]], int] | None:
        weigh = self._weigh
        return None if weigh is None else lambda item: weigh(item[1])

    def of_same(self, items: Iterable[tuple[K, V]]) -> PackedMap[K, V]:
        """Return other items, packed in the same way."""
        return self.of(items, self._close, self._reopen, self._weigh)

    def add(self, part: Mapping[K, V]) -> None:
        """Add a part, in the place of an earlier one with the same first key. Its values must not be changed any more."""
        if part:
            self._add(dict(part), sum(map(self._weigh, part.values())) if self._weigh is not None and not self.packs else 0)

    def _add(self, part: dict[K, V], inside: int) -> None:
        """Add a part.

        inside: its weight; not used if parts are packed.
        """
        first = min(part)
        before = self._parts.get(first)
        if before is None:
            self._firsts.append(first)
            self._sorted = False
        else:
            self._count -= len(self._of(first))
            self._open.pop(first, None)
        self._count += len(part)
        self._parts[first] = part
        self._inside += inside
        if self.packs or self._count > FEW or self._inside > FEW_INSIDE:
            for key in [first] if self.packs else self._firsts:
                self._parts[key] = self._packed(self._parts[key])
            self.packs = True

    def put(self, values: Mapping[K, V]) -> None:
        """Put these in, in the place of earlier ones with the same keys; into a map whose parts are packed. Parts to which they
        belong are made anew."""
        assert self.packs
        firsts = [*self._ordered()]
        weigh = self._weigh_item()
        for place, keys in groupby(sorted(values), key=lambda key: max(bisect_right(firsts, key) - 1, 0)):
            part = {key: values[key] for key in keys}
            if firsts:
                earlier = self._of(firsts[place])
                self._count -= len(earlier)
                del self._parts[firsts[place]]
                self._open.pop(firsts[place])
                part = dict(sorted({**earlier, **part}.items(), key=itemgetter(0)))
            for own, inside in in_parts(part.items(), _PART, weigh, _INSIDE):
                self._add(dict(own), inside)
        self._firsts, self._sorted = [*self._parts], False

    def _packed(self, part: dict[K, V] | Part) -> Part:
        assert isinstance(part, dict)
        close = self._close
        return _pack(part if close is None else {key: close(value) for key, value in part.items()})

    def _unpacked(self, part: Part) -> dict[K, V]:
        found: dict[K, Any] = _unpack(part)
        reopen = self._reopen
        return found if reopen is None else {key: reopen(key, value) for key, value in found.items()}

    def _of(self, first: K) -> dict[K, V]:
        part = self._parts[first]
        if isinstance(part, dict):
            return part
        found = self._open.get(first)
        if found is None:
            found = self._open[first] = self._unpacked(part)
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)
        return found

    def _ordered(self) -> list[K]:
        if not self._sorted:
            self._firsts.sort()
            self._sorted = True
        return self._firsts

    def copy(self) -> PackedMap[K, V]:
        """Return a map that `changing` does not touch, of one whose parts are packed."""
        twin = PackedMap(self._close, self._reopen, self._weigh, self.packs)
        twin._firsts, twin._parts = [*self._ordered()], dict(self._parts)
        twin._inside, twin._count = self._inside, self._count
        return twin

    def changing(self) -> Iterator[V]:
        """Yield all values, in order, each of which may be changed before the next one is asked for."""
        for first in [*self._ordered()]:
            part = self._of(first)
            try:
                yield from part.values()
            finally:
                if self.packs:
                    self._parts[first] = self._packed(part)
                    self._open.pop(first, None)  # if it was opened once more meanwhile, it is as it was before

    def open_all(self) -> None:
        """Open all parts and keep them open: for a process that asks at random."""
        for first, part in self._parts.items():
            if not isinstance(part, dict):
                self._parts[first] = self._unpacked(part)
        self._open.clear()

    def _part_with(self, key: K) -> dict[K, V]:
        """Return the part in which this key is, if it is anywhere."""
        firsts = self._firsts if self._sorted else self._ordered()
        place = bisect_right(firsts, key) - 1
        if place < 0:
            return {}
        first = firsts[place]
        part = self._parts[first]
        return part if isinstance(part, dict) else self._of(first)

    def __getitem__(self, key: K) -> V:
        return self._part_with(key)[key]

    # Mapping's own versions of the next methods would look up each key by itself.

    def __contains__(self, key: object) -> bool:
        return key in self._part_with(key)  # type: ignore[arg-type]

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V, /) -> V: ...
    @overload
    def get(self, key: K, default: T, /) -> V | T: ...
    def get(self, key: K, default: object = None, /) -> object:
        return self._part_with(key).get(key, default)

    def items(self) -> ItemsView[K, V]:
        return _Items(self)

    def values(self) -> ValuesView[V]:
        return _Values(self)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[K]:
        for part in self.parts():
            yield from part

    def parts(self) -> Iterator[dict[K, V]]:
        """Yield all parts of the map, in order."""
        return (self._of(first) for first in self._ordered())


class _Items(ItemsView[K, V]):
    _mapping: PackedMap[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        for part in self._mapping.parts():
            yield from part.items()


class _Values(ValuesView[V]):
    _mapping: PackedMap[Any, V]

    def __iter__(self) -> Iterator[V]:
        for part in self._mapping.parts():
            yield from part.values()


def keys_of(*maps: Mapping[K, Any]) -> Iterator[K]:
    """Yield the keys of all these maps in their order, each once. A packed map is never held open as a whole."""
    before: K | None = None
    for key in merge(*(one if isinstance(one, PackedMap) else sorted(one) for one in maps)):
        if key != before:
            yield key
            before = key


def items_of(one: Mapping[K, V]) -> Iterator[tuple[K, V]]:
    """Return the items in the order of their keys, in one pass."""
    return iter(one.items()) if isinstance(one, PackedMap) else ((key, one[key]) for key in sorted(one))


def joined(first: Mapping[K, V], second: PackedMap[K, V]) -> PackedMap[K, V]:
    """Return both maps as one; if a key is in both, the second one counts."""
    if not first:
        return second
    return second.of_same((key, second[key] if key in second else first[key]) for key in keys_of(first, second))
