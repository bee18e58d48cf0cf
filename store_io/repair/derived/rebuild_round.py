"""One round of making anew what is derived: the queues and the index that an audit blames.

One pass over the log writes the entries of both. Another round may follow: some findings appear only once the
store counts as cleanly stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.rows import Finding, QueueKey, Row
from store_io.base.errors import StoreError
from store_io.repair.derived import index_plan, queue_files, queue_plan
from store_io.repair.derived.index_link import link_index
from store_io.repair.derived.index_plan import IndexPlan
from store_io.repair.derived.queue_places import BridgedRanges
from store_io.repair.derived.queue_plan import NewLog, QueuePlan
from store_io.repair.derived.rebuild_tasks import BuildTask, QueueBuild, fill_entries
from store_io.repair.log.edits import LogPlan
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_work import Work
from store_io.rules.loading import queue_folder


@dataclass
class Rebuilt:
    """What all rounds so far have made: each queue as it was made last, and the index.

    timers: the report's row on the timer's files; None where they fit.
    """

    queues: list[QueuePlan] = field(default_factory=list)
    index: IndexPlan = field(default_factory=IndexPlan)
    timers: Row | None = None

    def add(self, queues: Sequence[QueuePlan], index: IndexPlan) -> None:
        again = {plan.key for plan in queues}
        self.queues = [plan for plan in self.queues if plan.key not in again] + list(queues)
        if index.reasons:
            self.index = index


def is_findable(topic: str) -> bool:
    """Whether a broker finds the queues of that topic again when it starts: only where its name can be that of a folder."""
    return queue_folder(False, (topic, 0)).split("/")[1] == topic


def rebuild(work: Work, log: LogPlan, before: Audited, audit: Audited, made: Rebuilt) -> None:
    """Make anew what `audit` blames. before: the audit of the copy. Raises StoreError."""
    queues = _plan_queues(work, log, before, audit)
    index = index_plan.prepare_index(work, audit)
    queue_files.remove_strays(work, audit)
    made.add(queues, index)
    made_anew = {plan.key for plan in queues if not plan.keep_files}
    first_before = before.prediction.min_phy_offset if before.prediction is not None else None
    queue_files.expire(work, log, first_before, {key: view for key, view in audit.views.items() if key not in made_anew})
    queue_files.prepare_queues(work, queues)
    _write_entries(work, audit, queues, index)
    if index.paths:
        link_index(work, index)


def _plan_queues(work: Work, log: LogPlan, before: Audited, audit: Audited) -> list[QueuePlan]:
    blamed = queue_plan.serious_by_folder(audit.serious, {folder: key for key, folder in audit.queue_folders.items()})
    bridged = BridgedRanges(sorted((b["phy_offset"], b["phy_offset"] + b["end"] - b["start"]) for b in log.bridges))
    salvage = work.request.policy == SALVAGE
    new_log = NewLog(audit.segments, audit.tree, work.rules, log.start, bridged, salvage)
    served = _served(before)
    plans = []
    for key, view in sorted(audit.views.items()):
        if view.deleted_topic and work.request.policy == BROKER and key not in served:
            continue
        if view.of_other_kind or not is_findable(key[0]):
            continue
        refusal = view.summary.refusal if view.summary is not None else ""
        if refusal and not blamed.get(key):
            blamed[key] = [Finding("queue_ext_damaged", view.folder, message=refusal)]
        plan = queue_plan.plan_queue(view, blamed.get(key, []), new_log)
        if plan is not None:
            plans.append(plan)
    return plans


def _served(before: Audited) -> frozenset[QueueKey]:
    """Queues that the release itself would have in memory."""
    prediction = before.prediction
    if prediction is None or prediction.settled is None:
        return frozenset()
    return frozenset(prediction.settled.queues)


def _write_entries(work: Work, audit: Audited, queues: Sequence[QueuePlan], index: IndexPlan) -> None:
    """One pass over the log. Raises StoreError."""
    builds = {p.key: p for p in queues if p.end > p.first}
    tasks: list[BuildTask] = []
    first_key = 1
    for segment in audit.segments:
        keys = index_plan.keys_of(segment)
        wanted = {key: _build(work, builds[key], segment.path) for key in segment.queues if key in builds}
        if wanted or index.paths and keys:
            tasks.append(BuildTask(audit.scan_of(segment), work.writer, wanted, index.paths, first_key))
        first_key += keys
    if tasks:
        work.progress("rebuilding queues and index")
        results = work.run(tasks, "rebuild")
        if index.paths and sum(results) != first_key - 1:
            raise StoreError("the index entries written are not those that the audit counted: a fault of this program")
    for plan in queues:
        for low, high, entry in plan.fills:
            fill_entries(work.writer, plan.folder, queue_files.file_bytes(plan, work.rules), low, high, entry)


def _build(work: Work, plan: QueuePlan, segment: str) -> QueueBuild:
    start = plan.batch_starts.get(segment, 0) if plan.batch else -1
    return QueueBuild(plan.folder, queue_files.file_bytes(plan, work.rules), tuple(plan.shifts), start)
