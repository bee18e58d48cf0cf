"""Makes the database of queues in RocksDB anew as a whole if an audit blames it or the log is another one (rocksdb.md 9).

One pass over the log writes the entries, raw, into a temporary file, which is removed afterwards (`rebuild_tasks`). Then one task
makes a database of them in the workshop beside the new store (`database_task`). The database takes the old one's place when it is
whole and was read back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from schemas.advice import Refusal, RefusalKind
from schemas.finding_codes import CATALOGUE, Code, Part
from schemas.layouts.rocksdb_layout import CURRENT, FOLDER, SEPARATE_FOLDER
from schemas.repair import DatabaseMade
from schemas.rows import RUN_UNQUEUED, WALK_AUDIT, QueueKey, SegmentSummary
from store_io.broker.loading import Tree
from store_io.broker.queues.start_databases import database_folder
from store_io.kinds.queues.queue_rebuild import is_in_rocksdb_alone
from store_io.kinds.rocksdb_queues.database_task import DatabaseTask, NewQueue
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.kinds.rocksdb_queues.rocksdb_queue_plan import KeyedQueuePlan, plan_keyed_queue, plan_twins
from store_io.model.queue_views import QueueView
from store_io.repair.derived.rebuild_tasks import RAW_ENTRY_DTYPE, RawFile, RawQueue
from store_io.repair.kind_repair import Added, KindRepair, Round
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_DATABASE
from store_io.repair.repair_work import ANOTHER_LOG, Work, unused_name
from store_io.repair.writing.database_writer import WrittenDatabase
from store_io.rocksdb.private_folder import is_database_name
from store_io.source.byte_source import name_of

ENTRY_ROOM = 200  # bytes of the medium for each entry while it is written: raw, in tables, and in those that are made of them
LIGHT_MISSING = "light queues, which are there alone, lack entries"  # a note where double write may have been switched on later
_AT_ODDS = (RefusalKind.DOUBLE_WRITE_ENDS_DIFFER, RefusalKind.FILES_END_EARLY, RefusalKind.ROCKSDB_ENDS_EARLY)
"""The ends of queues that are written twice do not fit: without either kind of queues a broker makes both anew."""


class RocksQueueRepair(KindRepair):
    """Queues in RocksDB, alone or beside the same queues in files: a database that is made anew as a whole."""

    def unblock(self, work: Work, audit: Audited, refusal: Refusal, reason: str) -> bool:
        folders = [folder for folder in (FOLDER, SEPARATE_FOLDER) if work.tree.exists(folder)]
        if refusal.kind in _AT_ODDS and folders:
            for folder in folders:
                work.remove(folder, reason, work.tree)
            return True
        folder = refusal.path.partition("/")[0]
        if not _used(work) or folder not in (FOLDER, SEPARATE_FOLDER) or not _is_of_database(refusal.path, folder):
            return False
        for file in _opened_by(work, folder):
            work.remove(file, reason, work.tree)
        return True

    def rebuild(self, now: Round) -> Callable[[], None] | None:
        why = _reasons(now) if _used(now.work) else ()
        if not why:
            return None
        plans = _plans(now)
        raw = now.targets.database = _make_raw(now.work, now.audit, plans)
        return partial(_write_database, now, plans, raw, why)

    def lead_to(self, work: Work, audit: Audited, added: Added) -> bool:
        return _used(work)


def _used(work: Work) -> bool:
    return work.rules.rocksdb_queues or work.rules.combined_queues


def _database_files(tree: Tree, folder: str) -> list[str]:
    """Return the files of the database in that folder, and none of what else lies there."""
    return [e.path for e in tree.children(folder) if e.kind == "file" and is_database_name(name_of(e.path))]


def _opened_by(work: Work, folder: str) -> list[str]:
    """Return the files without which a start finds no database there (rocksdb.md 3).

    In a folder that should hold none these are all.
    """
    files = _database_files(work.tree, folder)
    own = folder == database_folder(work.rules)
    return [f for f in files if name_of(f) == CURRENT or f.endswith(".log")] if own else files


def _reasons(now: Round) -> tuple[str, ...]:
    """Return why the database is made anew: codes of findings, or a clause; none if it stays.

    If it was made already, only findings are a reason.
    """
    work, audit, made, twice = now.work, now.audit, now.made.database is not None, now.work.rules.combined_queues
    folder = database_folder(work.rules)
    about = (f for f in audit.serious if Part.QUEUE in CATALOGUE[f.code].about)
    blamed = tuple(sorted({f.code for f in about if not twice or _is_of_database(f.file, folder)}))
    if blamed or made:
        return blamed
    if work.request.with_earlier and any(view.begins_again for view in audit.views.values()):
        return (Code.QUEUE_BEGINS_AGAIN,)
    gone = any(step.file.startswith(f"{folder}/") and is_database_name(name_of(step.file)) for step in work.steps.done)
    if gone or work.log_changed:
        return (ANOTHER_LOG,)
    return (LIGHT_MISSING,) if twice and any(view.missing for view in _own_views(now).values()) else ()


def _own_views(now: Round) -> Mapping[QueueKey, QueueView]:
    """Return the views of the queues that are in RocksDB alone: light ones, if all others are in files, too."""
    views = now.audit.views
    if not now.work.rules.combined_queues:
        return views
    return {key: view for key, view in views.items() if is_in_rocksdb_alone(now.audit, view)}


def _is_of_database(path: str, folder: str) -> bool:
    """Say whether that is the database's folder, or a file of it: queues in files may lie in the same folder."""
    return path == folder or path.rpartition("/")[0] == folder and is_database_name(name_of(path))


