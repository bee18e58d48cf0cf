"""Plans the database of queues that lie in files, too: the same entries at the same numbers, and ends such that start() finds
nothing to change (rocksdb.md 9).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from schemas.rows import QueueKey
from store_io.broker.loading import why_no_folder
from store_io.kinds.queues.queue_plan import NewLog, QueuePlan
from store_io.kinds.rocksdb_queues.rocksdb_queue_plan import KeyedQueuePlan, plan_keyed_queue
from store_io.kinds.rocksdb_queues.stored_queue import QueueEnd, StoredEnds
from store_io.model.queue_views import QueueView


def plan_twins(
    views: Mapping[QueueKey, QueueView], in_files: Mapping[QueueKey, QueuePlan], log: NewLog, served: Collection[QueueKey] | None
) -> list[KeyedQueuePlan]:
    """Return the plan of each queue in RocksDB beside those in files.

    views: of those in files, before `in_files` were made anew.
    served: the queues that queues of topics that are not in config/ must be among; None: no such condition.
    """
    found = []
    for key, view in sorted(views.items()):
        if view.of_other_kind or why_no_folder(key[0]) or view.deleted_topic and served is not None and key not in served:
            continue
        plan = _plan_twin(view, in_files.get(key), log)
        if plan is not None:
            found.append(plan)
    return found


def _plan_twin(view: QueueView, in_files: QueuePlan | None, log: NewLog) -> KeyedQueuePlan | None:
    begin = None
    if log.start <= 0:  # further up what is missing before the first message has no entry in files either
        begin = in_files.first if in_files is not None else view.files[0].start // view.unit if view.files else None
    plan = plan_keyed_queue(view, log, StoredEnds(), begin)
    if plan is not None and plan.messages:
        return plan
    number = in_files.keep if in_files is not None else view.summary.used_end if view.summary is not None else 0
    if number > 0 and log.start > 0:  # retention has deleted its messages
        plan = plan or KeyedQueuePlan(view.key, view.folder)
        plan.maximum, plan.minimum = QueueEnd(log.start - 1, number - 1), QueueEnd(log.start, number)
    return plan
