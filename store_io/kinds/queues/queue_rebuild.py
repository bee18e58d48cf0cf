"""The files of the queues of a new store: made, kept, or removed, before entries are written into them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

from schemas import consumequeue_layout as layout
from schemas.checkpoint_layout import ABORT_FILE
from schemas.rows import QueueKey
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, QUEUES
from store_io.broker.loading import Tree, is_folder
from store_io.broker.queues.start_databases import database_folder
from store_io.broker.releases import BrokerRules
from store_io.kinds.queues.queue_plan import QueuePlan
from store_io.log.entries.file_entries import read_file_entries
from store_io.model.queue_views import QueueView
from store_io.repair.log.edits import LogPlan
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_QUEUE, REMOVE, WRITE_ENTRY
from store_io.repair.repair_work import Work
from store_io.rocksdb.private_folder import is_database_name
from store_io.source.byte_source import name_of

ANOTHER_LOG = "the log, or how it ends, is another one"
_STRAY = "no queue of the store"
_STALE_DATABASE = "of a database that the release writes and never reads, and which knows another log"
_ZERO = "a broker takes it for an entry of the log's first segment"


def file_bytes(plan: QueuePlan, rules: BrokerRules) -> int:
    """The size of the queue's files."""
    return rules.batch_file_bytes if plan.batch else rules.queue_file_bytes


def prepare_queues(work: Work, plans: Sequence[QueuePlan]) -> None:
    """Leave of each queue's folder what stays, and make the files that are needed. Raises WriteFailed."""
    work.writer.require(sum((plan.end - plan.first) * plan.unit for plan in plans), "the queues need")
    tree = work.tree
    gone = {f.path for plan in plans for f in plan.keep_files} - tree.by_path.keys()
    for plan in plans:
        plan.keep_files = [f for f in plan.keep_files if f.path not in gone]
        work.steps.add(
            REBUILD_QUEUE, plan.folder, start=plan.first * plan.unit, end=plan.end * plan.unit, reason=", ".join(plan.reasons),
            kept={"entries": plan.end - plan.first}, lost=_lost(plan),
        )  # fmt: skip
        _prepare_queue(work, plan, tree)


def _lost(plan: QueuePlan) -> dict[str, int]:
    """Count the losses of a queue.

    positions: queue offsets whose message is missing.
    entries: of messages that get none.
    """
    positions, entries = (sum(row["end"] - row["first"] for row in rows) for rows in (plan.answered, plan.unserved))
    return {"positions": positions, "entries": entries}


def _prepare_queue(work: Work, plan: QueuePlan, tree: Tree) -> None:
    writer, size, unit = work.writer, file_bytes(plan, work.rules), plan.unit
    kept = {f.path for f in plan.keep_files}
    for entry in tree.children(plan.folder):
        if entry.path not in kept:
            writer.remove(entry.path)
    for file in plan.keep_files:
        if plan.keep * unit < file.start + file.size:
            writer.zero(file.path, plan.keep * unit - file.start, file.size)
    if not plan.batch:  # the removed entries hold the addresses of its units
        writer.remove(f"{EXT}/{plan.folder.partition('/')[2]}")
    if plan.end == plan.first and not plan.keep_files:
        writer.remove(plan.folder)
        return
    names = {f.start for f in plan.keep_files}
    if plan.end > plan.first:
        for start in range(plan.first * unit // size * size, plan.end * unit, size):
            if start not in names:
                writer.create(f"{plan.folder}/{start:020d}", size)


def changes_log(work: Work) -> bool:
    """Whether the log is another one than in the copy, or ended otherwise, by what was done so far."""
    return any(step.file.partition("/")[0] in (COMMITLOG, ABORT_FILE) for step in work.steps.done)


def remove_strays(work: Work, audit: Audited) -> None:
    """Remove what a broker takes for a queue, or cannot read, and is none."""
    tree, folders = audit.tree, set(audit.queue_folders.values())
    for kind in (QUEUES, BATCH_QUEUES, EXT):
        for topic in tree.children(kind):
            if not is_folder(topic):
                written_only = bool(work.rules.value("rocksdbCQDoubleWriteEnable")) and is_database_name(name_of(topic.path))
                if written_only and work.rules.combined_queues and kind == database_folder(work.rules):
                    continue
                if not written_only or changes_log(work):
                    work.remove(topic.path, _STALE_DATABASE if written_only else _STRAY, tree)
                continue
            for child in tree.children(topic.path):
                if not is_folder(child) or kind != EXT and child.path not in folders:
                    work.remove(child.path, _STRAY, tree)


def expire(work: Work, log: LogPlan, first_before: int | None, views: Mapping[QueueKey, QueueView]) -> None:
    """Remove, as retention would, entries of messages below the log's start from the queues with these views.

    Whole files of them go, but the last, if the log begins later than the copy's: up to 4.9.8 only a queue's first file is looked
    at for its minimum. And the entry of the message at physical offset 0 must not stay: getMessage takes the first segment there
    is for one that begins at 0 (MappedFileQueue.findMappedFileByOffset).

    first_before: the begin of the copy's log, by the prediction; None without one.
    """
    source, later = work.source, first_before is None or log.start > max(0, first_before)
    for view in views.values():
        summary = view.summary
        if summary is None or not summary.expired_end or log.start <= 0 or not view.files:
            continue
        files = list(view.files)
        while later and len(files) > 1 and files[0].start + files[0].size <= summary.expired_end * view.unit:
            file = files.pop(0)
            lost = {"bytes": file.size, "entries": file.size // view.unit}
            work.steps.add(REMOVE, file.path, reason="its entries lead to before the log's start", lost=lost)
            work.writer.remove(file.path)
        if view.batch:
            continue
        count = min(files[0].size, summary.expired_end * view.unit - files[0].start) // view.unit
        rows = read_file_entries(source, files[0].path, 0, max(0, count))
        found = np.flatnonzero((rows["phy_offset"] == 0) & (rows["size"] != layout.PRE_BLANK_SIZE))
        for number in found.tolist():
            entry = struct.pack(layout.ENTRY_FORMAT, log.start - 1, layout.ANSWER_SIZE, 0)
            start = number * view.unit
            work.steps.add(WRITE_ENTRY, files[0].path, start=start, end=start + view.unit, reason=_ZERO, lost={"entries": 1})
            work.writer.write(files[0].path, start, entry)
