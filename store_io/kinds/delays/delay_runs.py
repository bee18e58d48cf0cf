"""Delayed messages of the log, and entries of their queues, as runs: consecutive numbers that fall due in one second.

Source: ScheduleMessageService.executeOnTimeup (4.6.1 to 5.5.1), which asks an entry for its time and the record for its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.advice import Gap
from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from schemas.rows import Extent, QueueKey, SegmentSummary
from store_io.base.errors import StoreError
from store_io.broker.releases import BrokerRules
from store_io.log.entries.queue_store import QueuePaths, QueueStore, is_used, open_queue_store
from store_io.log.records.message_columns import Columns
from store_io.log.scan.followers import FollowedScan
from store_io.source.byte_source import StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

SECOND_MS = 1000  # a broker looks a second after its start: finer differences of time do not count
FETCHED = 1 << 16  # entries read at once
HAS_BODY, NO_BODY, ELSEWHERE = 0, 1, 2  # a record with a body; without one; an entry whose time is in an ext file

DELAY_RUN = np.dtype([("queue", "i4"), ("first", "i8"), ("count", "i8"), ("due", "i8"), ("what", "u1")])
"""Consecutive numbers of one queue: the first, how many, when they fall due (ms, a whole second), what they are (above)."""
NO_RUNS = np.zeros(0, DELAY_RUN)


def runs_of(queue: np.ndarray, number: np.ndarray, due: np.ndarray, what: np.ndarray) -> np.ndarray:
    """Return messages or entries as runs. Of several with one number the last counts."""
    order = np.lexsort((number, queue))
    queue, number, due, what = queue[order], number[order], due[order] // SECOND_MS * SECOND_MS, what[order]
    last = np.ones(len(order), bool)
    last[:-1] = (queue[1:] != queue[:-1]) | (number[1:] != number[:-1])
    queue, number, due, what = queue[last], number[last], due[last], what[last]
    begins = np.ones(len(queue), bool)
    begins[1:] = (queue[1:] != queue[:-1]) | (number[1:] != number[:-1] + 1) | (due[1:] != due[:-1]) | (what[1:] != what[:-1])
    at = np.flatnonzero(begins)
    runs = np.zeros(len(at), DELAY_RUN)
    runs["queue"], runs["first"], runs["due"], runs["what"] = queue[at], number[at], due[at], what[at]
    runs["count"] = np.diff(np.append(at, len(queue)))
    return runs


class _Runs:
    """Keeps at most so many runs; says whether there were more."""

    def __init__(self, most: int):
        self._most, self._count, self._kept, self.dropped = most, 0, [NO_RUNS], False

    def add(self, runs: np.ndarray) -> None:
        self._count += len(runs)
        self.dropped = self.dropped or self._count > self._most
        if not self.dropped:
            self._kept.append(runs)

    def all(self) -> np.ndarray:
        return np.concatenate(self._kept)


class DelayRecords:
    """Collects the delayed messages of a segment from an offset on in each queue."""

    def __init__(self, since: Mapping[int, int], most: int):
        self._since, self._runs = since, _Runs(most)
        self._queues = np.zeros(0, np.int32)  # by topic_ref: the queue's id, -1 of any other topic
        self._from = np.zeros(0, np.int64)
        self._meets_any = False

    def add(self, columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> None:
        """Take the messages of one batch."""
        if len(keys) > len(self._queues):
            self._know(keys[len(self._queues) :])
        if not self._meets_any:
            return
        rows = columns.rows[: columns.count]
        queue = self._queues[rows["topic_ref"]]
        rows, queue = rows[queue >= 0], queue[queue >= 0]
        waits = rows["queue_offset"] >= self._from[rows["topic_ref"]]
        rows, queue = rows[waits], queue[waits]
        if len(rows):
            what = np.where(rows["body_len"] > 0, HAS_BODY, NO_BODY).astype(np.uint8)
            self._runs.add(runs_of(queue, rows["queue_offset"], rows["tags_code"], what))

    def _know(self, fresh: Sequence[QueueKey]) -> None:
        """Remember what further queues are: there may be a million of them."""
        queues = [queue if topic == SCHEDULE_TOPIC else -1 for topic, queue in fresh]
        self._meets_any = self._meets_any or max(queues) >= 0
        self._queues = np.append(self._queues, np.array(queues, np.int32))
        self._from = np.append(self._from, np.array([self._since.get(queue, 0) for queue in queues], np.int64))

    def finish(self, extents: Sequence[Extent], summary: SegmentSummary) -> None:
        summary.delayed = self.found()

    def found(self) -> np.ndarray | None:
        """Return what was found so far; None if it is too much."""
        return None if self._runs.dropped else self._runs.all()

    def close(self) -> None:
        """Do nothing: nothing is open."""


@dataclass(frozen=True)
class DelayCollector:
    """Collects delayed messages of all segments, of each at most so many runs. since: by queue, the first offset wanted."""

    since: tuple[tuple[int, int], ...]
    most: int

    def follow(self, scan: FollowedScan) -> DelayRecords:
        return DelayRecords(dict(self.since), self.most)


@dataclass
class DelayEntries:
    """The stored entries that were asked for; runs is None if there are too many."""

    runs: np.ndarray | None = field(default_factory=lambda: NO_RUNS)
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class DelayEntriesTask:
    """Reads the entries of delay levels. wanted: (queue id, first number, end)."""

    store: int
    location: StoreLocation
    rules: BrokerRules
    queues: QueuePaths
    wanted: tuple[tuple[int, int, int], ...]
    most: int
    not_after: float = 0

    @property
    def bytes_to_read(self) -> int:
        return sum(end - first for _, first, end in self.wanted) * layout.ENTRY_BYTES

    @property
    def paths(self) -> tuple[str, ...]:
        files = tuple(file.path for own in self.queues.queues.values() for file in own)
        return (*files, *(self.queues.database.paths if self.queues.database is not None else ()))

    def run(self) -> DelayEntries:
        store = open_queue_store(self.rules, open_source(self.location), self.queues)
        kept = _Runs(self.most)
        try:
            for runs in self._runs(store):
                kept.add(runs)
        except StoreError as why:
            return DelayEntries(problem=why.gap())
        finally:
            store.close()
        return DelayEntries(None if kept.dropped else kept.all(), self.bytes_to_read)

    def _runs(self, store: QueueStore) -> Iterator[np.ndarray]:
        for queue, first, end in self.wanted:
            key = SCHEDULE_TOPIC, queue
            if not store.has(key):
                continue
            entries = store.entries(key)
            for at in range(first, end, FETCHED):
                rows = entries.read(at, min(FETCHED, end - at))
                used = np.flatnonzero(is_used(rows))
                tags = rows["tags_code"][used].astype(np.int64)
                what = np.where(tags <= layout.EXT_ADDRESS_MAX, ELSEWHERE, HAS_BODY).astype(np.uint8)
                yield runs_of(np.full(len(used), queue, np.int32), at + used, tags, what)
