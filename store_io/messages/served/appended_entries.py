"""Makes the entries again that dispatch appends in a prediction. The prediction keeps them as runs, so the segment of each run
is walked.

Source: CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.layouts import consumequeue_layout
from schemas.layouts.entries import BATCH_DTYPE, ENTRY_DTYPE
from schemas.rows import RUN_LMQ, WALK_BROKER, QueueKey
from store_io.audit.audit_store import StoreAudit
from store_io.broker.index_state import IndexPiece
from store_io.broker.message_verdict import HALF
from store_io.broker.prediction import ScanId
from store_io.broker.queues.multi_dispatch import multi_dispatch
from store_io.broker.queues.queue_pieces import Piece
from store_io.broker.queues.queue_state import QueueState
from store_io.log.records import commitlog_columns
from store_io.log.records.framing import framing_of
from store_io.log.records.message_columns import HAS_MULTI_DISPATCH, ROW_DTYPE, Columns, RecordCheck, TopicTable, entries_in_order
from store_io.log.records.segment_walk import Decoding, capacity_for, walk_batches
from store_io.source.segment_window import SegmentWindow

EXPANDED_ENTRIES = 1 << 20  # kept in memory at a time
WINDOW_BYTES = 4 << 20
KEY_DTYPE = np.dtype([("place", "i8"), ("key_hash", "i4"), ("phy_offset", "i8"), ("store_time", "i8")])


@dataclass
class _Wanted:
    """Records [low, high) of a run to become entries."""

    key: QueueKey
    multi: bool  # whether it is a multi-dispatch queue's run
    position: int  # of the run's first record
    low: int
    high: int
    met: int = 0
    parts: list[np.ndarray] = field(default_factory=list)

    def take(self, rows: np.ndarray) -> None:
        low, high = max(0, self.low - self.met), min(len(rows), self.high - self.met)
        if low < high:
            self.parts.append(rows[low:high])
        self.met += len(rows)


class AppendedEntries:
    """Reads the records of the runs that dispatch appended, and makes their entries again."""

    def __init__(self, audit: StoreAudit):
        self.audit, self.rules = audit, audit.rules
        self._kept: dict[tuple[QueueKey, int], np.ndarray] = {}  # by queue and number of the piece

    def prepare(self, queues: Sequence[QueueState]) -> None:
        """Read what was appended to these queues in one pass for each segment, up to what may be kept."""
        self._kept = {}
        room = EXPANDED_ENTRIES
        wanted: list[tuple[QueueState, int]] = []
        for queue in queues:
            for number, row in enumerate(queue.pieces.rows if room > 0 else ()):
                if row["count"] <= room and queue.pieces.piece(number).run >= 0:
                    wanted.append((queue, number))
                    room -= int(row["count"])
        pieces = [(queue, queue.pieces.piece(number)) for queue, number in wanted]
        found = self._expand([(queue, piece, 0, piece.count) for queue, piece in pieces])
        self._kept = {(queue.key, number): rows for (queue, number), rows in zip(wanted, found, strict=True)}

    def entries(self, queue: QueueState, number: int, piece: Piece, low: int, high: int) -> np.ndarray:
        """Return entries [low, high) of a piece, as ENTRY_DTYPE or BATCH_DTYPE."""
        if piece.run < 0:
            rows = np.zeros(high - low, ENTRY_DTYPE)
            rows["size"] = consumequeue_layout.PRE_BLANK_SIZE
            return rows
        kept = self._kept.get((queue.key, number))
        return self._expand([(queue, piece, low, high)])[0] if kept is None else kept[low:high]

    def _expand(self, pieces: Sequence[tuple[QueueState, Piece, int, int]]) -> list[np.ndarray]:
        by_scan: dict[ScanId, list[_Wanted]] = defaultdict(list)
        wanted = []
        for queue, piece, low, high in pieces:
            assert isinstance(piece.scan, ScanId)
            run = self.audit.scans[piece.scan].runs[piece.run]
            is_multi, position = int(run["kind"]) == RUN_LMQ, int(run["first_position"])
            one = _Wanted(queue.key, is_multi, position, piece.skipped + low, piece.skipped + high)
            by_scan[piece.scan].append(one)
            wanted.append((one, queue.batch))
        for scan, ones in by_scan.items():
            self._read(scan, sorted(ones, key=lambda one: one.position))
        return [_entries(one.parts, batch) for one, batch in wanted]

    def _read(self, scan: ScanId, wanted: list[_Wanted]) -> None:
        waiting, active = wanted, list[_Wanted]()
        for walk in self._walk(scan, wanted[0].position - self._header(scan), False):
            rows = walk.columns.rows[: walk.columns.count].copy()
            end = int(rows["position"][-1])
            active = [one for one in active if one.met < one.high]
            active += [one for one in waiting if one.position <= end]
            waiting = [one for one in waiting if one.position > end]
            if not active and not waiting:
                return
            own = self._by_queue(rows, walk.topics)
            multi = self._by_multi_dispatch(rows, walk) if any(one.multi for one in active) else {}
            for one in active:
                members = (multi if one.multi else own).get(one.key)
                if members is not None:
                    one.take(members[members["position"] >= one.position])

    @staticmethod
    def _by_queue(rows: np.ndarray, topics: TopicTable) -> dict[QueueKey, np.ndarray]:
        kinds = rows["sys_flag"] & layout.SYS_TRANSACTION_MASK
        queued = rows[(kinds == 0) | (kinds == layout.SYS_COMMIT)]
        order = np.argsort(queued["topic_ref"], kind="stable")
        queued = queued[order]
        edges = np.flatnonzero(np.diff(queued["topic_ref"], prepend=-1))
        keys = topics.keys
        return {keys[int(part["topic_ref"][0])]: part for part in np.split(queued, edges[1:]) if len(part)}

    def _by_multi_dispatch(self, rows: np.ndarray, walk: _Walk) -> dict[QueueKey, np.ndarray]:
        found: dict[QueueKey, list[int]] = defaultdict(list)
        kinds = rows["sys_flag"] & layout.SYS_TRANSACTION_MASK
        flagged = (rows["flags"] & HAS_MULTI_DISPATCH != 0) & ((kinds == 0) | (kinds == layout.SYS_COMMIT))
        for i in np.flatnonzero(flagged).tolist():
            key = walk.topics.keys[int(rows["topic_ref"][i])]
            if key[0] in self.audit.batch_topics:
                continue
            start = int(rows["position"][i]) + int(rows["props_at"][i])
            properties = walk.window.read(start, start + int(rows["props_len"][i]))
            for name, _ in multi_dispatch(self.rules, key, properties).entries:
                found[name].append(i)
        return {key: rows[numbers] for key, numbers in found.items()}

    def keys(self, pieces: Sequence[IndexPiece], slot: int | None) -> np.ndarray:
        """Return the keys that these pieces put into their index file, in order, as KEY_DTYPE.

        slot: if given, only those that hash there.
        """
        by_scan: dict[ScanId, list[tuple[IndexPiece, int]]] = defaultdict(list)
        place = 0
        for piece in pieces:
            assert isinstance(piece.scan, ScanId)
            by_scan[piece.scan].append((piece, place))
            place += piece.last - piece.first + 1
        parts = [np.zeros(0, KEY_DTYPE)]
        for scan, ones in by_scan.items():
            parts += self._read_keys(scan, ones, slot)
        rows = np.concatenate(parts)
        return rows[np.argsort(rows["place"], kind="stable")]

    def _read_keys(self, scan: ScanId, pieces: list[tuple[IndexPiece, int]], slot: int | None) -> Iterator[np.ndarray]:
        runs = self.audit.scans[scan].index_runs
        records = np.where(runs["walk"] & WALK_BROKER != 0, runs["records"], 0)
        ends = np.cumsum(records)
        open_runs = [_OpenRun(p, place, int(ends[p.run] - records[p.run]), int(ends[p.run])) for p, place in pieces]
        last = max(one.end for one in open_runs)
        first = 0
        for walk in self._walk(scan, scan.start, True):
            rows = walk.columns.rows[: walk.columns.count]
            for one in open_runs:
                low, high = max(one.first, first) - first, min(one.end, first + len(rows)) - first
                if low < high:
                    found = _keys_of(rows[low:high], walk.columns.key_hash, self.rules.tag_index)
                    number = np.arange(one.met + 1, one.met + 1 + len(found))
                    one.met += len(found)
                    chosen = (number >= one.piece.first) & (number <= one.piece.last)
                    found["place"] = one.place + number - one.piece.first
                    if slot is not None:
                        chosen &= found["key_hash"] % self.rules.index_slots == slot
                    yield found[chosen]
            first += len(rows)
            if first >= last:
                return

    def _header(self, scan: ScanId) -> int:
        """Return bytes of a frame before its record in the segment of that scan."""
        return framing_of(self.rules, self.audit.copy.loaded.segments[scan.segment].path).header_bytes

    def _walk(self, scan: ScanId, position: int, want_keys: bool) -> Iterator[_Walk]:
        """Yield the broker's own walk again, batch by batch, from a frame of it on."""
        file = self.audit.copy.loaded.segments[scan.segment]
        reput = scan.kind == "reput"
        lenient = reput or scan.kind == "elect"
        check = (RecordCheck.reput if lenient else RecordCheck.broker)(self.rules, file.path)
        limit = min(scan.limit, file.size) if lenient else file.size
        with self.audit.source.open(file.path) as opened:
            window = SegmentWindow(opened, file.size, WINDOW_BYTES)
            walk = _Walk(window, Columns(capacity_for(WINDOW_BYTES), want_keys), TopicTable())
            while True:
                batches = walk_batches(
                    Decoding(commitlog_columns.decode, window, walk.columns, walk.topics), check, position, limit
                )
                while True:
                    try:
                        next(batches)
                    except StopIteration as end:
                        verdict = end.value[1]
                        break
                    yield walk
                if not reput or verdict.kind != HALF:
                    return
                position = verdict.parsed_to  # the buffer continues where the fields ended


