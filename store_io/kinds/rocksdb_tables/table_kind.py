"""Index and transactions in rocksdbstore/, as an audit asks for them (rocksdb.md 10).

All of both sides first, then what differs, entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.layouts.rocksdb_layout import DONE_TOPIC, HALF_TOPIC
from schemas.rows import WALK_AUDIT, SegmentSummary
from store_io.base.errors import StoreError
from store_io.base.tasks import Task
from store_io.broker.queues.start_databases import FOLDER, keeps_other_tables, marked_families
from store_io.kinds.rocksdb_tables.index_table import IndexTable, IndexTableTask
from store_io.kinds.rocksdb_tables.stored_marks import StoredMarks, read_marks
from store_io.kinds.rocksdb_tables.table_tasks import IndexLook, IndexLookTask, LogTable, LogTableTask
from store_io.kinds.rocksdb_tables.table_view import (
    MOST_RANGES,
    RANGE_BYTES,
    IndexDifference,
    TableResults,
    TablesInUse,
    hour_keys,
    index_difference,
    stretches_of,
    tables_in_use,
)
from store_io.kinds.rocksdb_tables.transaction_table import TransactionTable, TransactionTableTask
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.log.scan.segment_scan import SegmentTask, part_scan
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Opening
from store_io.rocksdb.database import NO_DATABASE, find_database

MOST_HALVES = 400_000  # in one store: half messages and marks of done ones, and entries of transactions


@dataclass(frozen=True)
class TableFiles:
    """The database rocksdbstore/ of a copy.

    used: None if the broker keeps neither index nor transactions in it.
    unnamed: table files that the database does not know, if a start asks.
    """

    used: TablesInUse | None = None
    unnamed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tables:
    """Index and transactions in RocksDB, from both sides. difference: None if one side was not read."""

    used: TablesInUse | None
    unnamed: tuple[str, ...]
    results: TableResults
    difference: IndexDifference | None


class RocksTables(Kind[TableFiles, TableResults, Tables]):
    """Index and transactions in RocksDB."""

    name = "rocksdb_tables"
    task_types = (LogTableTask, IndexTableTask, TransactionTableTask, IndexLookTask)
    nothing_found = TableResults

    def open(self, opening: Opening) -> TableFiles:
        rules, source = opening.rules, opening.source
        stored = StoredMarks()
        if families := marked_families(rules):
            try:
                stored = read_marks(source, source.list_tree(FOLDER), families)  # the store's listing has the folder's name alone
            except StoreError as error:
                opening.gaps.cannot_read(error.gap())
        opening.marks = stored.marks
        timers = opening[TIMERS].in_use
        of_timers = timers.table.unnamed if timers is not None and timers.table is not None else ()
        database = find_database(source.list_tree(FOLDER), FOLDER) if keeps_other_tables(rules) else NO_DATABASE
        return TableFiles(tables_in_use(rules, database), stored.unnamed or of_timers)

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterator[Task]:
        """Yield tasks that read index and transactions in RocksDB, and the messages for both. None if neither is in use."""
        request, used, segments = evidence.request, evidence.copy[self].used, evidence.segments
        if used is None or not evidence.all_read or not segments:
            return
        stretches = stretches_of(segments)
        each = None
        if used.transactions:  # known before they are collected, so that no more reach the driver than it holds
            each = MOST_HALVES if half_messages(segments) <= MOST_HALVES else 0
        late, place = request.not_after, (request.store, request.location, used.database)
        for s in segments:
            yield LogTableTask(part_scan(base, s.path, s.base_offset, s.size), stretches, used.index, each, late)
        if used.index:
            keys = hour_keys(segments, min(MOST_RANGES, 1 + used.database.size_bytes // RANGE_BYTES))
            part = 1 / (len(keys) + 1)
            for first, end in zip([b"", *keys], [*keys, None], strict=True):
                yield IndexTableTask(*place, stretches, first, end, part, late)
        if used.transactions:
            yield TransactionTableTask(*place, MOST_HALVES, late)

    def second_looks(self, evidence: Evidence, base: SegmentTask) -> Iterable[Task]:
        """Return a task that looks entry by entry at differing stretches of the index in RocksDB, if there are any."""
        used, results, segments = evidence.copy[self].used, evidence.results(self), evidence.segments
        if used is None or results.index is None or results.log is None or not results.read or results.index.damaged is not None:
            return []
        stretches = stretches_of(segments)
        wanted = index_difference(results.log, results.index, stretches, evidence.log).wanted
        if not wanted:
            return []
        places = np.array(wanted) * stretches.size + stretches.start
        own = [s for s in segments if ((places < s.base_offset + s.size) & (places + stretches.size > s.base_offset)).any()]
        scans = tuple(part_scan(base, s.path, s.base_offset, s.size) for s in own)
        index, late = results.index, evidence.request.not_after
        place = tuple(wanted), evidence.log, index.first, index.mark, index.hours
        return [IndexLookTask(scans, used.database, stretches, *place, late)] if scans else []

    def take(self, found: TableResults, result: object) -> None:
        if isinstance(result, LogTable):
            found.add_log(result)
        elif isinstance(result, IndexTable):
            found.add_index(result)
        elif isinstance(result, TransactionTable):
            found.transactions = result
        elif isinstance(result, IndexLook):
            found.look = result

    def not_read(self, found: TableResults, task: Task) -> None:
        found.late = True

    def view(self, evidence: Evidence) -> Tables:
        files, results = evidence.copy[self], evidence.results(self)
        log, index, difference = results.log, results.index, None
        if log is not None and index is not None:
            difference = index_difference(log, index, stretches_of(evidence.segments), evidence.log)
        return Tables(files.used, files.unnamed, results, difference)


def half_messages(segments: Sequence[SegmentSummary]) -> int:
    """Count the half messages, and marks of done ones, of these segments."""
    count = 0
    for segment in segments:
        wanted = [number for number, (topic, _) in enumerate(segment.queues) if topic in (HALF_TOPIC, DONE_TOPIC)]
        if wanted:
            runs = segment.runs[(segment.runs["walk"] & WALK_AUDIT) != 0]
            count += int(runs["records"][np.isin(runs["queue"], wanted)].sum())
    return count


TABLES = RocksTables()
