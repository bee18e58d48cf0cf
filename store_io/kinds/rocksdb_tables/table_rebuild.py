"""Makes index and transactions in rocksdbstore/ anew from the log if an audit blames them or the log is another one
(rocksdb.md 10). Timers lie in the same database: they stay as they are, or are left out once the timer log has them
(`timers`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from schemas.finding_codes import CATALOGUE, Part
from schemas.layouts import rocksdb_layout as layout
from schemas.repair import TablesMade
from store_io.kinds.rocksdb_tables.rocksdb_tables import given_up_halves
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.rocksdb_tables.table_rebuild_tasks import SpoolTask, TablesTask
from store_io.repair.kind_repair import KindRepair, Round
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_steps import REBUILD_TABLES, bytes_at
from store_io.repair.repair_work import ANOTHER_LOG, Work, unused_name
from store_io.repair.writing.database_writer import INDEX, TABLE_FAMILIES, TIMERS, TRANSACTIONS, Family, WrittenDatabase
from store_io.rocksdb.private_folder import is_database_name
from store_io.source.byte_source import name_of

FOLDER = layout.TABLES_FOLDER
ROOM = 3  # times the bytes of the entries, which lie in a file, in tables, and in those that are made of these


@dataclass(frozen=True)
class _Sources:
    """The sources of the families.

    made: from the log.
    copied: from the old database; the others are empty.
    """

    made: tuple[Family, ...]
    copied: tuple[Family, ...]


class TableRepair(KindRepair):
    """Index and transactions in rocksdbstore/, made anew together."""

    def rebuild(self, now: Round) -> Callable[[], None] | None:
        return partial(_rebuild, now)  # reads the log by itself, once the queues are there


def _rebuild(now: Round) -> None:
    work, audit, made = now.work, now.audit, now.made
    used = audit.copy[TABLES].used
    reasons = _reasons(work, audit, made.tables is not None) if used is not None else ()
    if used is None or not reasons:
        return
    new = tuple(family for family, wanted in ((INDEX, used.index), (TRANSACTIONS, used.transactions)) if wanted)
    kept = (TIMERS,) if work.log_changed else TABLE_FAMILIES
    sources = _Sources(new, tuple(family for family in kept if family not in new))
    made.tables = _write(work, now.before, audit, sources, reasons)


def leave_timers_out(work: Work, audit: Audited, reason: str) -> TablesMade:
    """Write the database without its timers. Raises StoreError."""
    return _write(work, audit, audit, _Sources((), (INDEX, TRANSACTIONS)), (reason,))


def _reasons(work: Work, audit: Audited, made: bool) -> tuple[str, ...]:
    """Return the reasons to make it anew: codes of findings, or a clause; none if it stays."""
    of_tables = (f for f in audit.serious if f.file.partition("/")[0] == FOLDER)
    blamed = tuple(sorted({f.code for f in of_tables if Part.INDEX in CATALOGUE[f.code].about}))
    if blamed or made:
        return blamed
    gone = any(step.file.partition("/")[0] == FOLDER for step in work.steps.done)
    return (ANOTHER_LOG,) if gone or work.log_changed else ()


def _write(work: Work, before: Audited, audit: Audited, sources: _Sources, reasons: Sequence[str]) -> TablesMade:
    work.progress("writing rocksdbstore/")
    spools = _spool(work, before, audit, sources.made) if sources.made else ()
    size = sum(row.size for row in work.source.list_tree(FOLDER) if row.kind == "file")
    spooled = sum(work.tree.by_path[path].size for path in spools)
    work.writer.require(ROOM * (size + spooled), "rocksdbstore/ needs")
    asked = TRANSACTIONS in sources.made
    task = TablesTask(work.writer, spools, sources.copied, asked, _marks(audit, sources.made), size + spooled)
    written: WrittenDatabase = work.run([task], "tables")[0]
    for path in spools:
        work.writer.remove(path)
    counts = {family.name: written.counts[family.name] for family in TABLE_FAMILIES}
    work.steps.add(
        REBUILD_TABLES, FOLDER, reason=", ".join(reasons), kept={"entries": sum(counts.values())}, sha256=written.sha256,
        lost=bytes_at(work.tree, FOLDER) if work.tree.by_path.get(FOLDER) and not work.tree.is_folder(FOLDER) else {},
    )  # fmt: skip
    _put_in_place(work, written)
    index, timers, transactions = counts.values()
    return TablesMade(FOLDER, index, timers, transactions, written.sha256, tuple(reasons))


def _put_in_place(work: Work, written: WrittenDatabase) -> None:
    tree = work.tree
    if tree.exists(FOLDER) and not tree.is_folder(FOLDER):
        work.writer.remove(FOLDER)
    for entry in work.source.list_tree(FOLDER) if tree.is_folder(FOLDER) else ():
        if entry.path.count("/") == 1 and is_database_name(name_of(entry.path)):
            work.writer.remove(entry.path)
    for name in written.files:
        work.writer.take_in(name, f"{FOLDER}/{name_of(name)}")


def _spool(work: Work, before: Audited, audit: Audited, made: Sequence[Family]) -> tuple[str, ...]:
    """Return the files with what the messages of each segment have in these families."""
    given_up = given_up_halves(before.evidence) if TRANSACTIONS in made else np.zeros(0, np.int64)
    most = int(work.rules.value("maxMessageSize"))
    tree, tasks = work.tree, list[SpoolTask]()
    stem = unused_name(tree, f"{FOLDER}.entries")
    for number, segment in enumerate(audit.segments):
        if segment.path not in tree.by_path:
            continue
        path = f"{stem}{number}"
        work.writer.create(path, 0)
        tasks.append(SpoolTask(audit.scan_of(segment), work.writer, path, INDEX in made, TRANSACTIONS in made, given_up, most))
    work.run(tasks, "entries")
    return tuple(task.path for task in tasks)


def _marks(audit: Audited, made: Sequence[Family]) -> tuple[tuple[Family, tuple[tuple[bytes, bytes], ...]], ...]:
    """Return marks with which each new family reaches up to the log's last message: a start then puts nothing."""
    if audit.last_message <= 0:
        return ()
    mark = layout.TABLE_MARK, struct.pack(">q", audit.last_message)
    time = layout.TABLE_TIME_MARK, struct.pack(">q", audit.last_store_time)
    return tuple((family, (mark, time) if family is INDEX else (mark,)) for family in made)
