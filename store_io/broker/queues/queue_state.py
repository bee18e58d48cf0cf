"""One ConsumeQueue (or BatchConsumeQueue) in the broker's memory, folded over runs (recovery.md 7).

What lies on disk is read through a `DiskEntries`, a few entries at a time; what dispatch appends is kept as pieces of runs,
laid over the disk's bytes as the broker's writes would be.
Source: ConsumeQueue and BatchConsumeQueue: recover, truncateDirtyLogicFiles, putMessagePositionInfo.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from schemas.layouts import consumequeue_layout as layout
from schemas.rows import MappedFile, QueueEdges, QueueKey, QueueSummary
from store_io.base.ranges import Ranges, intersect, union
from store_io.broker.queues.queue_pieces import FilePieces, Piece, Pieces
from store_io.broker.releases import BrokerRules

CHUNK_ENTRIES = 256
NOTHING_SCANNED: Mapping[QueueKey, QueueSummary] = MappingProxyType({})


class DiskEntries(Protocol):
    """Entries of one queue file as they lie on disk."""

    def __call__(self, path: str, first: int, count: int) -> np.ndarray:
        """Return entries [first, first + count) of the file as ENTRY_DTYPE or BATCH_DTYPE; fewer at the file's end."""


class NeedCut(Exception):
    """A decision falls inside a run: it must be split at this physical offset."""

    def __init__(self, phy_offset: int):
        super().__init__(str(phy_offset))
        self.phy_offset = phy_offset


@dataclass(slots=True)
class QueueFile:
    """One mapped file: path None for one that dispatch created."""

    path: str | None
    start: int
    size: int
    wrote: int

    @property
    def full(self) -> bool:
        return self.wrote == self.size


class QueueEntry(NamedTuple):
    """The place to which an entry leads, and its physical end: in a BatchConsumeQueue the message's start."""

    phy_offset: int
    phy_end: int


