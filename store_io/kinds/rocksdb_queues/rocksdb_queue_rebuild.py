"""Makes the database of queues in RocksDB anew as a whole if an audit blames it or the log is another one (rocksdb.md 9).

One pass over the log writes the entries, raw, into a file that goes afterwards (`rebuild_tasks`). Then one task makes a
database of them beside the new store (`database_task`), which takes the old one's place when it is whole and was read back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from schemas.finding_codes import CATALOGUE, Code, Part
from schemas.rows import RUN_UNQUEUED, WALK_AUDIT, QueueKey, Row, SegmentSummary
from store_io.broker.loading import Tree
from store_io.broker.queues.rocksdb_queue_state import StoredEnds
from store_io.broker.queues.start_databases import database_folder
from store_io.kinds.queues.queue_rebuild import ANOTHER_LOG, changes_log
from store_io.kinds.queues.queue_plan import NewLog
from store_io.kinds.rocksdb_queues.database_task import DatabaseTask, NewQueue
from store_io.kinds.rocksdb_queues.rocksdb_queue_plan import KeyedQueuePlan, plan_keyed_queue
from store_io.model.queue_views import QueueView
from store_io.repair.derived.rebuild_tasks import RAW_ENTRY_DTYPE, RawEntries
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_DATABASE
from store_io.repair.repair_work import Work, unused_name
from store_io.repair.writing.database_writer import WrittenDatabase
from store_io.rocksdb.private_folder import is_database_name
from store_io.source.byte_source import name_of

ENTRY_ROOM = 200  # bytes of the medium for each entry while it is written: raw, in tables, and in those that are made of them
LIGHT_MISSING = "light queues, which are there alone, lack entries"  # a note where double write may have been switched on later


@dataclass(frozen=True)
class RawFile:
    """The file in which the entries wait.

    firsts: the number of the first entry of each segment.
    queues: the number of each queue.
    """

    path: str
    firsts: tuple[int, ...]
    queues: Mapping[QueueKey, int]

    def of_segment(self, number: int, queues: Iterable[QueueKey]) -> RawEntries:
        """Return the part that the task of that segment needs, for these queues."""
        return RawEntries(self.path, self.firsts[number], {key: self.queues[key] for key in queues})


def database_files(tree: Tree, folder: str) -> list[str]:
    """The files of the database in that folder, and none of what else lies there."""
    return [e.path for e in tree.children(folder) if e.kind == "file" and is_database_name(name_of(e.path))]


def reasons(work: Work, audit: Audited, made: bool) -> tuple[str, ...]:
    """Return why the database is made anew: codes of findings, or a clause; none if it stays.

    made: it was made already, so that only findings are a reason.
    """
    folder = database_folder(work.rules)
    about = (f for f in audit.serious if Part.QUEUE in CATALOGUE[f.code].about)
    blamed = tuple(sorted({f.code for f in about if not work.rules.combined_queues or _is_of_database(f.file, folder)}))
    if blamed or made:
        return blamed
    if work.request.with_earlier and any(view.begins_again for view in audit.views.values()):
        return (Code.QUEUE_BEGINS_AGAIN,)
    gone = any(step.file.startswith(f"{folder}/") and is_database_name(name_of(step.file)) for step in work.steps.done)
    return (ANOTHER_LOG,) if gone or changes_log(work) else ()


def _is_of_database(path: str, folder: str) -> bool:
    """Whether that is the database's folder, or a file of it: queues in files may lie in the same folder."""
    return path == folder or path.rpartition("/")[0] == folder and is_database_name(name_of(path))


def plan_database(
    views: Mapping[QueueKey, QueueView], log: NewLog, known: StoredEnds, served: Collection[QueueKey] | None
) -> list[KeyedQueuePlan]:
    """Return the plan of each of these queues in the database.

    known: the ends in the copy's database.
    served: the queues that queues of topics that are not in config/ must be among; None: no such condition.
    """
    found = []
    for key, view in sorted(views.items()):
        if view.deleted_topic and served is not None and key not in served:
            continue
        plan = plan_keyed_queue(view, log, known)
        if plan is not None:
            found.append(plan)
    return found


def make_raw(work: Work, audit: Audited, plans: Sequence[KeyedQueuePlan]) -> RawFile:
    """The file in which the entries of these queues wait, of the size of all entries. Raises WriteFailed."""
    work.writer.require(ENTRY_ROOM * sum(plan.entries for plan in plans), "the queues' database needs")
    firsts = [0]
    for segment in audit.segments:
        firsts.append(firsts[-1] + _entries_of(segment))
    path = unused_name(work.tree, f"{database_folder(work.rules)}.entries")
    work.writer.create(path, firsts[-1] * RAW_ENTRY_DTYPE.itemsize)
    return RawFile(path, tuple(firsts[:-1]), {plan.key: number for number, plan in enumerate(plans)})


def _entries_of(segment: SegmentSummary) -> int:
    """How many entries the segment's messages have at most."""
    runs = segment.runs
    return int(runs["records"][(runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_UNQUEUED)].sum())


def write_database(
    work: Work, plans: Sequence[KeyedQueuePlan], raw: RawFile, parts: Sequence[tuple[int, int]], mark: int, why: Sequence[str]
) -> Row:
    """Write the database and put it in the place of the old one, as a step of its own. Returns the report's row; raises
    StoreError.

    parts: the parts of the raw file that were written.
    mark: its end mark.
    """
    work.progress("writing the queues' database")
    queues = tuple(NewQueue(plan.key, plan.maximum, plan.minimum, tuple(plan.fills)) for plan in plans)
    entries, count = sum(plan.entries for plan in plans), sum(plan.maximum is not None for plan in plans)
    task = DatabaseTask(work.writer, raw.path, tuple(parts), queues, entries, mark)
    written: WrittenDatabase = work.run([task], "database")[0]
    work.writer.remove(raw.path)
    folder = database_folder(work.rules)
    lost = {
        "positions": sum(row["end"] - row["first"] for plan in plans for row in plan.answered),
        "entries": sum(row["end"] - row["first"] for plan in plans for row in plan.unserved),
    }
    work.steps.add(
        REBUILD_DATABASE, folder, reason=", ".join(why), kept={"entries": entries, "queues": count}, lost=lost,
        sha256=written.sha256,
    )  # fmt: skip
    for path in database_files(work.tree, folder):
        work.writer.remove(path)
    for name in written.files:
        work.writer.take_in(name, f"{folder}/{name_of(name)}")
    return {"folder": folder, "queues": count, "entries": entries, "sha256": written.sha256, "reasons": list(why)}
