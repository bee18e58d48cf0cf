"""One segment walked in several pieces at once, and the proof that the pieces together are the one walk from its start.

Where a walk goes next depends on its position and the bytes alone (`walk_batches`, `Resync.judge`). So two walks that meet at one
position are the same from there on. Each piece begins at the first place of its range at which messages plausibly continue, and
walks on to the first position at or beyond its end. Such a place may lie in a body that holds whole records, or in damage. So a
piece counts only if the piece before it, which counts, ended exactly where it began. Otherwise its range is walked again from
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from store_io.formats.commitlog.message_columns import RecordCheck
from store_io.scan.resync import Resync
from store_io.source.segment_window import SegmentWindow

LEAST_BYTES = 64 << 20  # of a piece: less is read sooner than a task for it starts


class Piece(NamedTuple):
    """A range of positions of a segment: the frames that begin in it."""

    low: int
    high: int


class PieceWalk(NamedTuple):
    """Where the walk of a piece began, and its first position at or beyond the end of the piece.

    start: None if messages plausibly continue nowhere in the piece.  end: the segment's size if all the rest was judged.
    """

    start: int | None
    end: int


def pieces_of(size: int, most: int, least: int = LEAST_BYTES) -> list[Piece]:
    """Cut a segment into at most `most` pieces of about the same length, each of at least `least` bytes."""
    count = max(1, min(most, size // least))
    edges = [size * number // count for number in range(count + 1)]
    return [Piece(low, high) for low, high in pairwise(edges)]


def likely_start(window: SegmentWindow, path: str, check: RecordCheck, piece: Piece) -> int | None:
    """Return the first position of the piece at which messages, or the filler, plausibly continue; None if there is none.

    check: the audit's own of this segment. A piece that begins the segment begins where it does.
    """
    if piece.low == 0:
        return 0
    return Resync(window, path, check.base_offset, check, False).next_valid(piece.low, piece.high)


class Proof(NamedTuple):
    """What the walks of the pieces prove together.

    counted: numbers of the pieces whose walks are parts of the one walk; those before `again` that are missing were passed by one
    frame or hole and hold nothing.  again: the range to walk once more, the piece `number` from where the walk before it ended;
    None: nothing is left to prove.
    """

    counted: list[int]
    number: int
    again: Piece | None


def proof(pieces: Sequence[Piece], walks: Sequence[PieceWalk]) -> Proof:
    """Return which walks count. The caller walks `again`, puts that walk in the place of the old one, and asks once more.

    What a walk carries besides its position (whether damage was passed, what was counted) is the caller's to pass on.
    """
    counted, at = [0], walks[0].end
    for number, (piece, walk) in enumerate(zip(pieces, walks, strict=True)):
        if number == 0 or at >= piece.high:
            continue
        if walk.start != at:
            return Proof(counted, number, Piece(at, piece.high))
        counted.append(number)
        at = walk.end
    return Proof(counted, len(pieces), None)
