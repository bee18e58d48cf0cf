"""The entries that fill a gap of a DLedger log: as many as indexes are missing, and exactly as many bytes.

A message that passes every check after a wrong header gets its header anew; all else becomes bridges
(`formats.commitlog.bridges`), each in an entry of its own. A gap may reach over the end of files; what is left at a file's end
becomes a filler, as DLedger writes it. Source: DLedgerEntryCoder, MmapFileList.preAppend (dledger.md 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas import dledger_layout as layout

MOST_BYTES = 1 << 24  # of one bridge; larger ones could be more than a broker reads at once
HEADER, BRIDGE, FILLER = "header", "bridge", "filler"

Sizes = Callable[[int, int], int]  # (base of a file, position) -> bytes of the valid message there, 0 where there is none


@dataclass(frozen=True)
class Room:
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


def fill_gap(rooms: Sequence[Room], entries: int, least: int, message_at: Sizes) -> list[Piece] | None:
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
        rest[0] = Room(first.base, at, first.end, first.exact)
    bridged = _bridge(rest, entries - len(kept), least)
    if bridged is not None:
        return [*kept, *bridged]
    return _bridge(rooms, entries, least) if kept else None


def _bridge(rooms: Sequence[Room], entries: int, least: int) -> list[Piece] | None:
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


def _in_room(room: Room, count: int, least: int) -> list[Piece] | None:
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
