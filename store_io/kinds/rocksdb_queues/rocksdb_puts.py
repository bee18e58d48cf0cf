"""Runs of segments -> entries of all queues in RocksDB, in the order of dispatch: each lands at its own key (rocksdb.md 3).

Source: RocksDBConsumeQueueStore.putMessagePosition, dispatch and dispatchLMQ, read at 5.3.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schemas.rows import QueueKey, SegmentSummary
from store_io.broker.prediction import ScanId
from store_io.broker.queues.queue_puts import end_of
from store_io.broker.queues.rocksdb_queue_state import PUT_DTYPE, RocksQueue


class RocksPuts:
    """Collects what is put; `settle` gives it to the queues.

    count: records so far.
    mark: the end of the last ones put.
    """

    def __init__(self, find_queue: Callable[[QueueKey], RocksQueue]):
        """find_queue: gives a queue, made if there is none."""
        self._find_queue = find_queue
        self._slots: dict[QueueKey, int] = {}
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []  # (slots, rows)
        self.count = self.mark = 0

    def put(self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray) -> None:
        """Put these runs of a segment, in their order."""
        runs = summary.runs[numbers]
        met = np.unique(runs["queue"])
        slots = np.zeros(len(summary.queues), np.int64)
        for queue in met.tolist():
            slots[queue] = self._slots.setdefault(summary.queues[queue], len(self._slots))
        rows = np.zeros(len(runs), PUT_DTYPE)
        rows["first"], rows["count"] = runs["queue_offset"], runs["records"]
        rows["first_phy"], rows["last_phy"], rows["scan"] = runs["first_phy_offset"], runs["last_phy_offset"], scan_number
        self._parts.append((slots[runs["queue"]], rows))
        self.count += int(runs["records"].sum())
        self.mark = int(end_of(runs["last_phy_offset"], runs["last_size"]).max())

    def settle(self) -> set[QueueKey]:
        """Give everything to its queue; the queues that got something."""
        if not self._parts:
            return set()
        slots = np.concatenate([part for part, _ in self._parts])
        rows = np.concatenate([part for _, part in self._parts])
        order = np.argsort(slots, kind="stable")
        slots, rows = slots[order], rows[order]
        edges = np.searchsorted(slots, np.arange(len(self._slots) + 1)).tolist()
        for key, slot in self._slots.items():
            self._find_queue(key).add(rows[edges[slot] : edges[slot + 1]])
        keys = set(self._slots)
        self._slots, self._parts = {}, []
        return keys
