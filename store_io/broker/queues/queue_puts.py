"""Runs of segments -> entries of all ConsumeQueues at once, in the order of dispatch (recovery.md 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np

from schemas.layouts import consumequeue_layout as layout
from schemas.rows import RUN_LMQ, QueueKey, SegmentSummary
from store_io.base import packed
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.queues.queue_pieces import PIECE_DTYPE
from store_io.broker.queues.queue_state import NeedCut, QueueState

FAR = 1 << 56  # queue offsets and positions beyond come from damage: their runs are put one by one, in exact numbers
FEW_ROWS = 8  # fewer rows than this are put one by one
MOST_ROWS = 1 << 20  # of pieces, of 52 bytes each, which are not with their queues yet; of these one by one:
MOST_SLOW = 1 << 14


def end_of(phy_offset: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return phy_offset + size; the largest number if a damaged size leads beyond it."""
    end = phy_offset + size
    return np.where((end < phy_offset) & (size > 0), np.iinfo(np.int64).max, end)


class QueuePuts:
    """Dispatch into all queues at once, segment by segment.

    The values that a put asks of an ordinary queue are in arrays: while its runs follow one another they never touch its
    QueueState. Anything else (a file begins, numbers are out of line) goes through `QueueState.put_run`. `settle` brings all
    QueueStates up to date; nothing else may look at them before. A queue into which nothing is put has none.
    """

    def __init__(
        self,
        find_queue: Callable[[QueueKey], QueueState],
        needs: Needs,
        look_at: Callable[[QueueKey], QueueState] | None = None,
        many: Callable[[], bool] = lambda: False,
        close: Callable[[], None] = lambda: None,
        unmade: Container[QueueKey] = (),
    ):
        """Take the functions that give queues.

        find_queue: gives a queue, made if there is none.
        look_at: the same, of one that is not changed; None: as that.
        many: whether they are found in less time in the order of their keys.
        close: those that were given are not needed now.
        unmade: queues that no file can be made for.

        `stopped_by`: (physical offset, queue) of the first message of these, after which a broker writes no more entries.
        """
        self.find_queue, self.needs, self.look_at = find_queue, needs, look_at or find_queue
        self._many, self._close, self._unmade = many, close, unmade
        self.stopped_by: tuple[int, QueueKey] | None = None
        self.slots: dict[QueueKey, int] = {}
        self.keys: list[QueueKey] = []
        self.max_phy = np.zeros(0, np.int64)
        self.cursor = np.zeros(0, np.int64)  # byte of the queue at which the next entry goes; -1: ask the QueueState
        self.room = np.zeros(0, np.int64)  # entries
        self.file = np.zeros(0, np.int32)  # number of the file; -1: it has none yet
        self.file_start = np.zeros(0, np.int64)
        self.ahead = np.zeros(0, bool)  # of its QueueState
        self.unmade = np.zeros(0, bool)
        self._log: list[tuple[np.ndarray, np.ndarray]] = []  # (slots, rows of pieces)
        self._log_rows = 0
        self._slow: list[tuple[int, tuple[int, ...]]] = []  # the same one by one, after the log's end
        self._of_list: dict[int, tuple[object, np.ndarray]] = {}  # a segment's list of queues -> slots

    def put(self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray) -> None:
        """Put these runs of a segment, in their order."""
        rows = summary.runs[numbers]
        slots = self._slots_of(summary, rows["queue"])
        if self.stopped_by is not None:
            return
        if self.unmade[slots].any():
            kept = self._before_stop(scan, rows, slots)
            rows, slots, numbers = rows[kept], slots[kept], numbers[kept]
        order = np.argsort(slots, kind="stable")
        ordered = slots[order]
        first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        rank = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        by_rank = order[np.argsort(rank, kind="stable")]
        at = 0
        for size in np.bincount(rank).tolist():  # each queue's first run, then each one's second, ...
            part = by_rank[at : at + size]
            at += size
            if size >= FEW_ROWS:
                part = self._put_together(scan, scan_number, summary, numbers[part], rows[part], slots[part])
            else:
                part = np.stack([slots[part], numbers[part]], axis=1)
            for slot, number in part.tolist():
                self._put_one(scan, scan_number, summary, slot, number)
        if self._log_rows + len(self._slow) > MOST_ROWS:
            self.settle()
            self._close()

    def _before_stop(self, scan: ScanId, rows: np.ndarray, slots: np.ndarray) -> np.ndarray:
        """Say which of these runs get entries.

        A message whose own queue's file cannot be made is the last that a broker puts into a queue (makeLogicsQueueError); a
        multi-dispatch queue of this kind is left out alone.
        """
        unmade = self.unmade[slots]
        stops = unmade & (rows["kind"] != RUN_LMQ) & (end_of(rows["last_phy_offset"], rows["last_size"]) > self.max_phy[slots])
        if not stops.any():
            kept: np.ndarray = ~unmade
            return kept
        first = np.flatnonzero(stops)[np.argmin(rows["first_phy_offset"][stops])]
        at = int(rows["first_phy_offset"][first])
        self.stopped_by = at, self.keys[slots[first]]
        if (~unmade & (rows["first_phy_offset"] < at) & (rows["last_phy_offset"] >= at)).any():
            self.needs.phy_cuts[scan].add(at - 1)
        kept = ~unmade & (rows["last_phy_offset"] < at)
        return kept

    def _put_together(
        self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray, rows: np.ndarray, slots: np.ndarray
    ) -> np.ndarray:
        """Put what is in line of one run per queue; gives (slot, number) of the others."""
        last_end = end_of(rows["last_phy_offset"], rows["last_size"])
        wanted = last_end > self.max_phy[slots]
        plain = (self.cursor[slots] >= 0) & (last_end < FAR)
        inside = wanted & plain & (end_of(rows["first_phy_offset"], rows["first_size"]) <= self.max_phy[slots])
        for i in np.flatnonzero(inside).tolist():
            self.needs.queue_cuts[scan][self.keys[slots[i]]].add(int(self.max_phy[slots[i]]))
        offset = rows["queue_offset"]
        in_line = wanted & plain & ~inside & (offset >= 0) & (offset < FAR) & (rows["records"] <= self.room[slots])
        in_line &= offset * layout.ENTRY_BYTES == self.cursor[slots]
        if in_line.any():
            self._flush()
            at, put = slots[in_line], rows[in_line]
            for slot in self._in_order(at[self.file[at] < 0].tolist()):
                self.file[slot] = self.find_queue(self.keys[slot]).pieces.file_number(int(self.file_start[slot]))
            pieces = np.zeros(len(at), PIECE_DTYPE)
            pieces["file"], pieces["at"], pieces["count"] = self.file[at], self.cursor[at] - self.file_start[at], put["records"]
            pieces["first_phy"], pieces["last_phy"] = put["first_phy_offset"], put["last_phy_offset"]
            pieces["last_size"], pieces["scan"], pieces["run"], pieces["extra"] = (
                put["last_size"],
                scan_number,
                numbers[in_line],
                -1,
            )
            self._add(at.astype(np.int32), pieces)
            self.cursor[at] += put["records"] * layout.ENTRY_BYTES
            self.room[at] -= put["records"]
            self.max_phy[at] = last_end[in_line]
            self.ahead[at] = True
        others = wanted & ~inside & ~in_line
        return np.stack([slots[others], numbers[others]], axis=1)

    def _put_one(self, scan: ScanId, scan_number: int, summary: SegmentSummary, slot: int, number: int) -> None:
        state = self.find_queue(self.keys[slot])
        self._update(slot, state)
        try:
            state.put_run(scan, number, summary.runs[number])
        except NeedCut as cut:
            self.needs.queue_cuts[scan][state.key].add(cut.phy_offset)
        if not state.batch:
            self._slow += [(slot, row) for row in state.pieces.take_fresh()]
            self._read(slot, state)
            if len(self._slow) > MOST_SLOW:
                self._flush()

    def _slots_of(self, summary: SegmentSummary, queues: np.ndarray) -> np.ndarray:
        """Return the slot of each run's queue.

        Queues come into being in the order of their first run, very many in that of their keys.
        """
        kept = self._of_list.get(id(summary.queues))
        if kept is None:
            kept = self._of_list[id(summary.queues)] = (summary.queues, np.full(len(summary.queues), -1, np.int64))
        known = kept[1]
        met, first = np.unique(queues, return_index=True)
        fresh = [queue for queue in met[np.argsort(first)].tolist() if known[queue] < 0]
        if self._many() or len(fresh) > packed.FEW:
            fresh.sort(key=summary.queues.__getitem__)
        for queue in fresh:
            known[queue] = self._slot(summary.queues[queue])
        slots: np.ndarray = known[queues]
        return slots

    def _in_order(self, slots: list[int]) -> list[int]:
        """Yield these, in the order in which their queues are found in least time."""
        return sorted(slots, key=self.keys.__getitem__) if self._many() else slots

    def _slot(self, key: QueueKey) -> int:
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = len(self.keys)
            self.keys.append(key)
            if slot == len(self.max_phy):
                more = max(64, slot)
                for name in ("max_phy", "cursor", "room", "file", "file_start", "ahead", "unmade"):
                    column = getattr(self, name)
                    setattr(self, name, np.concatenate([column, np.zeros(more, column.dtype)]))
            self._read(slot, self.look_at(key))
            self.unmade[slot] = key in self._unmade
        return slot

    def _read(self, slot: int, state: QueueState) -> None:
        """Take over what the QueueState has."""
        last = state.files[-1] if state.files else None
        self.ahead[slot], self.cursor[slot], self.max_phy[slot] = False, -1, -FAR
        if state.batch or abs(state.max_phy) >= FAR:
            return
        self.max_phy[slot] = state.max_phy
        if last is None or last.full or last.start < 0 or last.start + last.wrote >= FAR:
            return
        self.cursor[slot] = last.start + last.wrote
        self.room[slot] = (last.size - last.wrote) // layout.ENTRY_BYTES
        self.file[slot], self.file_start[slot] = state.pieces.known_file(last.start), last.start

    def _update(self, slot: int, state: QueueState) -> None:
        """Bring the QueueState up to date, all but its pieces."""
        if self.ahead[slot]:
            state.max_phy = int(self.max_phy[slot])
            state.files[-1].wrote = int(self.cursor[slot]) - state.files[-1].start
            self.ahead[slot] = False

    def _flush(self) -> None:
        if self._slow:
            slots, rows = [slot for slot, _ in self._slow], [row for _, row in self._slow]
            self._slow = []
            self._add(np.array(slots, np.int32), np.array(rows, PIECE_DTYPE))

    def _add(self, slots: np.ndarray, pieces: np.ndarray) -> None:
        self._log.append((slots, pieces))
        self._log_rows += len(slots)

    def settle(self) -> None:
        """Bring all QueueStates up to date, and forget them: others may change them now."""
        self._flush()
        slots = np.concatenate([np.zeros(0, np.int32), *(part for part, _ in self._log)])
        rows = np.concatenate([np.zeros(0, PIECE_DTYPE), *(part for _, part in self._log)])
        self._log, self._log_rows = [], 0
        order = np.argsort(slots, kind="stable")
        slots, rows = slots[order], rows[order]
        changed = self._in_order(np.union1d(np.flatnonzero(self.ahead[: len(self.keys)]), slots).tolist())
        starts, ends = (np.searchsorted(slots, changed, side).tolist() for side in ("left", "right"))
        for slot, start, end in zip(changed, starts, ends, strict=True):
            state = self.find_queue(self.keys[slot])
            self._update(slot, state)
            if start < end:
                state.pieces.extend(rows[start:end])
        self.slots, self.keys, self._of_list = {}, [], {}