@dataclass
class _OpenRun:
    """An index run whose keys are read: its records [first, end) of the walk.

    met: how many of its keys were met.
    place: that of the piece's first key among all that dispatch put into the file.
    """

    piece: IndexPiece
    place: int
    first: int
    end: int
    met: int = 0


@dataclass
class _Walk:
    window: SegmentWindow
    columns: Columns
    topics: TopicTable


def _entries(parts: list[np.ndarray], batch: bool) -> np.ndarray:
    rows = np.concatenate(parts) if parts else np.zeros(0, ROW_DTYPE)
    found = np.zeros(len(rows), BATCH_DTYPE if batch else ENTRY_DTYPE)
    found["phy_offset"], found["size"], found["tags_code"] = rows["phy_offset"], rows["total_size"], rows["tags_code"]
    if batch:
        found["store_time"], found["base"], found["count"] = rows["store_time"], rows["batch_base"], rows["batch_count"]
        found["compacted"] = -1
    return found


def _keys_of(rows: np.ndarray, hashes: np.ndarray, tag_index: bool) -> np.ndarray:
    """Return the index entries of these messages, in order; `place` is not filled in."""
    of, places = entries_in_order(rows, tag_index)
    found = np.zeros(len(of), KEY_DTYPE)
    found["key_hash"] = hashes[places]
    found["phy_offset"], found["store_time"] = rows["phy_offset"][of], rows["store_time"][of]
    return found
