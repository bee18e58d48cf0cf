"""Sets of numbers as sorted arrays: NumPy's own go by hashing, which takes many times as long for a hundred thousand numbers.

Prints of sets: sums of hashes, the same for sets with the same members in whatever order, and almost surely for no others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from store_io.base.compiled.native import kept

SEED = np.uint64(0xCBF29CE484222325)
_FACTOR = np.uint64(0x100000001B3)


@kept()
def fold_byte(value, byte):  # type: ignore[no-untyped-def]
    """Return a hash (SEED at first) after one byte."""
    return (value ^ np.uint64(byte)) * _FACTOR


@kept()
def fold_bytes(value, data, at, end):  # type: ignore[no-untyped-def]
    """Continue the hash `value` over these bytes."""
    for i in range(at, end):
        value = fold_byte(value, data[i])
    return value


@kept()
def fold_number(value, number):  # type: ignore[no-untyped-def]
    """Continue the hash `value` over the eight bytes of a number, big-endian."""
    for shift in range(56, -8, -8):
        value = fold_byte(value, (number >> shift) & 0xFF)
    return value


@kept()
def finished(value):  # type: ignore[no-untyped-def]
    """Spread over all bits, so that differences of members do not cancel each other out in a sum."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@dataclass(frozen=True)
class Stretches:
    """The physical offsets [start, end) in stretches of one size: a print is taken of each."""

    start: int
    end: int
    size: int

    @property
    def count(self) -> int:
        return max(0, -(-(self.end - self.start) // self.size))


@dataclass
class Prints:
    """The number, the count of members and the sum of their hashes of each stretch that has any members."""

    stretch: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    count: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    total: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))

    def __add__(self, other: Prints) -> Prints:
        stretch, place = np.unique(np.concatenate([self.stretch, other.stretch]), return_inverse=True)
        count, total = np.zeros(len(stretch), np.int64), np.zeros(len(stretch), np.uint64)
        np.add.at(count, place, np.concatenate([self.count, other.count]))
        np.add.at(total, place, np.concatenate([self.total, other.total]))
        return Prints(stretch, count, total)


class PrintSums:
    """Adds up many members of all stretches; bounded by their number."""

    def __init__(self, stretches: Stretches):
        self._count, self._total = np.zeros(stretches.count, np.int64), np.zeros(stretches.count, np.uint64)

    def add(self, numbers: np.ndarray, hashes: np.ndarray) -> None:
        """Add members by the numbers of their stretches."""
        np.add.at(self._count, numbers, 1)
        np.add.at(self._total, numbers, hashes)

    @property
    def prints(self) -> Prints:
        """Return the prints of the stretches with any members."""
        stretch = np.flatnonzero(self._count)
        return Prints(stretch, self._count[stretch], self._total[stretch])


def prints_of(numbers: np.ndarray, hashes: np.ndarray) -> Prints:
    """Return the prints of members by the numbers of their stretches."""
    return Prints(numbers, np.ones(len(numbers), np.int64), hashes) + Prints()


def among(values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Say which of the values are among the wanted ones, as `np.isin` does."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    wanted = np.sort(wanted)
    place = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    found: np.ndarray = wanted[place] == values
    return found


def distinct(values: np.ndarray) -> int:
    """Return how many different values there are."""
    return int(np.count_nonzero(np.diff(np.sort(values)))) + 1 if len(values) else 0
