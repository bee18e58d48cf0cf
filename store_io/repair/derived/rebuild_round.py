"""Rebuilds the queues and the index that an audit blames, in one round.

Queues in RocksDB are made as a whole (`rocksdb_queue_rebuild`); of a double write each kind of queues is, if it is blamed. One
pass over the log writes the entries of both. Another round may follow: some findings appear only once the store counts as cleanly
stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from schemas.finding_codes import Code
from schemas.rows import RUN_QUEUE, Finding, QueueKey, Row
from store_io.base.errors import StoreError
from store_io.broker.loading import why_no_folder
from store_io.kinds.index import index_rebuild
from store_io.kinds.index.index_rebuild import IndexPlan, link_index
from store_io.kinds.queues import queue_plan, queue_rebuild
from store_io.kinds.queues.queue_places import BridgedRanges, runs_of
from store_io.kinds.queues.queue_plan import NewLog, QueuePlan
from store_io.kinds.rocksdb_queues import rocksdb_queue_rebuild
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.kinds.rocksdb_queues.rocksdb_queue_plan import KeyedQueuePlan, plan_twins
from store_io.kinds.rocksdb_queues.rocksdb_queue_rebuild import RawFile
from store_io.kinds.rocksdb_tables.table_rebuild import rebuild_tables
from store_io.model.queue_views import QueueView
from store_io.repair.derived.rebuild_tasks import BuildTask, QueueBuild, fill_entries
from store_io.repair.log.edits import LogPlan
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_work import Work
from store_io.wording.refusals import refusal_sentence


@dataclass
class Rebuilt:
    """The results of all rounds so far: each queue as it was made last, and the index.

    in_place: queues that have no entry elsewhere than a repair would put it.
    timers: the report's row on the timer's files; None if they fit.
    database: that on the queues' database; None if it stays, or there is none.
    tables: the same for index and transactions in rocksdbstore/.
    unfindable: rows of the report on messages that stay in the log alone, by queue.
    """

    queues: list[QueuePlan] = field(default_factory=list)
    in_place: list[QueuePlan] = field(default_factory=list)
    index: IndexPlan = field(default_factory=IndexPlan)
    timers: Row | None = None
    database: Row | None = None
    tables: Row | None = None
    unfindable: dict[QueueKey, list[Row]] = field(default_factory=dict)

    def add(self, queues: Sequence[QueuePlan], index: IndexPlan) -> None:
        again = {plan.key for plan in queues}
        self.queues = [plan for plan in self.queues if plan.key not in again] + list(queues)
        if index.reasons:
            self.index = index


def rebuild(work: Work, log: LogPlan, before: Audited, audit: Audited, made: Rebuilt) -> None:
    """Make anew what `audit` blames. before: the audit of the copy. Raises StoreError."""
    if work.rules.rocksdb_queues:
        _rebuild_keyed(work, log, before, audit, made)
    elif work.rules.combined_queues:
        _rebuild_twins(work, log, before, audit, made)
    else:
        _rebuild_files(work, log, before, audit, made)
    work.forget_rows()
    made.tables = rebuild_tables(work, before, audit, made.tables)


def _rebuild_files(work: Work, log: LogPlan, before: Audited, audit: Audited, made: Rebuilt) -> list[QueuePlan]:
    """Index and queues in files: which were made. Raises StoreError."""
    views = audit.file_views
    planned = _plan_queues(work, log, before, audit, views, made)
    made.in_place = [plan for plan in planned if plan.in_place]
    queues = [plan for plan in planned if not plan.in_place]
    index = index_rebuild.prepare_index(work, audit)
    queue_rebuild.remove_strays(work, audit)
    made.add(queues, index)
    made_anew = {plan.key for plan in queues if not plan.keep_files}
    first_before = before.prediction.min_phy_offset if before.prediction is not None else None
    queue_rebuild.expire(work, log, first_before, {key: view for key, view in views.items() if key not in made_anew})
    queue_rebuild.prepare_queues(work, queues)
    _write_entries(work, audit, queues, index)
    for plan in queues:
        for low, high, entry in plan.fills:
            fill_entries(work.writer, plan.folder, queue_rebuild.file_bytes(plan, work.rules), low, high, entry)
    if index.paths:
        link_index(work, index)
    return queues


def _plan_queues(
    work: Work, log: LogPlan, before: Audited, audit: Audited, views: Mapping[QueueKey, QueueView], made: Rebuilt
) -> list[QueuePlan]:
    blamed = queue_plan.serious_by_folder(audit.serious, {folder: key for key, folder in audit.queue_folders.items()})
    new_log, served = _new_log(work, log, audit), _served(before)
    plans = []
    for key, view in sorted(views.items()):
        if view.deleted_topic and work.request.policy == BROKER and key not in served:
            continue
        if view.of_other_kind:
            continue
        if why := why_no_folder(key[0]):
            made.unfindable[key] = [
                {**queue_plan.queue_row(key, run.offset, run.end_offset, run.first), "reason": why, "had_entry": False}
                for run in runs_of(view, audit.segments, RUN_QUEUE)
            ]
            continue
        refusal = view.summary.refusal if view.summary is not None else None
        if refusal is not None and not blamed.get(key):
            blamed[key] = [Finding(Code.QUEUE_EXT_DAMAGED, view.folder, message=str(refusal_sentence(refusal)))]
        plan = queue_plan.plan_queue(view, blamed.get(key, []), new_log)
        if plan is not None:
            plans.append(plan)
    return plans


def _new_log(work: Work, log: LogPlan, audit: Audited) -> NewLog:
    bridged = BridgedRanges(sorted((b["phy_offset"], b["phy_offset"] + b["end"] - b["start"]) for b in log.bridges))
    request = work.request
    return NewLog(audit.segments, audit.tree, work.rules, log.start, bridged, request.policy == SALVAGE, request.with_earlier)


def _rebuild_keyed(work: Work, log: LogPlan, before: Audited, audit: Audited, made: Rebuilt) -> None:
    """Index and database. Raises StoreError."""
    reasons = rocksdb_queue_rebuild.reasons(work, audit, made.database is not None)
    index = index_rebuild.prepare_index(work, audit)
    plans: list[KeyedQueuePlan] = []
    raw: RawFile | None = None
    if reasons:
        served = _served(before) if work.request.policy == BROKER else None
        known = before.evidence.copy[ROCKS_QUEUES].table
        assert known is not None
        plans = rocksdb_queue_rebuild.plan_database(audit.views, _new_log(work, log, audit), known.ends, served)
        raw = rocksdb_queue_rebuild.make_raw(work, audit, plans)
    parts = _write_entries(work, audit, plans, index, raw)
    if raw is not None:
        made.database = rocksdb_queue_rebuild.write_database(work, plans, raw, parts, log.end, reasons)
    made.add(plans, index)
    if index.paths:
        link_index(work, index)


def _rebuild_twins(work: Work, log: LogPlan, before: Audited, audit: Audited, made: Rebuilt) -> None:
    """Rebuild queues in files, then the database beside them, each if it is blamed; then the index. Raises StoreError."""
    reasons = rocksdb_queue_rebuild.reasons(work, audit, made.database is not None)
    in_files = {plan.key: plan for plan in _rebuild_files(work, log, before, audit, made)}
    if made.database is None and any(view.missing for view in audit.light_views.values()):
        reasons = reasons or (rocksdb_queue_rebuild.LIGHT_MISSING,)
    if not reasons:
        return
    served = _served(before) if work.request.policy == BROKER else None
    new_log, known = _new_log(work, log, audit), before.copy[ROCKS_QUEUES].table
    assert known is not None
    plans = plan_twins(audit.file_views, in_files, new_log, served)
    light = rocksdb_queue_rebuild.plan_database(audit.light_views, new_log, known.ends, served)
    made.add(light, IndexPlan())
    plans += light
    raw = rocksdb_queue_rebuild.make_raw(work, audit, plans)
    parts = _write_entries(work, audit, plans, IndexPlan(), raw)
    made.database = rocksdb_queue_rebuild.write_database(work, plans, raw, parts, log.end, reasons)


def _served(before: Audited) -> frozenset[QueueKey]:
    """Queues that the release itself would have in memory."""
    prediction = before.prediction
    if prediction is None or prediction.settled is None:
        return frozenset()
    return frozenset(prediction.settled.queues)


def _write_entries(
    work: Work, audit: Audited, queues: Sequence[QueuePlan], index: IndexPlan, raw: RawFile | None = None
) -> list[tuple[int, int]]:
    """One pass over the log: (first, how many) of the raw entries of each segment. Raises StoreError."""
    builds = {p.key: p for p in queues if p.end > p.first}
    tasks: list[BuildTask] = []
    first_key, left = 1, work.tree.by_path  # a segment without a message may have gone since that audit
    for number, segment in enumerate(audit.segments):
        if segment.path not in left:
            continue
        keys = index_rebuild.keys_of(segment)
        wanted = {key: _build(work, builds[key], segment.path) for key in segment.queues if key in builds}
        if wanted or index.paths and keys:
            own = raw.of_segment(number, wanted) if raw is not None else None
            kept = audit.kept.get(segment.path)
            tasks.append(BuildTask(audit.scan_of(segment), work.writer, wanted, index.paths, first_key, own, kept))
        first_key += keys
    if not tasks:
        return []
    work.progress("rebuilding queues and index")
    results = work.run(tasks, "rebuild")
    if index.paths and sum(built.keys for built in results) != first_key - 1:
        raise StoreError("the index entries written are not those that the audit counted: a fault of this program")
    return [(task.raw.first, built.entries) for task, built in zip(tasks, results, strict=True) if task.raw is not None]


def _build(work: Work, plan: QueuePlan, segment: str) -> QueueBuild:
    start = plan.batch_starts.get(segment, 0) if plan.batch else -1
    return QueueBuild(plan.folder, queue_rebuild.file_bytes(plan, work.rules), tuple(plan.shifts), start)
