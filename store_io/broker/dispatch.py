"""Dispatches a walk's runs: into entries of ConsumeQueues and of the index, in the log's order (recovery.md 7.3, 8.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from schemas.rows import RUN_LMQ, RUN_UNQUEUED, WALK_BROKER, Checkpoint, QueueKey, SegmentSummary
from store_io.broker.index_state import IndexState, NeedMarks
from store_io.broker.loading import queue_folder, why_not_made
from store_io.broker.prediction import Needs, Refused, ScanId
from store_io.broker.queues.file_queues import FileQueues
from store_io.broker.queues.queue_pieces import Pieces
from store_io.broker.queues.queue_puts import QueuePuts, end_of
from store_io.broker.queues.queue_state import DiskEntries, QueueState
from store_io.broker.releases import BrokerRules

# (first and last phy_offset, first and last end) of runs -> (which are dispatched, for which the decision falls inside).
Filter = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Choice:
    """The choice of runs of a walk that are dispatched.

    threshold: the place at which to cut a run inside of which the decision falls.
    """

    accepts: Filter
    threshold: int

    def takes(self, phy_offset: int) -> bool:
        """Say whether a message there is dispatched, if that is known."""
        at = np.array([phy_offset], np.int64)
        return bool(self.accepts(at, at, at + 1, at + 1)[0][0])


def _everything(
    first: np.ndarray, last: np.ndarray, first_end: np.ndarray, last_end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(len(first), bool), np.zeros(len(first), bool)


EVERYTHING = Choice(_everything, 0)


def recovery_choice(rules: BrokerRules, checkpoint: Checkpoint, unclean: bool, m: int) -> Choice | None:
    """Return the choice of messages that recovery dispatches; None: nothing (recovery.md 4, 5).

    m: the largest physical offset that any queue reaches.
    """
    if not unclean:
        if not rules.dispatches_after_clean_exit:
            return None

        return Choice(lambda first, last, first_end, last_end: (first > m, (first <= m) & (last > m)), m)
    if not rules.value("duplicationEnable") and not rules.controlled:
        return EVERYTHING
    if not rules.keeps_confirm_offset:
        # confirmOffset is -1 in a process that has just started: below it lies only what stores a nonsensical offset.
        return Choice(lambda first, last, first_end, last_end: (first < -1, np.zeros(len(first), bool)), -1)

    confirmed = checkpoint.confirm_phy_offset

    def below(first: np.ndarray, last: np.ndarray, first_end: np.ndarray, last_end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return last_end <= confirmed, (last_end > confirmed) & (first_end <= confirmed)

    return Choice(below, confirmed)


def _bad_light_offset(summary: SegmentSummary, phy_offset: int, text: str) -> Refusal:
    return Refusal(RefusalKind.LIGHT_OFFSET, summary.path, actual=text, phy_offset=phy_offset)


class Puts(Protocol):
    """Takes the runs that dispatch puts into queues."""

    def put(self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray) -> None:
        """Put these runs of a segment, in their order."""

    def settle(self) -> object:
        """Bring the queues up to date: before, nothing else may look at them."""


class Dispatch:
    """The queues and index files that dispatch fills. Cuts and marks that it lacks are put into `needs`."""

    def __init__(
        self, rules: BrokerRules, batch_topics: frozenset[str], disk: DiskEntries, needs: Needs, puts: Puts | None = None
    ):
        """puts: what takes the entries; None: queues in files."""
        self.rules, self.batch_topics, self.disk, self.needs = rules, batch_topics, disk, needs
        self.scan_ids: list[object] = []  # of the pieces' scan numbers
        self.queues = FileQueues(rules, disk, self.scan_ids)
        self.index = IndexState(rules)
        self.unmade: set[QueueKey] = set()  # queues whose folder the broker fails to make
        self._in_files = QueuePuts(
            self.find_queue, needs, self.look_at_queue, self.queues.are_many, self.queues.close, self.unmade
        )
        self.puts: Puts = self._in_files if puts is None else puts
        self.undecided: Gap | None = None  # why nobody can say what the broker does
        self._scan_numbers: dict[ScanId, int] = {}

    def find_queue(self, key: QueueKey) -> QueueState:
        """Return the queue, to be changed before another one is asked for; made if there is none."""
        return self.queues.find(key) or self._made(key)

    def look_at_queue(self, key: QueueKey) -> QueueState:
        """Return the queue, to be looked at and not kept; made if there is none."""
        return self.queues.look(key) or self._made(key)

    def _made(self, key: QueueKey) -> QueueState:
        batch = key[0] in self.batch_topics
        queue = QueueState(key, batch, queue_folder(batch, key), self.rules, self.disk, pieces=Pieces(self.scan_ids))
        if batch:
            queue.revise()
        if why_not_made(key[0], self.rules):
            self.unmade.add(key)
        self.queues.add(queue)
        return queue

    def stopped(self) -> str:
        """Say why the broker puts no more entries into queues in files; "" if nothing keeps it from that."""
        if self._in_files.stopped_by is None:
            return ""
        at, (topic, _) = self._in_files.stopped_by
        return (
            f"no file can be made for the queue of the message at physical offset {at:,}, as"
            f" {why_not_made(topic, self.rules)}; from there on the broker"
            " puts nothing into queues, and it refuses new messages"
        )

    def put(self, scan: ScanId, summary: SegmentSummary, choice: Choice) -> None:
        """Put a segment's runs into queues and index, in scan order. Raises Refused at a message whose LMQ offset is no number,
        when it is in its own queue and before it is indexed."""
        faults = summary.lmq_faults if self.rules.multi_dispatch else []
        fault = next((f for f in faults if choice.takes(f[0])), None)
        if fault and not self.rules.lmq_in_files:  # a thread of its own fails over it (rocksdb.md 5)
            perhaps = _bad_light_offset(summary, *fault)
            self.undecided = Gap(Cause.ROCKSDB_BAD_OFFSET, summary.path, refusal=perhaps)
            fault = None
        end = fault[0] if fault else 1 << 62  # what lies beyond is not reached
        rows = summary.runs
        if len(rows):
            reached = (rows["walk"] & WALK_BROKER != 0) & (rows["kind"] != RUN_UNQUEUED) & (rows["first_phy_offset"] <= end)
            if not self.rules.multi_dispatch:
                reached &= rows["kind"] != RUN_LMQ
            chosen = self._chosen(scan, rows, np.flatnonzero(reached & (rows["last_phy_offset"] <= end)), choice)
            if (reached & (rows["last_phy_offset"] > end)).any():
                self.needs.phy_cuts[scan].add(end)
            if len(chosen):
                self.puts.put(scan, self._scan_number(scan), summary, chosen)
        if self.rules.builds_index:
            self._dispatch_index(scan, summary, choice, end)
        if fault is not None:
            self.puts.settle()
            raise Refused(_bad_light_offset(summary, *fault))

    def _chosen(self, scan: ScanId, rows: np.ndarray, numbers: np.ndarray, choice: Choice) -> np.ndarray:
        """Return which of these runs (or index runs) are dispatched. A cut is asked for if the decision falls inside one."""
        yes, inside = choice.accepts(*_ends(rows[numbers]))
        if inside.any():
            self.needs.phy_cuts[scan].add(choice.threshold)
        return numbers[yes]

    def _scan_number(self, scan: ScanId) -> int:
        if scan not in self._scan_numbers:
            self._scan_numbers[scan] = len(self.scan_ids)
            self.scan_ids.append(scan)
        return self._scan_numbers[scan]

    def _dispatch_index(self, scan: ScanId, summary: SegmentSummary, choice: Choice, end: int) -> None:
        rows = summary.index_runs
        reached = (rows["walk"] & WALK_BROKER != 0) & (rows["records"] != 0) & (rows["first_phy_offset"] < end)
        if (reached & (rows["last_phy_offset"] >= end)).any():
            self.needs.phy_cuts[scan].add(end)
        whole = np.flatnonzero(reached & (rows["last_phy_offset"] < end))
        for number in self._chosen(scan, rows, whole, choice).tolist():
            run = rows[number]
            least = self.index.threshold()
            if int(run["last_phy_offset"]) < least:
                continue
            if int(run["first_phy_offset"]) < least:
                self.needs.phy_cuts[scan].add(least)
                continue
            try:
                self.index.put_run(scan, number, run, summary.index_marks)
            except NeedMarks as needed:
                if not self.needs.phy_cuts.get(scan) and not self.needs.queue_cuts.get(scan):
                    self.needs.marks[scan].update((number, k) for k in needed.marks)

    def cut_pieces(self, queue: QueueState, phy_offset: int) -> None:
        """Ask for a cut at this physical offset of the runs of the queue that it lies in."""
        for number in np.flatnonzero(
            (queue.pieces.rows["first_phy"] <= phy_offset) & (phy_offset <= queue.pieces.rows["last_phy"])
        ).tolist():
            piece = queue.pieces.piece(number)
            if isinstance(piece.scan, ScanId) and piece.first_phy <= phy_offset <= piece.last_phy:
                self.needs.queue_cuts[piece.scan][queue.key].add(phy_offset)


def _ends(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (first, last, first end, last end) of each run or index run.

    They are the begin and end of its first and last record.
    """
    first, last = rows["first_phy_offset"], rows["last_phy_offset"]
    if "last_end" in (rows.dtype.names or ()):
        return first, last, rows["first_end"], rows["last_end"]
    return first, last, end_of(first, rows["first_size"]), end_of(last, rows["last_size"])
