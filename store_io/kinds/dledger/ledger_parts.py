"""Entries that stay: those whose header and message pass every check, as parts in which they follow one another by their headers,
and the choice of parts that can be made one chain. Indexes have no holes, so what lies between two parts must get entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from schemas import dledger_layout as layout
from schemas.rows import EXTENT_MESSAGE, SegmentSummary
from store_io.kinds.dledger.ledger_walks import DataWalk, Stretch
from store_io.source.byte_source import ByteSource

NEAR = 64  # parts before one that are tried as the one that it continues


@dataclass(frozen=True)
class Part:
    """Entries [start, end) of one data file, by position. base: of the file."""

    base: int
    start: int
    end: int
    first_index: int
    last_index: int
    first_term: int
    last_term: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def entries(self) -> int:
        return self.last_index - self.first_index + 1


@dataclass
class DataFile:
    """A data file with its parts, ascending. live: the position from which on there are only leftovers of a cut."""

    path: str
    base: int
    size: int
    parts: list[Part] = field(default_factory=list)


def parts_of(source: ByteSource, summary: SegmentSummary, walk: DataWalk, end: int) -> list[Part]:
    """The parts of one file up to that position."""
    found: list[Part] = []
    with source.open(summary.path) as file:

        def head(at: int) -> tuple[int, int]:
            data = file.read(at + layout.INDEX_POSITION, layout.POS_POSITION - layout.INDEX_POSITION)
            return int.from_bytes(data[:8], "big", signed=True), int.from_bytes(data[8:], "big", signed=True)

        for extent in summary.extents:
            if extent.kind != EXTENT_MESSAGE:
                continue
            for stretch in walk.stretches:
                low, high = max(extent.start, stretch.start), min(extent.end, stretch.end, end)
                if low < high:
                    found.append(_part(walk.start, low, high, stretch, head))
    return found


def _part(base: int, low: int, high: int, stretch: Stretch, head: Callable[[int], tuple[int, int]]) -> Part:
    first = (stretch.first_index, stretch.first_term) if low == stretch.start else head(low)
    if high == stretch.end:
        return Part(base, low, high, first[0], stretch.last_index, first[1], stretch.last_term)
    index, term = head(high)  # the entry after the part: its header is whole, its message is not, or it lies beyond the end
    return Part(base, low, high, first[0], index - 1, first[1], term if term == first[1] else first[1])


def best_chain(parts: Sequence[Part], joins: Callable[[Part, Part], bool]) -> list[Part]:
    """The parts with most bytes of which each can be joined to the one before it."""
    weight: list[int] = []
    before: list[int] = []
    for number, part in enumerate(parts):
        best, chosen = 0, -1
        for other in range(max(0, number - NEAR), number):
            if weight[other] > best and joins(parts[other], part):
                best, chosen = weight[other], other
        weight.append(best + part.size)
        before.append(chosen)
    if not parts:
        return []
    at = max(range(len(parts)), key=lambda number: (weight[number], -number))
    chain: list[Part] = []
    while at >= 0:
        chain.append(parts[at])
        at = before[at]
    return chain[::-1]


def follows(before: Part, after: Part) -> bool:
    """Whether index and term allow it to come later, in whatever distance."""
    return after.first_index > before.last_index and after.first_term >= before.last_term


def without_end(files: Iterable[DataFile], limit: int | None, ends: Mapping[str, int]) -> dict[str, int]:
    """Return each file's position from which on nothing stays.

    ends: the begins of leftovers of a cut.
    limit: a physical offset.
    """
    return {f.path: min(f.size, ends.get(f.path, f.size), f.size if limit is None else max(0, limit - f.base)) for f in files}


def moved_first(part: Part, count: int) -> Part:
    """The part with that many entries more before it."""
    return replace(part, first_index=part.first_index - count)
