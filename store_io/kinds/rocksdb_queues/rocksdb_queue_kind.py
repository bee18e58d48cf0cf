"""ConsumeQueues in RocksDB, as an audit asks for them: by ranges of keys, and held against the same queues in files."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace

from schemas.advice import Advice, LeftOut, Step
from schemas.rows import Finding, QueueKey, QueueSummary
from store_io.base.packed import keys_of
from store_io.base.tasks import Task
from store_io.broker.queues.combination import combination, light_twice
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.kinds.queues.queue_kind import QUEUE_GROUP_COUNT, QUEUES
from store_io.kinds.rocksdb_queues.double_write_compare import TwinGap, TwinQueue, TwinResult, TwinTask, least_offset
from store_io.kinds.rocksdb_queues.queue_keys import queue_prefix
from store_io.kinds.rocksdb_queues.queue_pass import KeyRangeResult, KeyRangeTask
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind
from store_io.model.opened_copy import OpenedCopy

RANGE_ENTRIES = 1_000_000  # of a database, in one task


@dataclass
class RocksQueueResults:
    """Holds what was read of queues in RocksDB.

    problems: how many of them could not be read.
    findings: on the database.
    twin_gaps: where the two kinds of queues that are written twice differ.
    twin_from: the least physical offset to which an entry in RocksDB leads there; -1: none.
    """

    summaries: dict[QueueKey, QueueSummary] = field(default_factory=dict)
    problems: int = 0
    findings: list[Finding] = field(default_factory=list)
    twin_gaps: list[TwinGap] = field(default_factory=list)
    twin_from: int = -1


class RocksQueues(Kind[None, RocksQueueResults, RocksQueueResults]):
    """ConsumeQueues in RocksDB, alone or beside the same queues in files."""

    name = "rocksdb_queues"
    task_types = (KeyRangeTask, TwinTask)
    left_out = ((TwinTask, LeftOut.DOUBLE_WRITE),)
    looks_again = (TwinTask,)

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        beside = _beside_double_write(copy)
        return Advice(Step.NO_DOUBLE_WRITE_REPAIR, (beside,)) if beside else None

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan look up each message's entries in RocksDB, if consumers are served from there."""
        table = copy.light_table or copy.queue_table
        if table is None:
            return task
        stored = table.queues
        if copy.light_table is not None:
            stored = frozenset(key for key in stored if key[0].startswith(LMQ_PREFIX))
        return replace(task, database=table.database, stored_queues=stored)

    def nothing_found(self) -> RocksQueueResults:
        return RocksQueueResults()

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        """Yield tasks that together read every entry of the database, each about as many.

        Recovery needs none of them, and so does the quick level.
        """
        table = copy.database_table
        if table is None or request.quick or table.unread or not table.opened:
            return
        maxima = table.ends.maxima
        groups: list[list[tuple[bytes, QueueKey]]] = [[]]
        sizes = [0]
        for prefix, key in sorted((queue_prefix(key), key) for key in maxima):
            least = table.ends.minima.get(key)
            count = max(1, maxima[key].queue_offset + 1 - (least.queue_offset if least is not None else 0))
            if groups[-1] and sizes[-1] + count > RANGE_ENTRIES:
                groups.append([])
                sizes.append(0)
            groups[-1].append((prefix, key))
            sizes[-1] += count
        firsts = [group[0][0] if number else b"" for number, group in enumerate(groups)]
        for group, size, first, end in zip(groups, sizes, firsts, [*firsts[1:], None], strict=True):
            yield KeyRangeTask(
                request.store,
                request.location,
                table.database,
                first,
                end,
                {key: maxima[key] for _, key in group},
                copy.log_min,
                min(size, 1 << 40),
                request.not_after,
            )

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterator[Task]:
        """Yield tasks that hold queues in files, as they were read, against the same queues in RocksDB."""
        request, copy = evidence.request, evidence.copy
        twins, in_files = copy.twins, evidence.results(QUEUES).summaries
        if twins is None or request.quick or not twins.table.opened or twins.table.unread:
            return
        ends, tags, light = twins.table.ends, not copy.rules.value("enableConsumeQueueExt"), light_twice(copy.rules)
        queues = []
        for key in keys_of(twins.files, ends.maxima):
            if key[0].startswith(LMQ_PREFIX) and not light:
                continue
            used = in_files[key].used if key in in_files else []
            numbers = (used[0][0], used[-1][1]) if used else (0, 0)
            queues.append(TwinQueue(key, twins.files.get(key, ()), numbers, ends.maxima.get(key), ends.minima.get(key)))
        for at in range(0, len(queues), QUEUE_GROUP_COUNT):
            yield TwinTask(
                request.store,
                request.location,
                twins.table.database,
                tuple(queues[at : at + QUEUE_GROUP_COUNT]),
                copy.log_min,
                tags,
                request.not_after,
            )

    def take(self, found: RocksQueueResults, result: KeyRangeResult | TwinResult) -> None:
        if isinstance(result, TwinResult):
            found.twin_gaps += result.gaps
            found.twin_from = least_offset(found.twin_from, result.keyed_from)
        else:
            found.findings += result.findings
            found.problems += sum(bool(summary.problem) for summary in result.queues)
            found.summaries.update((summary.key, summary) for summary in result.queues)

    def start_is_unknown(self, copy: OpenedCopy, found: RocksQueueResults, late: Set[str]) -> bool:
        return bool(found.problems)


ROCKS_QUEUES = RocksQueues()


def _beside_double_write(copy: OpenedCopy) -> str:
    """Name a feature in use whose effect on a double write of queues no repair knows, or ""."""
    rules = copy.rules
    if not rules.combined_queues:
        return ""
    if copy.batch_topics:
        return "topics of type BatchCQ"
    if rules.value("duplicationEnable"):
        return "duplicationEnable"
    loads, light_alone = combination(rules).loads, combination(rules).light_in_rocksdb
    if rules.lmq_in_files != rules.lmq_in_rocksdb and not light_alone:
        return f"light queues in {'files' if rules.lmq_in_files else 'RocksDB'} alone"
    return (
        f"queues of one kind alone (combineCQLoadingCQTypes={rules.value('combineCQLoadingCQTypes')})" if len(loads) == 1 else ""
    )