@dataclass(slots=True)
class QueueState:
    """The queue as the broker holds it. Byte offsets count from the queue's entry 0."""

    key: QueueKey
    batch: bool
    folder: str
    rules: BrokerRules
    disk: DiskEntries
    files: list[QueueFile] = field(default_factory=list)
    max_phy: int = -1
    min_logic: int = 0
    pieces: Pieces = field(default_factory=Pieces)
    deleted: list[str] = field(default_factory=list)
    batch_min: int = -1
    batch_max: int = 0
    recovered: str | None = None  # the last file when it was recovered
    summaries: Mapping[QueueKey, QueueSummary] = field(default_factory=lambda: NOTHING_SCANNED)  # of the recovered queues

    @property
    def edges(self) -> QueueEdges | None:
        """Return entries that need not be read."""
        summary = self.summaries.get(self.key)
        return summary.edges if summary is not None else None

    @property
    def prefix(self) -> tuple[str, int, int, int] | None:
        """Return (path, entries, largest phy_offset, max_phy) known of the last file that was recovered."""
        summary = self.summaries.get(self.key) if self.recovered is not None else None
        if self.recovered is None or summary is None or summary.last_prefix <= 0:
            return None
        return self.recovered, summary.last_prefix, summary.last_prefix_phy, summary.last_prefix_max_phy

    @property
    def unit(self) -> int:
        return layout.BATCH_ENTRY_BYTES if self.batch else layout.ENTRY_BYTES

    @property
    def file_bytes(self) -> int:
        return self.rules.batch_file_bytes if self.batch else self.rules.queue_file_bytes

    def snapshot(self, before: QueueState | None = None) -> QueueState:
        """Return the queue as it is now, which later steps do not touch.

        before: an earlier one; it is given if nothing has changed.
        """
        if before is not None and self._is_as(before):
            return before
        kept = copy.copy(self)
        kept.files = [copy.copy(file) for file in self.files]
        kept.pieces = self.pieces.copy()
        return kept

    def weight(self) -> int:
        """Return how many things the queue holds, of those of which there may be many. A row of pieces is a fraction of one."""
        return len(self.files) + len(self.pieces.extra) + len(self.pieces) // 8

    def closed(self) -> tuple[Any, ...]:
        """Return the queue without what it shares with all others; see `reopened`."""
        files = [(file.path, file.start, file.size, file.wrote) for file in self.files]
        numbers = self.max_phy, self.min_logic, self.batch_min, self.batch_max
        return self.batch, self.folder, files, numbers, self.pieces.closed(), self.deleted, self.recovered

    @classmethod
    def reopened(
        cls,
        of_all: tuple[BrokerRules, DiskEntries, list[object], Mapping[QueueKey, QueueSummary]],
        key: QueueKey,
        closed: tuple[Any, ...],
    ) -> QueueState:
        """Return the queue that was `closed`. of_all: rules, disk, the scans of the pieces, what was scanned."""
        batch, folder, files, (max_phy, min_logic, batch_min, batch_max), pieces, deleted, recovered = closed
        rules, disk, scans, summaries = of_all
        return cls(
            key, batch, folder, rules, disk, [QueueFile(*file) for file in files], max_phy, min_logic,
            Pieces.reopened(scans, pieces), deleted, batch_min, batch_max, recovered, summaries,
        )  # fmt: skip

    def _is_as(self, before: QueueState) -> bool:
        same = ("max_phy", "min_logic", "batch_min", "batch_max", "files", "deleted")
        return all(getattr(self, name) == getattr(before, name) for name in same) and before.pieces.is_copy(self.pieces)

    # ---- after load ------------------------------------------------------------------------------------------------

    def set_recovered(self, files: list[MappedFile], wrote: int, max_phy: int) -> None:
        """Take over what recover() found: files as loaded, truncated to byte `wrote`."""
        self.files = [QueueFile(f.path, f.start, f.size, f.size) for f in files]
        self.max_phy = max_phy
        if self.files:
            self.truncate(wrote)
        if self.batch:
            self.revise()

    def truncate(self, end: int) -> None:
        """Do MappedFileQueue.truncateDirtyFiles on this queue's files."""
        for file in list(self.files):
            if file.start + file.size > end:
                if end >= file.start:
                    file.wrote = end % file.size
                else:
                    self.delete(file)

    def delete(self, file: QueueFile) -> None:
        self.files.remove(file)
        if file.path is not None:
            self.deleted.append(file.path)
        self.pieces.drop_file(file.start)

    def destroy(self) -> None:
        """Remove the queue's files, as there is no CommitLog file. The queue itself stays listed."""
        for file in list(self.files):
            self.delete(file)
        self.max_phy, self.min_logic, self.batch_min, self.batch_max = -1, 0, -1, 0

    # ---- entries ---------------------------------------------------------------------------------------------------

    def entry(self, file: QueueFile, at: int) -> QueueEntry:
        """Return the entry at byte `at` of the file; zeros if there is none.

        Inside a piece only the first and the last entry are known; any other answers with values between those two.
        """
        start = file.start + at
        for piece in self.pieces_of(file).covering(at, self.unit):
            index, rest = divmod(start - piece.start, self.unit)
            if not rest:
                last = index == piece.count - 1
                phy = piece.last_phy if last else piece.first_phy if index == 0 else piece.first_phy + 1
                return self._entry(phy, piece.last_size if last else 1)
        if file.path is None:
            return QueueEntry(0, 0)
        if not self.batch and not at % self.unit:  # what the queue's scan has seen need not be read
            edges = self.edges
            for path, number, phy, size in edges.entries if edges is not None else ():
                if path == file.path and number * self.unit == at:
                    return self._entry(phy, size)
        rows = self.disk(file.path, at // self.unit, 1)
        return self._entry(int(rows[0]["phy_offset"]), int(rows[0]["size"])) if len(rows) else QueueEntry(0, 0)

    def _entry(self, phy_offset: int, size: int) -> QueueEntry:
        return QueueEntry(phy_offset, phy_offset if self.batch else phy_offset + size)

    # ---- truncation to the CommitLog -------------------------------------------------------------------------------

    def truncate_logic(self, end: int) -> None:
        """Follow truncateDirtyLogicFiles: the last file is read from its first slot on, which is taken untested."""
        self.max_phy = end - 1 if self.batch else end
        while self.files:
            file = self.files[-1]
            phy, phy_end = self.entry(file, 0)
            if phy >= end:
                file.wrote = 0
                self.delete(file)
                continue
            file.wrote, self.max_phy = self._scan_kept(file, end, phy_end)
            break
        if self.batch:
            self.revise()

    def _scan_kept(self, file: QueueFile, end: int, first_end: int) -> tuple[int, int]:
        """Return (bytes kept, physical end of the last kept entry) of a file whose entry 0 is kept."""
        prefix = self.prefix
        if prefix is not None and file.path == prefix[0] and not self.pieces_of(file) and prefix[2] < end:
            return prefix[1] * self.unit, prefix[3]
        at, phy_end = self.unit, first_end
        while at < file.size:
            chain = self.pieces_of(file).chain(at, self.unit, end)
            if chain is not None:
                at, phy, size = chain
                phy_end = phy if self.batch else phy + size
                continue
            piece = self.piece_at(file, at)
            if piece is not None:
                count = (piece.start + piece.count * self.unit - file.start - at) // self.unit
                if piece.last_phy >= end:  # a single irregular record, or pre-blank below a tiny end
                    if piece.first_phy >= end:
                        return at, phy_end
                    raise NeedCut(end)
                at += max(count, 1) * self.unit
                phy_end = piece.last_phy if self.batch else piece.last_phy + piece.last_size
                continue
            if file.path is None:
                return at, phy_end
            stop = self.pieces_of(file).next_start(at, file.size)
            kept, new_end = self._disk_kept(file, at, stop, end)
            if kept > at:
                phy_end = new_end
            if kept < stop:
                return kept, phy_end
            at = kept
        return at, phy_end

    def _disk_kept(self, file: QueueFile, at: int, stop: int, end: int) -> tuple[int, int]:
        """Return (byte after the last kept entry, its physical end): entries from `at` on while valid and below `end`."""
        assert file.path is not None
        phy_end, chunk = 0, CHUNK_ENTRIES
        while at < stop:
            rows = self.disk(file.path, at // self.unit, min(chunk, (stop - at) // self.unit))
            if not len(rows):
                return at, phy_end
            good = (rows["phy_offset"] >= 0) & (rows["size"] > 0) & (rows["phy_offset"] < end)
            if self.batch:
                good &= (rows["base"] >= 0) & (rows["count"] > 0)
            kept = len(rows) if good.all() else int(np.argmin(good))
            if kept:
                phy = int(rows["phy_offset"][kept - 1])
                phy_end = phy if self.batch else phy + int(rows["size"][kept - 1])
            at += kept * self.unit
            if kept < len(rows):
                break
            chunk = min(chunk * 4, 1 << 17)
        return at, phy_end

    def pieces_of(self, file: QueueFile) -> FilePieces:
        """Return the pieces that dispatch wrote into the file."""
        return self.pieces.of_file(file.start)

    def piece_at(self, file: QueueFile, at: int) -> Piece | None:
        """Return the newest piece that holds byte `at` of the file."""
        return next(self.pieces_of(file).covering(at, self.unit), None)

    # ---- dispatch --------------------------------------------------------------------------------------------------

    def _file_for_append(self, start_offset: int) -> QueueFile:
        """Return the file that takes the next entry. It is made if there is none, the queue's first one around `start_offset`."""
        if not self.files or self.files[-1].full:
            size = self.file_bytes
            start = self.files[-1].start + size if self.files else start_offset - start_offset % size
            self.files.append(QueueFile(None, start, size, 0))
        return self.files[-1]

    def put_run(self, scan: object, number: int, run: np.void) -> None:
        """Dispatch a run: putMessagePositionInfo for each of its records. Raises NeedCut if a decision falls inside it."""
        if self.batch:
            self._put_batch_run(scan, number, run)
            return
        records = int(run["records"])
        first_phy, last_phy = int(run["first_phy_offset"]), int(run["last_phy_offset"])
        first_size, last_size = int(run["first_size"]), int(run["last_size"])
        if last_phy + last_size <= self.max_phy:
            return
        if first_phy + first_size <= self.max_phy:
            raise NeedCut(self.max_phy)
        q, k = int(run["queue_offset"]), 0
        while k < records:
            expected = (q + k) * self.unit
            first = not self.files
            file = self._file_for_append(expected)
            if first and q + k != 0:
                self.min_logic = expected
                blank = expected % file.size // self.unit
                if blank:
                    self.pieces.append(Piece(file.start, file.start, blank, 0, 0, layout.PRE_BLANK_SIZE))
                    file.wrote = blank * self.unit
            cursor = file.start + file.wrote
            if q + k != 0 and expected < cursor:
                # Already built: ignored with a warning, up to the record that belongs at the cursor.
                k = min(records, k + max(1, (cursor - expected) // self.unit))
                continue
            # A record with queue offset 0 is appended untested; after it the test counts again.
            take = 1 if q + k == 0 and expected != cursor else records - k
            room = (file.size - file.wrote) // self.unit
            n = min(take, room)
            if n <= 0:  # less room than an entry: appendMessage refuses
                return
            # A record inside the run is known to lie between its ends only; nothing that follows asks for more of it.
            phy, size = (
                (last_phy, last_size) if k + n == records else (first_phy, first_size) if k + n == 1 else (last_phy - 1, 1)
            )
            start_phy = first_phy if n > 1 and k == 0 else first_phy + 1 if n > 1 else phy
            self.pieces.append(
                Piece(file.start, cursor, n, start_phy, phy, size, scan, number, k, of_run=(q, first_phy, last_phy))
            )
            file.wrote += n * self.unit
            self.max_phy = phy + size
            k += n

    def _put_batch_run(self, scan: object, number: int, run: np.void) -> None:
        """BatchConsumeQueue: no position test, no pre-blank; `max_phy` is the start of the last record."""
        records, base = int(run["records"]), int(run["queue_offset"])
        first_phy, last_phy = int(run["first_phy_offset"]), int(run["last_phy_offset"])
        if base < 0 or int(run["messages"]) < 0 or last_phy <= self.max_phy:
            return
        if first_phy <= self.max_phy:
            raise NeedCut(self.max_phy)
        first_file_empty, first_file, done = self.batch_min == -1, self.files[0] if self.files else None, 0
        while done < records:
            file = self._file_for_append(0)
            n = min(records - done, (file.size - file.wrote) // self.unit)
            if n <= 0:  # less room than an entry: appendMessage refuses
                break
            first, last = done == 0, done + n == records
            self.pieces.append(
                Piece(
                    file.start,
                    file.start + file.wrote,
                    n,
                    first_phy if first else first_phy + 1,
                    last_phy if last else last_phy - 1,
                    int(run["last_size"]),
                    scan,
                    number,
                    done,
                    base if first else -1,
                    int(run["messages"]) if first and last else 0,
                    base + int(run["messages"]),
                    (base, first_phy, last_phy),
                )
            )
            file.wrote += n * self.unit
            done += n
        self.max_phy = last_phy
        self.batch_max = base + int(run["messages"])
        if first_file_empty and (first_file is None or self.pieces.newest.file_start == first_file.start):
            self.revise_min()

    def put_entries(self) -> Ranges:
        """Return the numbers of the entries that dispatch has put, each at its message's queue offset. No BatchConsumeQueue."""
        rows, unit = self.pieces.rows, self.unit
        if not len(rows):
            return []
        starts = self.pieces.starts
        beyond = max(map(abs, starts)) >= 1 << 62  # the file of a damaged queue offset: no long holds its bytes
        start = np.array(starts, object if beyond else np.int64)[rows["file"]] + rows["at"]
        in_place = rows["extra"] < 0
        for number in (~in_place).nonzero()[0].tolist():
            piece = self.pieces.piece(number)
            in_place[number] = piece.run >= 0 and piece.start == (piece.of_run[0] + piece.skipped) * unit
        first = start[in_place] // unit
        end = first + rows["count"][in_place]
        apart = first[1:] != end[:-1]
        put = zip([*first[:1].tolist(), *first[1:][apart].tolist()], [*end[:-1][apart].tolist(), *end[-1:].tolist()], strict=True)
        return intersect(union(put), [(self.min_logic // unit, self.max_bytes // unit)])

    # ---- minimum and maximum ---------------------------------------------------------------------------------------

    def _base_and_end(self, file: QueueFile, at: int) -> tuple[int, int]:
        """Return (base, base + count) of the batch entry at byte `at`."""
        piece = self.piece_at(file, at)
        if piece is not None:
            return piece.base, piece.base + piece.messages
        if file.path is None:
            return 0, 0
        row = self.disk(file.path, at // self.unit, 1)[0]
        return int(row["base"]), int(row["base"]) + int(row["count"])

    def revise(self) -> None:
        """BatchConsumeQueue: reviseMaxAndMinOffsetInQueue."""
        self.revise_min()
        self.batch_max = 0
        for file in self.files[-1:-3:-1]:
            if file.wrote >= self.unit:
                piece = self.piece_at(file, file.wrote - self.unit)
                self.batch_max = piece.batch_end if piece else self._base_and_end(file, file.wrote - self.unit)[1]
                break

    def revise_min(self) -> None:
        """Find the smallest queue offset of a BatchConsumeQueue in its first file (reviseMinOffsetInQueue)."""
        if not self.files:
            self.batch_min, self.batch_max = -1, 0
        elif self.files[0].wrote < self.unit:
            self.batch_min = -1
        else:
            self.batch_min = self._base_and_end(self.files[0], 0)[0]

    @property
    def max_bytes(self) -> int:
        """Return the byte after the last entry: last file's start + wrote; 0 without a file."""
        return self.files[-1].start + self.files[-1].wrote if self.files else 0

    @property
    def min_offset(self) -> int:
        return self.batch_min if self.batch else self.min_logic // self.unit

    @property
    def max_offset(self) -> int:
        return self.batch_max if self.batch else self.max_bytes // self.unit
