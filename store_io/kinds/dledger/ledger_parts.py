"""Chooses the entries of a DLedger log that stay, and fills the gaps between them (dledger.md 1).

Entries stay if header and message pass every check. They form parts, in which they follow one another by their headers, and the
parts that are chosen can be made one chain. Indexes have no holes, so a gap gets as many entries as indexes are missing, and
exactly as many bytes. A message that passes every check after a wrong header gets its header anew; all else becomes bridges
(`log.records.bridges`), each in an entry of its own. A gap may reach over the end of files; what is left at a file's end becomes
a filler, as DLedger writes it.
Source: DLedgerEntryCoder, MmapFileList.preAppend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.layouts import dledger_layout as layout
from schemas.rows import EXTENT_MESSAGE, SegmentSummary
from store_io.kinds.dledger.ledger_walks import DataWalk, Stretch
from store_io.source.byte_source import ByteSource

NEAR = 64  # parts before one that are tried as the one that it continues
MOST_BYTES = 1 << 24  # of one bridge; larger ones could be more than a broker reads at once
HEADER, BRIDGE, FILLER = "header", "bridge", "filler"
Sizes = Callable[[int, int], int]  # (base of a file, position) -> bytes of the valid message there, 0 where there is none


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
    """A data file with its parts, ascending."""

    path: str
    base: int
    size: int
    parts: list[Part] = field(default_factory=list)


def parts_of(source: ByteSource, summary: SegmentSummary, walk: DataWalk, end: int) -> list[Part]:
    """Return the parts of one file up to that position."""
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
    """Return the parts with most bytes of which each can be joined to the one before it."""
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
    """Say whether index and term allow it to come later, in whatever distance."""
    return after.first_index > before.last_index and after.first_term >= before.last_term


def without_end(files: Iterable[DataFile], limit: int | None, ends: Mapping[str, int]) -> dict[str, int]:
    """Return each file's position from which on nothing stays.

    ends: the begins of leftovers of a cut.
    limit: a physical offset.
    """
    return {f.path: min(f.size, ends.get(f.path, f.size), f.size if limit is None else max(0, limit - f.base)) for f in files}


@dataclass(frozen=True)
class GapBytes:
    """Bytes [start, end) of the data file that begins at `base`. exact: an entry follows at once; else the file ends there."""

    base: int
    start: int
    end: int
    exact: bool

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Piece:
    """A piece to write: an entry, header and all, or a filler.

    kind: one of this module's words.
    """

    kind: str
    base: int
    start: int
    end: int


def fill_gap(rooms: Sequence[GapBytes], entries: int, least: int, message_at: Sizes) -> list[Piece] | None:
    """Return pieces with that many entries that fill the rooms, or None.

    least: bytes of an entry with a bridge.
    """
    kept: list[Piece] = []
    rest = list(rooms)
    if rest and entries:
        first = rest[0]
        at = first.start
        while len(kept) < entries and at < first.end:
            size = message_at(first.base, at + layout.HEADER_BYTES)
            end = at + layout.HEADER_BYTES + size
            if not size or end > first.end:
                break
            kept.append(Piece(HEADER, first.base, at, end))
            at = end
        rest[0] = GapBytes(first.base, at, first.end, first.exact)
    bridged = _bridge(rest, entries - len(kept), least)
    if bridged is not None:
        return [*kept, *bridged]
    return _bridge(rooms, entries, least) if kept else None


def _bridge(rooms: Sequence[GapBytes], entries: int, least: int) -> list[Piece] | None:
    needs = [1 if room.size and (room.exact or room.start == 0) else 0 for room in rooms]
    most = [(room.size - (0 if room.exact else layout.MIN_BLANK_BYTES)) // least for room in rooms]
    spare = entries - sum(needs)
    if spare < 0:
        return None
    counts = []
    for need, can in zip(needs, most, strict=True):
        more = max(0, min(spare, can - need))
        counts.append(need + more)
        spare -= more
    if spare or any(count > max(0, can) for count, can in zip(counts, most, strict=True)):
        return None
    pieces: list[Piece] = []
    for room, count in zip(rooms, counts, strict=True):
        made = _in_room(room, count, least)
        if made is None:
            return None
        pieces += made
    return pieces


def _in_room(room: GapBytes, count: int, least: int) -> list[Piece] | None:
    pieces, at = [], room.start
    for number in range(count):
        if not room.exact:
            size = least
        elif number + 1 < count:
            size = room.size // count
        else:
            size = room.end - at
        if size > MOST_BYTES:
            return None
        pieces.append(Piece(BRIDGE, room.base, at, at + size))
        at += size
    if at < room.end:
        if room.exact or room.end - at < layout.MIN_BLANK_BYTES:
            return None
        pieces.append(Piece(FILLER, room.base, at, room.end))
    return pieces
