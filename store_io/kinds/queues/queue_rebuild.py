"""Queues in files, made anew where an audit blames them: their files are made, kept or removed, then entries are written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.finding_codes import Code
from schemas.layouts import consumequeue_layout as layout
from schemas.layouts.store_names import BATCH_QUEUES, BRIDGE_TOPIC, EXT, QUEUES
from schemas.repair import UnservedRange
from schemas.rows import RUN_QUEUE, Finding, QueueKey
from store_io.broker.loading import Tree, is_folder, misfits, why_no_folder
from store_io.broker.queues.combination import combination
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.start_databases import database_folder
from store_io.kinds.queues.queue_kind import QUEUES as KIND
from store_io.kinds.queues.queue_kind import queue_folder_of
from store_io.log.entries.file_entries import read_file_entries
from store_io.model.queue_views import KnownQueues, QueueView, queue_views
from store_io.repair.derived.queue_places import runs_of
from store_io.repair.derived.queue_plan import Fill, QueuePlan, plan_queue
from store_io.repair.kind_repair import Added, KindRepair, Round
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_QUEUE, REMOVE, WRITE_ENTRY
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.rocksdb.private_folder import is_database_name
from store_io.source.byte_source import name_of
from store_io.wording.refusals import refusal_sentence

_FOLDERS = QUEUES, BATCH_QUEUES, EXT
_STRAY = "no queue of the store"
_STALE_DATABASE = "of a database that the release writes and never reads, and which knows another log"
_ZERO = "a broker takes it for an entry of the log's first segment"


class QueueRepair(KindRepair):
    """Queues in files, each made anew by itself."""

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        if refusal.path.partition("/")[0] not in _FOLDERS or "/" not in refusal.path:
            return False
        first = _in_the_way(audit, refusal.path)
        work.remove(first, reason, audit.tree)
        gone = {first}
        for other in _others_that_stop(work, audit, refusal.kind):
            path = _in_the_way(audit, other.path)
            if path not in gone:
                gone.add(path)
                work.unblock(path, other, audit.tree)
        return True

    def rebuild(self, now: Round) -> Callable[[], None] | None:
        work, made = now.work, now.made
        if work.rules.rocksdb_queues:
            return None
        now.in_files = file_views(now.audit)
        planned = _plan_queues(now)
        made.in_place = [plan for plan in planned if plan.in_place]
        queues = [plan for plan in planned if not plan.in_place]
        made.add(queues)
        _remove_strays(work, now.audit)
        made_anew = {plan.key for plan in queues if not plan.keep_files}
        _expire(now, {key: view for key, view in now.in_files.items() if key not in made_anew})
        _prepare_queues(work, queues)
        now.targets.queues = {plan.key: plan for plan in queues}
        return partial(_write_fills, work, queues)

    def lead_to(self, work: Work, audit: Audited, added: Added) -> bool:
        """Make a queue whose one entry leads to the record, if a start is looked for in queues in files."""
        if work.rules.clean_start_by_queues and not work.rules.rocksdb_queues:
            folder, reason = f"{QUEUES}/{BRIDGE_TOPIC}/0", "leads a start to the added segment"
            work.steps.add(REBUILD_QUEUE, folder, start=0, end=layout.ENTRY_BYTES, reason=reason, kept={"entries": 1})
            work.writer.remove(f"{QUEUES}/{BRIDGE_TOPIC}")
            name = f"{folder}/{0:020d}"
            work.writer.create(name, work.rules.queue_file_bytes)
            work.writer.write(name, 0, struct.pack(layout.ENTRY_FORMAT, added.phy_offset, added.size, 0))
        return False


def file_views(audit: Audited) -> Mapping[QueueKey, QueueView]:
    """Return the views of the queues in files.

    If there is a double write and consumers are served from RocksDB, a queue's matched entries are those in files. Light queues
    that files do not get are left out.
    """
    copy, views = audit.copy, audit.views
    if not copy.queues_in_files.double_write:
        return views
    if not copy.queues_in_files.serves:
        written, read, expected = copy.queues_in_files.written, audit.evidence.other_queues, copy.rules.multi_dispatch
        known = KnownQueues(read, written.files, written.folders, copy.batch_topics, copy.known_topics, expected)
        views = queue_views(audit.segments, known)
    return {key: view for key, view in views.items() if not is_in_rocksdb_alone(audit, view)}


def is_in_rocksdb_alone(audit: Audited, view: QueueView) -> bool:
    """Say whether it is a light queue, and those are in RocksDB alone although all others are in files, too."""
    alone = audit.copy.queues_in_files.double_write and combination(audit.copy.rules).light_in_rocksdb
    return alone and (view.lmq or view.key[0].startswith(LMQ_PREFIX))


def _by_queue(findings: Sequence[Finding], folders: Mapping[str, QueueKey]) -> dict[QueueKey, list[Finding]]:
    """Return the findings by the queue whose folder, or ext folder, they name."""
    found: dict[QueueKey, list[Finding]] = {}
    for finding in findings:
        if (key := folders.get(queue_folder_of(finding.file))) is not None:
            found.setdefault(key, []).append(finding)
    return found


def _plan_queues(now: Round) -> list[QueuePlan]:
    audit = now.audit
    folders = {folder: key for key, folder in audit.copy.queues_in_files.written.folders.items()}
    blamed, log, plans = _by_queue(audit.serious, folders), now.new_log, []
    for key, view in sorted(now.in_files.items()):
        if view.of_other_kind or now.gives_up(view):
            continue
        if why := why_no_folder(key[0]):
            now.made.unfindable[key] = [
                UnservedRange(*key, run.offset, run.end_offset, run.first, why, False)
                for run in runs_of(view, audit.segments, RUN_QUEUE)
            ]
            continue
        refusal = view.summary.refusal if view.summary is not None else None
        if refusal is not None and not blamed.get(key):
            blamed[key] = [Finding(Code.QUEUE_EXT_DAMAGED, view.folder, message=str(refusal_sentence(refusal)))]
        plan = plan_queue(view, blamed.get(key, []), log)
        if plan is not None:
            plans.append(plan)
    return plans


def _prepare_queues(work: Work, plans: Sequence[QueuePlan]) -> None:
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
    positions, entries = (sum(row.end - row.first for row in rows) for rows in (plan.answered, plan.unserved))
    return {"positions": positions, "entries": entries}


def _prepare_queue(work: Work, plan: QueuePlan, tree: Tree) -> None:
    writer, size, unit = work.writer, plan.file_bytes(work.rules), plan.unit
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


def _remove_strays(work: Work, audit: Audited) -> None:
    """Remove what a broker takes for a queue, or cannot read, and is none."""
    tree, folders = audit.tree, set(audit.copy.queues_in_files.written.folders.values())
    for kind in _FOLDERS:
        for topic in tree.children(kind):
            if not is_folder(topic):
                written_only = bool(work.rules.value("rocksdbCQDoubleWriteEnable")) and is_database_name(name_of(topic.path))
                if written_only and work.rules.combined_queues and kind == database_folder(work.rules):
                    continue
                if not written_only or work.log_changed:
                    work.remove(topic.path, _STALE_DATABASE if written_only else _STRAY, tree)
                continue
            for child in tree.children(topic.path):
                if not is_folder(child) or kind != EXT and child.path not in folders:
                    work.remove(child.path, _STRAY, tree)


def _expire(now: Round, views: Mapping[QueueKey, QueueView]) -> None:
    """Remove, as retention would, entries of messages below the log's start from the queues with these views.

    Whole files of them go, but the last, if the log begins later than the copy's: up to 4.9.8 only a queue's first file is looked
    at for its minimum. And the entry of the message at physical offset 0 must not stay: getMessage takes the first segment there
    is for one that begins at 0 (MappedFileQueue.findMappedFileByOffset).
    """
    work, log, prediction = now.work, now.log, now.before.prediction
    source, later = work.source, prediction is None or log.start > max(0, prediction.min_phy_offset)
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


def _write_fills(work: Work, queues: Sequence[QueuePlan]) -> None:
    """Write an entry to every place of ordinary queues that no message has."""
    for plan in queues:
        for fill in plan.fills:
            _write_fill(work.writer, plan.folder, plan.file_bytes(work.rules), fill)


def _write_fill(writer: StoreWriter, folder: str, file_bytes: int, fill: Fill) -> None:
    per_file, at = file_bytes // layout.ENTRY_BYTES, fill.start
    while at < fill.end:
        number, place = divmod(at, per_file)
        count = min(fill.end - at, per_file - place, 1 << 16)
        writer.write(f"{folder}/{number * file_bytes:020d}", place * layout.ENTRY_BYTES, fill.entry * count)
        at += count


def _others_that_stop(work: Work, audit: Audited, kind: RefusalKind) -> Iterator[Refusal]:
    """Yield the refusals of that sort over all files of queues; load() meets the next one once the first is gone."""
    rules, summaries = work.rules, audit.evidence.results(KIND).summaries.values()
    if kind in (RefusalKind.FILE_LENGTH, RefusalKind.FILE_IS_FOLDER, RefusalKind.FILE_NAME):
        for queue in audit.copy.loaded.queues.values():
            size = rules.batch_file_bytes if queue.batch else rules.queue_file_bytes
            yield from misfits(audit.tree, queue.folder, size, rules)
            if rules.value("enableConsumeQueueExt") and not queue.batch:
                yield from misfits(audit.tree, f"{EXT}/{queue.key[0]}/{name_of(queue.folder)}", rules.ext_file_bytes, rules)
    elif kind == RefusalKind.QUEUE_FILE_EMPTY:
        yield from (Refusal(kind, file.path) for each in summaries for file in each.files if file.start == each.wrote)
    else:
        yield from filter(None, (each.refusal for each in summaries))


def _in_the_way(audit: Audited, path: str) -> str:
    """Return the file or folder that goes: of a queue as a whole its last file."""
    folder = "/".join(path.split("/")[:3])
    if path.startswith(f"{EXT}/"):
        return folder
    if path in audit.tree.by_path and not (audit.tree.is_folder(path) and path == folder):
        return path
    files = audit.tree.children(folder)
    return files[-1].path if files else folder
