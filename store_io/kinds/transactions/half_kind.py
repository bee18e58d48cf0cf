"""Half messages, as an audit asks for them: those that a started broker's first check looks at.

A check begins at the offsets of CID_RMQ_SYS_TRANS. These are mostly near the ends of their queues: one or two segments are read
again. Half messages in RocksDB are `kinds.rocksdb_tables`'.
Source: TransactionalMessageBridge.fetchConsumeOffset, DefaultMessageStore.getMessage, 4.6.1 to 5.5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.rows import RUN_QUEUE, MappedFile, QueueKey
from store_io.base.errors import StoreError
from store_io.base.ranges import subtract, union
from store_io.base.tasks import Task
from store_io.kinds.transactions.half_rows import HALVES, OPERATIONS, HalfRows, HalfStretch, HalfTask
from store_io.log.entries.queue_store import QueuePaths, is_used, open_queue_store
from store_io.log.scan.segment_scan import SegmentTask, part_scan
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind
from store_io.model.queue_runs import QueueRuns

CHECKING_GROUP = "CID_RMQ_SYS_TRANS"
MOST_ROWS = 400_000  # of each queue that the driver holds
Bounds = tuple[int, int]


@dataclass(frozen=True)
class HalfQueues:
    """What the first check finds, in the order of the queues.

    half_from, operations_from: the stored offsets at which it begins; their queue's minimum without one.
    operations_bounds: [minimum, maximum) of the operations' queue after the start.
    rows: with equal queue offsets once; operation messages that decide none have a row, too.
    """

    half_from: int
    operations_from: int
    operations_bounds: Bounds
    rows: HalfRows


@dataclass
class HalfResults:
    """The results of the tasks, and of how many."""

    rows: HalfRows = field(default_factory=HalfRows)
    read: int = 0


class HalfKind(Kind[None, HalfResults, "HalfQueues | None"]):
    """Half messages whose transactions lie in files. The view is None if not all of them are known."""

    name = "transactions"
    task_types = (HalfTask,)
    nothing_found = HalfResults

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterable[Task]:
        """Return a task for each segment with messages that the check looks at, if these can be held."""
        asked = _stretch(evidence)
        if asked is None or asked.empty or evidence.request.start is None:
            return []
        found = _segments(evidence, asked, base) or []
        late = evidence.request.not_after
        return [HalfTask(part_scan(base, f.path, f.start, f.size), asked, MOST_ROWS, len(found), late) for f in found]

    def take(self, found: HalfResults, result: HalfRows) -> None:
        found.rows = found.rows + result
        found.read += 1

    def view(self, evidence: Evidence) -> HalfQueues | None:
        asked, results = _stretch(evidence), evidence.results(self)
        if asked is None or not asked.empty and (not results.read or results.read < results.rows.parts):
            return None
        if results.rows.dropped or results.rows.problem:
            return None
        halves, operations = results.rows.halves, results.rows.operations
        halves = halves[np.unique(halves["queue_offset"], return_index=True)[1]]
        operations = operations[np.argsort(operations["queue_offset"], kind="stable")]
        return HalfQueues(
            _start(evidence, HALVES),
            _start(evidence, OPERATIONS),
            _bounds(evidence, OPERATIONS),
            HalfRows(halves, operations),
        )


TRANSACTIONS = HalfKind()


def _stretch(evidence: Evidence) -> HalfStretch | None:
    """Return what the first check reads after a start; None if that is not known."""
    prediction, rules = evidence.prediction, evidence.copy.rules
    if prediction is None or not prediction.starts or prediction.settled is None or rules.value("transRocksDBEnable"):
        return None
    wanted = []
    for key in (HALVES, OPERATIONS):
        start, (low, high) = _start(evidence, key), _bounds(evidence, key)
        if start > high and not rules.at_least("5.0.0"):  # some releases of 4.x then begin at 0 again
            return None
        wanted.append((min(max(start, low), high), high))
    return HalfStretch(wanted[0], wanted[1], prediction.end, rules.at_least("5.1.0"))


def _start(evidence: Evidence, key: QueueKey) -> int:
    stored = evidence.copy.offsets.get((CHECKING_GROUP, *key), -1)
    return _bounds(evidence, key)[0] if stored == -1 else stored


def _bounds(evidence: Evidence, key: QueueKey) -> Bounds:
    settled = evidence.prediction.settled if evidence.prediction is not None else None
    queue = settled.queues.get(key) if settled is not None else None
    return (queue.min_offset, queue.max_offset) if queue is not None else (0, 0)


def _segments(evidence: Evidence, asked: HalfStretch, base: SegmentTask) -> Sequence[MappedFile] | None:
    """Return the segments with these messages; None if they are too many, or nobody knows where they are."""
    wanted: set[MappedFile] = set()
    for key, (low, high) in ((HALVES, asked.halves), (OPERATIONS, asked.operations)):
        if low >= high:
            continue
        if high - low > MOST_ROWS:
            return None
        runs = evidence.views[key].runs if key in evidence.views else QueueRuns()
        rows, numbers = runs.rows, runs.segments
        own = (rows["kind"] == RUN_QUEUE) & (rows["queue_offset"] < high) & (rows["queue_offset"] + rows["records"] > low)
        held = union((int(row["queue_offset"]), int(row["queue_offset"] + row["records"])) for row in rows[own])
        if evidence.all_read or not subtract([(low, high)], held):
            found = (evidence.segments[number] for number in set(numbers[own].tolist()))
            wanted.update(MappedFile(s.path, s.base_offset, s.size) for s in found)
            continue
        first = _phy_offset(evidence, base, key, low) if not evidence.request.quick else None
        if first is None:
            return None
        wanted.update(file for file in evidence.copy.segment_files if file.start + file.size > first)
    return sorted(wanted, key=lambda file: file.start)


def _phy_offset(evidence: Evidence, base: SegmentTask, key: QueueKey, number: int) -> int | None:
    """Return where the message of an entry begins, by the queue; None if there is no such entry."""
    stored = base.stored_queues & {key}
    paths = QueuePaths({key: base.queue_files.get(key, ())}, {}, {}, base.database if stored else None, stored)
    store = open_queue_store(evidence.copy.rules, evidence.copy.source, paths)
    try:
        row = store.entries(key).read(number, 1)[0]
    except StoreError:
        return None
    finally:
        store.close()
    return int(row["phy_offset"]) if is_used(row) else None
