"""The rows of one batch of messages by queue: a row for each queue that a message enters, light queues included."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from schemas.rows import RUN_LMQ, RUN_QUEUE, QueueKey
from store_io.broker.queues.multi_dispatch import MultiDispatch, multi_dispatch
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_columns import HAS_MULTI_DISPATCH
from store_io.log.records.segment_items import row_kinds
from store_io.log.records.segment_walk import Decoding, capacity_for
from store_io.source.segment_window import SegmentWindow


def part_of(window: SegmentWindow, row: np.void, name: str) -> bytes:
    """Return the bytes of one part ("body", "props", ...) of a message, as its row locates it."""
    start = int(row["position"]) + int(row[name + "_at"])
    return window.read(start, start + int(row[name + "_len"]))


class BatchItems:
    """Items of one batch after the other, by a release's rules.

    met: all flags of the last batch's messages, with those of `row_kinds`.
    faults, uneven: (message, sentence) of its messages with a light queue's offset that is no number, and of those that name more
    or fewer light queues than offsets.
    """

    def __init__(self, rules: BrokerRules, decoding: Decoding, batch_topics: Collection[str]):
        self._rules, self._batch_topics = rules, batch_topics
        self._window, self._columns, self._topics = decoding.window, decoding.columns, decoding.topics
        self._batch_refs = np.zeros(0, bool)
        self._kinds = np.zeros(capacity_for(len(decoding.window.buffer)), np.uint8)
        self.met = 0
        self.faults: list[tuple[np.void, str]] = []
        self.uneven: list[tuple[np.void, str]] = []

    def read(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (rows, kinds) of the first `count` messages of the columns, in dispatch order.

        Each light queue that a message names has a row of its own. The arrays are good until the next batch.
        """
        rows, kinds = self._columns.rows, self._kinds
        self._know_queues()
        self.met = row_kinds(self._columns.row_bytes, count, self._batch_refs, kinds)
        self.faults, self.uneven = [], []
        if not self.met & HAS_MULTI_DISPATCH:
            return rows[:count], kinds[:count]
        of_rows: list[int] = []
        refs: list[int] = []
        offsets: list[int] = []
        for i in np.flatnonzero(rows["flags"][:count] & HAS_MULTI_DISPATCH).tolist():
            if kinds[i] != RUN_QUEUE:
                continue
            for key, queue_offset in self._light_entries(rows[i]):
                of_rows.append(i)
                refs.append(self._topics.number_of(*key))
                offsets.append(queue_offset)
        if not of_rows:
            return rows[:count], kinds[:count]
        self._know_queues()
        extra = rows[of_rows]
        extra["topic_ref"], extra["queue_offset"] = refs, offsets
        after = np.array(of_rows) + 1
        return np.insert(rows[:count], after, extra), np.insert(kinds[:count], after, RUN_LMQ)

    def entered(self, rules: BrokerRules, row: np.void) -> MultiDispatch:
        """Return the light queues that a message enters by these rules."""
        return multi_dispatch(rules, self._topics.keys[row["topic_ref"]], part_of(self._window, row, "props"))

    def _know_queues(self) -> None:
        keys = self._topics.keys
        if len(keys) > len(self._batch_refs):
            self._batch_refs = np.array([topic in self._batch_topics for topic, _ in keys], bool)

    def _light_entries(self, row: np.void) -> list[tuple[QueueKey, int]]:
        """Return the light queues that a message enters, with its offsets there."""
        found = self.entered(self._rules, row)
        if found.uneven is not None:
            names, offsets = found.uneven
            self.uneven.append((row, f"{names} multi-dispatch queues and {offsets} offsets: a broker skips them"))
        if found.fault is not None:
            self.faults.append((row, found.fault))
        return found.entries