def _plans(now: Round) -> list[KeyedQueuePlan]:
    """Plan each queue of the database: the twins of those in files, and all others."""
    log, known = now.new_log, now.before.copy[ROCKS_QUEUES].table
    assert known is not None
    own = (plan_keyed_queue(v, log, known.ends) for _, v in sorted(_own_views(now).items()) if not now.gives_up(v))
    alone = [plan for plan in own if plan is not None]
    now.made.add(alone)  # of twins the files' plans speak
    in_files = {key: view for key, view in now.in_files.items() if not now.gives_up(view)}
    return [*plan_twins(in_files, now.targets.queues, log), *alone]


def _make_raw(work: Work, audit: Audited, plans: Sequence[KeyedQueuePlan]) -> RawFile:
    """Return the file in which the entries of these queues wait, of the size of all entries. Raises WriteFailed."""
    work.writer.require(ENTRY_ROOM * sum(plan.entries for plan in plans), "the queues' database needs")
    firsts = [0]
    for segment in audit.segments:
        firsts.append(firsts[-1] + _entries_of(segment))
    path = unused_name(work.tree, f"{database_folder(work.rules)}.entries")
    work.writer.create(path, firsts[-1] * RAW_ENTRY_DTYPE.itemsize)
    queues = {p.key: RawQueue(number, tuple(p.shifts)) for number, p in enumerate(plans) if p.end > p.first}
    return RawFile(path, tuple(firsts[:-1]), queues)


def _entries_of(segment: SegmentSummary) -> int:
    """Return how many entries the segment's messages have at most."""
    runs = segment.runs
    return int(runs["records"][(runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_UNQUEUED)].sum())


def _write_database(now: Round, plans: Sequence[KeyedQueuePlan], raw: RawFile, why: Sequence[str]) -> None:
    """Write the database and put it in the place of the old one, as a step of its own. Raises StoreError."""
    work = now.work
    work.progress("writing the queues' database")
    queues = tuple(NewQueue(plan.key, plan.maximum, plan.minimum, tuple(plan.fills)) for plan in plans)
    entries, count = sum(plan.entries for plan in plans), sum(plan.maximum is not None for plan in plans)
    task = DatabaseTask(work.writer, raw.path, tuple(now.written), queues, entries, now.log.end)
    written: WrittenDatabase = work.run([task], "database")[0]
    work.writer.remove(raw.path)
    folder = database_folder(work.rules)
    lost = {
        "positions": sum(row.end - row.first for plan in plans for row in plan.answered),
        "entries": sum(row.end - row.first for plan in plans for row in plan.unserved),
    }
    work.steps.add(
        REBUILD_DATABASE, folder, reason=", ".join(why), kept={"entries": entries, "queues": count}, lost=lost,
        sha256=written.sha256,
    )  # fmt: skip
    for path in _database_files(work.tree, folder):
        work.writer.remove(path)
    for name in written.files:
        work.writer.take_in(name, f"{folder}/{name_of(name)}")
    now.made.database = DatabaseMade(folder, count, entries, written.sha256, tuple(why))
