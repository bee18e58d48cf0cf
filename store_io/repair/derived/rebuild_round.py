"""Rebuilds what an audit blames and the log's messages make, kind by kind, in one round.

One pass over the log writes the entries that the kinds ask for. Another round may follow: some findings appear only once the
store counts as cleanly stopped.
"""

from __future__ import annotations

from store_io.base.errors import StoreError
from store_io.kinds.all_repairs import REPAIRS
from store_io.repair.derived.rebuild_tasks import BuildTask, keys_of
from store_io.repair.kind_repair import Round


def rebuild(now: Round) -> None:
    """Make anew what `now.audit` blames. Raises StoreError."""
    rest = [kind.rebuild(now) for kind in REPAIRS]
    _write_entries(now)
    now.work.forget_rows()
    for complete in filter(None, rest):
        complete()


def _write_entries(now: Round) -> None:
    """Write the entries of all targets in one pass over the log. Raises StoreError."""
    work, audit, targets = now.work, now.audit, now.targets
    tasks: list[BuildTask] = []
    first_key, left = 1, work.tree.by_path  # a segment without a message may have gone since that audit
    for number, segment in enumerate(audit.segments):
        if segment.path not in left:
            continue
        keys = keys_of(segment)
        plans = {key: targets.queues[key] for key in segment.queues if key in targets.queues}
        queues = {key: plan.of_segment(segment.path, work.rules) for key, plan in plans.items() if plan.entries}
        raw = targets.database.of_segment(number, segment.queues) if targets.database is not None else None
        if queues or raw is not None and raw.queues or targets.index_paths and keys:
            kept = audit.kept.get(segment.path)
            tasks.append(BuildTask(audit.scan_of(segment), work.writer, queues, targets.index_paths, first_key, raw, kept))
        first_key += keys
    if not tasks:
        return
    work.progress("rebuilding queues and index")
    results = work.run(tasks, "rebuild")
    if targets.index_paths and sum(built.keys for built in results) != first_key - 1:
        raise StoreError("the index entries written are not those that the audit counted: a fault of this program")
    now.written = [(task.raw.first, built.entries) for task, built in zip(tasks, results, strict=True) if task.raw is not None]
