"""Messages of delay levels, as an audit asks for them if it is to say what a started broker delivers by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from schemas.rows import QueueKey
from store_io.base.ranges import Ranges, union
from store_io.base.tasks import Task
from store_io.broker.prediction import BrokerQueue
from store_io.broker.queues.queue_state import QueueState
from store_io.broker.releases import BrokerRules
from store_io.kinds.config.config_kind import CONFIG
from store_io.kinds.delays.delay_runs import NO_RUNS, DelayCollector, DelayEntries, DelayEntriesTask
from store_io.log.entries.queue_store import QueuePaths
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind
from store_io.model.opened_copy import OpenedCopy

MOST_RUNS = 1_000_000  # of a store, by 25 bytes; of messages and of entries
LEAST_RUNS = 4096  # of a segment
MOST_ENTRIES = 20_000_000  # that are read; a damaged end of a queue may claim any number
Wanted = tuple[tuple[int, int, int], ...]  # (queue id, first number, end)


@dataclass(frozen=True)
class LevelQueue:
    """The queue of a delay level when a start has dispatched all.

    first: the offset from which on the level is read.
    put_in_load, put: entries that load(), and the whole start, put themselves.
    """

    level: int
    first: int
    end: int
    put_in_load: Ranges = field(default_factory=list)
    put: Ranges = field(default_factory=list)


@dataclass(frozen=True)
class Delays:
    """The queues of delay levels after a start.

    messages: of the log. entries: as they are stored. Both are DELAY_RUN by queue and number.
    """

    levels: tuple[LevelQueue, ...] = ()
    messages: np.ndarray = field(default_factory=lambda: NO_RUNS)
    entries: np.ndarray = field(default_factory=lambda: NO_RUNS)


class DelayLevels(Kind[None, DelayEntries, Delays | None]):
    """Messages of delay levels."""

    name = "delays"
    task_types = (DelayEntriesTask,)
    looks_again = (DelayEntriesTask,)
    nothing_found = DelayEntries

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan collect delayed messages that no delivery has passed."""
        if request.start is None:
            return task
        since = tuple((level - 1, offset) for level, offset in sorted(copy.delay_offsets.items()))
        return replace(task, delays=DelayCollector(since, max(LEAST_RUNS, MOST_RUNS // max(1, len(copy.segment_files)))))

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterator[Task]:
        """Yield a task for the stored entries that a start leaves and that are still to be read."""
        wanted = _wanted(self._levels(evidence))
        if not 0 < _count(wanted) <= MOST_ENTRIES:
            return
        files = {key: own for key, own in ((key, base.queue_files.get(key)) for key in _keys(wanted)) if own}
        stored = frozenset(key for key in _keys(wanted) if key in base.stored_queues)
        queues = QueuePaths(files, {}, {}, base.database if stored else None, stored)
        request = evidence.request
        yield DelayEntriesTask(request.store, request.location, evidence.copy.rules, queues, wanted, MOST_RUNS, request.not_after)

    def take(self, found: DelayEntries, result: DelayEntries) -> None:
        found.runs, found.bytes_read, found.problem = result.runs, result.bytes_read, result.problem

    def not_read(self, found: DelayEntries, task: Task) -> None:
        found.runs = None

    def view(self, evidence: Evidence) -> Delays | None:
        """Return the queues of the levels; None if they are not known."""
        entries = evidence.results(self)
        messages = [segment.delayed for segment in evidence.segments]
        levels = tuple(self._levels(evidence))
        many = _count(_wanted(levels)) > MOST_ENTRIES
        if not self._asked(evidence) or many or entries.runs is None or entries.problem:
            return None
        held = [runs for runs in messages if runs is not None]
        if len(held) < len(messages):
            return None
        runs = np.concatenate([NO_RUNS, *held])
        order = np.lexsort((runs["first"], runs["queue"]))
        return Delays(levels, runs[order], entries.runs)

    def _asked(self, evidence: Evidence) -> bool:
        prediction = evidence.prediction
        if evidence.request.start is None or not evidence.all_read or prediction is None or not prediction.starts:
            return False
        return prediction.after_load is not None and prediction.after_dispatch is not None

    def _levels(self, evidence: Evidence) -> Iterator[LevelQueue]:
        """Yield each level that the release reads and that has a queue."""
        prediction = evidence.prediction
        if not self._asked(evidence) or prediction is None or prediction.after_load is None or prediction.after_dispatch is None:
            return
        offsets, loaded = evidence[CONFIG].delay_offsets, prediction.after_load.queues
        for level in sorted(evidence.copy.rules.delays):
            key = SCHEDULE_TOPIC, level - 1
            queue = prediction.after_dispatch.queues.get(key)
            if queue is not None:
                asked, before = max(0, offsets.get(level, 0)), loaded.get(key)
                first = asked if stops_at_gaps(evidence.copy.rules) else max(asked, queue.min_offset)
                in_load = put_entries(before) if before is not None else []
                yield LevelQueue(level, first, queue.max_offset, in_load, put_entries(queue))


def stops_at_gaps(rules: BrokerRules) -> bool:
    """Say whether a level gets no further than an offset without an entry. Source: RocksDBConsumeQueue.iterateFrom."""
    return rules.rocksdb_queues and rules.at_least("5.3.3") and not rules.at_least("5.5.1")


def put_entries(queue: BrokerQueue) -> Ranges:
    """Return the numbers of the entries that a start puts into the queue."""
    if isinstance(queue, QueueState):
        rows, starts = queue.pieces.rows, np.array(queue.pieces.starts, np.int64)
        firsts = (starts[rows["file"]] + rows["at"]) // queue.unit if len(rows) else rows["at"]
    else:
        rows = queue.puts
        firsts = rows["first"]
    return union(zip(firsts.tolist(), (firsts + rows["count"]).tolist(), strict=True))


def _wanted(levels: Iterable[LevelQueue]) -> Wanted:
    return tuple((queue.level - 1, queue.first, queue.end) for queue in levels if queue.first < queue.end)


def _count(wanted: Wanted) -> int:
    return sum(end - first for _, first, end in wanted)


def _keys(wanted: Wanted) -> list[QueueKey]:
    return [(SCHEDULE_TOPIC, queue) for queue, _, _ in wanted]


DELAYS = DelayLevels()
