"""The pieces that dispatch appended to one ConsumeQueue, as columns: a ConsumeQueue that was lost comes back in millions of
pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# file: number of the file in `Pieces.starts`; at: byte in that file; count: entries; first_phy, last_phy, last_size: of the
# first and last of them; scan: number in `Pieces.scans`; run: of that scan; extra: place in `Pieces.extra`, -1: a whole run.
PIECE_DTYPE = np.dtype(
    [
        ("file", "i4"),
        ("at", "i8"),
        ("count", "i4"),
        ("first_phy", "i8"),
        ("last_phy", "i8"),
        ("last_size", "i4"),
        ("scan", "i4"),
        ("run", "i4"),
        ("extra", "i4"),
    ]
)
_NONE: list[Any] = []  # is never changed
_NO_ROWS = np.zeros(0, PIECE_DTYPE)
CHAIN = 1024  # pieces looked at together
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@dataclass
class Piece:
    """Entries that dispatch appended, from byte `start` of the queue on: `count` entries of one run, or pre-blank (run -1).

    file_start: of the file that they lie in; a foreign name can make files overlap.
    skipped: the run's records before the first one appended.
    """

    file_start: int
    start: int
    count: int
    first_phy: int
    last_phy: int
    last_size: int
    scan: object = None
    run: int = -1
    skipped: int = 0
    base: int = 0  # BatchConsumeQueue: message offset of the first
    messages: int = 0
    batch_end: int = 0  # message offset after the last, where it is the run's last
    of_run: tuple[int, int, int] = (0, 0, 0)  # the run's queue offset, and the physical offsets of its first and last record


class Pieces:
    """A queue's pieces in the order in which they were written.

    rows: PIECE_DTYPE; a run that was appended whole is a row alone, any other piece has its object in `extra`.
    scans: what the rows' scan numbers mean, shared by all queues of a fold.
    """

    __slots__ = ("_fresh", "_numbers", "_parts", "_rows", "extra", "scans", "starts")

    def __init__(self, scans: list[object] | None = None):
        # Of a million queues most have none: a list or dict is made with the first thing that goes into it.
        self.scans = scans if scans is not None else []
        self.extra: list[Piece] = _NONE
        self.starts: list[int] = _NONE  # of the files, by number
        self._numbers: dict[int, int] | None = None
        self._rows = _NO_ROWS
        self._fresh: list[Piece] | None = None  # not in the rows yet
        self._parts: dict[int, FilePieces] | None = None

    @property
    def rows(self) -> np.ndarray:
        """Return all pieces."""
        if self._fresh:
            made = np.array(self.take_fresh(), PIECE_DTYPE)
            self.extend(made)
        return self._rows

    def append(self, piece: Piece) -> None:
        """Add one piece, the newest."""
        if self._fresh is None:
            self._fresh = []
        self._fresh.append(piece)

    @property
    def newest(self) -> Piece:
        """Return the last piece written. There must be one."""
        return self._fresh[-1] if self._fresh else self._piece(self._rows[-1])

    def take_fresh(self) -> list[tuple[int, ...]]:
        """Return as rows the pieces that were appended one by one and are not among the rows yet. The caller adds them."""
        rows: list[tuple[int, ...]] = []
        for piece in self._fresh or ():
            phys = (min(max(phy, _LEAST), _MOST) for phy in (piece.first_phy, piece.last_phy))
            at = piece.start - piece.file_start
            rows.append((self.file_number(piece.file_start), at, piece.count, *phys, piece.last_size, -1, -1, len(self.extra)))
            self.extra = self.extra or []
            self.extra.append(piece)
        self._fresh = None
        return rows

    def extend(self, rows: np.ndarray) -> None:
        """Add rows, newer than all others."""
        self._rows = np.concatenate([self._rows, rows]) if len(self._rows) else rows
        self._parts = None

    def file_number(self, start: int) -> int:
        """Return the number of the file that begins at this byte of the queue."""
        if self._numbers is None:
            self._numbers = {}
        if start not in self._numbers:
            self._numbers[start] = len(self.starts)
            self.starts = self.starts or []
            self.starts.append(start)
        return self._numbers[start]

    def known_file(self, start: int) -> int:
        """Return the number of the file that begins at this byte of the queue; -1 if it has none yet."""
        return self._numbers.get(start, -1) if self._numbers is not None else -1

    def of_file(self, start: int) -> FilePieces:
        """Return the pieces in the file that begins at this byte of the queue."""
        rows = self.rows
        if not len(rows):
            return FilePieces(self, rows)
        if self._parts is None:
            self._parts = {}
        if start not in self._parts:
            self._parts[start] = FilePieces(self, rows[rows["file"] == self.known_file(start)])
        return self._parts[start]

    def drop_file(self, start: int) -> None:
        """Forget what lies in this file: it is deleted."""
        rows = self.rows
        if self._numbers is not None and start in self._numbers and len(rows):
            self._rows = rows[rows["file"] != self._numbers[start]]
            self._parts = None

    def copy(self) -> Pieces:
        """Return a snapshot that later writes do not touch."""
        twin = Pieces(self.scans)
        twin._rows = self.rows
        twin.extra, twin.starts = [*self.extra] or _NONE, [*self.starts] or _NONE
        twin._numbers = dict(self._numbers) if self._numbers is not None else None
        return twin

    def closed(self) -> tuple[Any, ...] | None:
        """Return all but `scans`; None if nothing was written. See `reopened`."""
        rows = self.rows
        return (rows, self.extra, self.starts, self._numbers) if self.starts else None

    @classmethod
    def reopened(cls, scans: list[object], closed: tuple[Any, ...] | None) -> Pieces:
        """Return the pieces that were `closed`."""
        made = cls(scans)
        if closed is not None:
            made._rows, made.extra, made.starts, made._numbers = closed
        return made

    def is_copy(self, other: Pieces) -> bool:
        """Say whether this is still what `copy` gave of the other."""
        return not other._fresh and self._rows is other._rows and len(self.extra) == len(other.extra)

    def piece(self, number: int) -> Piece:
        """Return one of the rows as an object."""
        return self._piece(self.rows[number])

    def _piece(self, row: np.void) -> Piece:
        _, at, count, first_phy, last_phy, last_size, scan, run, extra = row.tolist()
        if extra >= 0:
            return self.extra[extra]
        start = self.starts[row["file"]]
        return Piece(start, start + at, count, first_phy, last_phy, last_size, self.scans[scan], run)

    def __iter__(self) -> Iterator[Piece]:
        return map(self._piece, self.rows)

    def __len__(self) -> int:
        return len(self._rows) + len(self._fresh or ())


class FilePieces:
    """The pieces in one file."""

    def __init__(self, pieces: Pieces, rows: np.ndarray):
        self._pieces, self.rows = pieces, rows
        self._unit = 0

    def __len__(self) -> int:
        return len(self.rows)

    def _measure(self, unit: int) -> None:
        if self._unit != unit:
            self._unit = unit
            self.starts = np.ascontiguousarray(self.rows["at"])
            self.ends = self.starts + self.rows["count"].astype(np.int64) * unit
            self.ordered = bool((self.starts[1:] >= self.ends[:-1]).all())  # nothing was written over

    def covering(self, at: int, unit: int) -> Iterator[Piece]:
        """Yield the pieces that hold byte `at` of the file, the newest first."""
        if not len(self.rows):
            return
        self._measure(unit)
        if self.ordered:
            number = int(np.searchsorted(self.starts, at, side="right")) - 1
            if number >= 0 and at < self.ends[number]:
                yield self._pieces._piece(self.rows[number])
            return
        for number in np.flatnonzero((self.starts <= at) & (at < self.ends))[::-1].tolist():
            yield self._pieces._piece(self.rows[number])

    def next_start(self, at: int, end: int) -> int:
        """Return the first byte after `at` at which a piece begins; `end` if none does before it."""
        later = self.rows["at"][self.rows["at"] > at]
        return min(int(later.min()), end) if len(later) else end

    def chain(self, at: int, unit: int, below: int) -> tuple[int, int, int] | None:
        """Return (byte after the last, last_phy, last_size) of the pieces that follow one another from byte `at` on.

        They follow without a gap and lie below the physical offset `below`. None if that must be looked at piece by piece.
        """
        if not len(self.rows):
            return None
        self._measure(unit)
        number = int(np.searchsorted(self.starts, at, side="right")) - 1
        if not self.ordered or number < 0 or at >= self.ends[number] or (at - int(self.starts[number])) % unit:
            return None
        rows = self.rows[number : number + CHAIN]
        if rows["extra"][0] >= 0:
            return None
        stops = (rows["last_phy"] >= below) | (rows["extra"] >= 0)
        stops[1:] |= self.starts[number + 1 : number + len(rows)] != self.ends[number : number + len(rows) - 1]
        count = int(np.argmax(stops)) if stops.any() else len(stops)
        if not count:
            return None
        last = self.rows[number + count - 1]
        return int(self.ends[number + count - 1]), int(last["last_phy"]), int(last["last_size"])
