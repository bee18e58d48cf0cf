"""ConsumeQueues in RocksDB, as an audit asks for them: by ranges of keys, and held against the same queues in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property

from schemas.advice import Advice, Cause, Gap, LeftOut, Refusal, RefusalKind, Step
from schemas.finding_codes import Code
from schemas.rows import EarlierRun, Finding, PlanStep, QueueKey, QueueSummary
from store_io.base.packed import keys_of
from store_io.base.ranges import least_offset
from store_io.base.tasks import Task
from store_io.broker.loading import LoadedStore
from store_io.broker.queues.combination import (
    combination,
    combination_refusal,
    late_combination_refusal,
    light_from_rocksdb,
    light_twice,
    reads_rocksdb,
)
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.start_databases import folder_refusal
from store_io.broker.recovery import AskedRecovery, Fold
from store_io.broker.releases import BrokerRules
from store_io.kinds.queues.queue_kind import QUEUE_GROUP_COUNT, QUEUES
from store_io.kinds.rocksdb_queues.double_write_compare import TwinGap, TwinQueue, TwinResult, TwinTask
from store_io.kinds.rocksdb_queues.double_write_fold import CombinedFold
from store_io.kinds.rocksdb_queues.queue_pass import KeyRangeResult, KeyRangeTask
from store_io.kinds.rocksdb_queues.rocksdb_fold import KeyedLedgerFold, RocksFold
from store_io.log.entries.queue_table import KnownEnds, QueueTable, queue_table
from store_io.log.entries.stored_entries import EntryReader, KnownEntries
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Moment, Opening, Refusals, rebuilt
from store_io.model.opened_copy import OpenedCopy
from store_io.model.queue_views import KnownQueues
from store_io.rocksdb.database import NO_DATABASE
from store_io.source.byte_source import ByteSource


@dataclass
class RocksQueueResults:
    """Holds what was read of queues in RocksDB.

    problems: how many of them could not be read.
    findings: on the database.
    twin_gaps: where the two kinds of queues that are written twice differ.
    twin_from: the least physical offset to which an entry in RocksDB leads there; -1: none.
    """

    summaries: dict[QueueKey, QueueSummary] = field(default_factory=dict)
    problems: int = 0
    findings: list[Finding] = field(default_factory=list)
    twin_gaps: list[TwinGap] = field(default_factory=list)
    twin_from: int = -1


class Serves(Enum):
    """Names the queues that consumers are served from RocksDB."""

    NONE = auto()
    LIGHT = auto()
    ALL = auto()


@dataclass(frozen=True)
class QueueDatabase:
    """The queues in RocksDB of a copy.

    table: the ends of the queues; None if the broker keeps no queue there, or if a double write is not modelled.
    serves: the queues that consumers are served from there; all others of a double write are read in files.
    refusals: why a broker does not start.
    """

    source: ByteSource
    table: QueueTable | None = None
    serves: Serves = Serves.NONE
    refusals: Refusals = field(default_factory=dict)

    @property
    def served_table(self) -> QueueTable | None:
        """Return the table if consumers are served from there; None: they are served from files, but for light queues perhaps."""
        return self.table if self.serves == Serves.ALL else None

    @property
    def light_table(self) -> QueueTable | None:
        """Return the table if consumers are served light queues from there, and all others from files."""
        return self.table if self.serves == Serves.LIGHT else None

    @cached_property
    def entries(self) -> KnownEntries:
        """Return what reads single entries for a recovery."""
        return KnownEntries(EntryReader(self.source, self.table.database if self.table is not None else NO_DATABASE))


class RocksQueues(Kind[QueueDatabase, RocksQueueResults, RocksQueueResults]):
    """ConsumeQueues in RocksDB, alone or beside the same queues in files."""

    name = "rocksdb_queues"
    task_types = (KeyRangeTask, TwinTask)
    left_out = ((TwinTask, LeftOut.DOUBLE_WRITE),)
    looks_again = (TwinTask,)
    nothing_found = RocksQueueResults

    def open(self, opening: Opening) -> QueueDatabase:
        rules, double_write = opening.rules, opening.queues_in_files.double_write
        refusals: dict[Moment, Refusal | None] = {}
        if rules.combined_queues:
            refusals = {Moment.BY_SETTINGS: combination_refusal(rules), Moment.AT_LAST: late_combination_refusal(rules)}
        if not (rules.rocksdb_queues or double_write):
            return QueueDatabase(opening.source, refusals=refusals)
        table = queue_table(opening.source, opening.tree, rules)
        if table.unread:
            opening.gaps.cannot_read(table.unread)
        opening.unmodelled += _unmodelled(table, opening.loaded, rules)
        refusals |= {Moment.IN_LOAD: folder_refusal(opening.tree, rules), Moment.AFTER_FILES: _mark_refusal(table)}
        light = Serves.LIGHT if light_from_rocksdb(rules) else Serves.NONE
        return QueueDatabase(opening.source, table, Serves.ALL if reads_rocksdb(rules) else light, refusals)

    def refusals(self, facts: QueueDatabase) -> Refusals:
        return facts.refusals

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        beside = _beside_double_write(copy)
        return Advice(Step.NO_DOUBLE_WRITE_REPAIR, (beside,)) if beside else None

    def prepare_scan(self, request: AuditRequest, copy: OpenedCopy, task: SegmentTask) -> SegmentTask:
        """Have the scan look up each message's entries in RocksDB, if consumers are served from there."""
        table = copy[self].light_table or copy[self].served_table
        if table is None:
            return task
        stored = table.queues
        if copy[self].serves == Serves.LIGHT:
            stored = frozenset(key for key in stored if key[0].startswith(LMQ_PREFIX))
        return replace(task, database=table.database, stored_queues=stored)

    def first_tasks(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        """Yield tasks that together read every entry of the database, each about as many.

        Recovery needs none of them, and so does the quick level.
        """
        table = copy[self].table
        if table is None or request.quick or table.unread or not table.opened:
            return
        maxima = table.ends.maxima
        for first, end, queues, entries in table.key_ranges():
            yield KeyRangeTask(
                request.store,
                request.location,
                table.database,
                first,
                end,
                {key: maxima[key] for key in queues},
                copy.log_min,
                min(entries, 1 << 40),
                request.not_after,
            )

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterator[Task]:
        """Yield tasks that hold queues in files against the same in RocksDB."""
        request, copy = evidence.request, evidence.copy
        table = copy[self].table
        if table is None or not copy.queues_in_files.double_write or request.quick or not table.opened or table.unread:
            return
        in_files, files = evidence.results(QUEUES).summaries, copy.queues_in_files.written.files
        ends, tags, light = table.ends, not copy.rules.value("enableConsumeQueueExt"), light_twice(copy.rules)
        queues = []
        for key in keys_of(files, ends.maxima):
            if key[0].startswith(LMQ_PREFIX) and not light:
                continue
            used = in_files[key].used if key in in_files else []
            numbers = (used[0][0], used[-1][1]) if used else (0, 0)
            queues.append(TwinQueue(key, files.get(key, ()), numbers, ends.maxima.get(key), ends.minima.get(key)))
        for at in range(0, len(queues), QUEUE_GROUP_COUNT):
            yield TwinTask(
                request.store,
                request.location,
                table.database,
                tuple(queues[at : at + QUEUE_GROUP_COUNT]),
                copy.log_min,
                tags,
                request.not_after,
            )

    def take(self, found: RocksQueueResults, result: KeyRangeResult | TwinResult) -> None:
        if isinstance(result, TwinResult):
            found.twin_gaps += result.gaps
            found.twin_from = least_offset(found.twin_from, result.keyed_from)
        else:
            found.findings += result.findings
            found.problems += sum(bool(summary.problem) for summary in result.queues)
            found.summaries.update((summary.key, summary) for summary in result.queues)

    def start_is_unknown(self, copy: OpenedCopy, found: RocksQueueResults, late: Set[str]) -> bool:
        return bool(found.problems)

    def add_to_recovery(self, copy: OpenedCopy, found: RocksQueueResults, asked: AskedRecovery) -> None:
        table, entries = copy[self].table, copy[self].entries
        if table is None:
            return
        bad_ends = KnownEnds(entries.reader, table) if table.gaps else None
        asked.more |= {"ends": table.ends, "stored": entries, "bad_ends": bad_ends}
        if asked.loaded.ledger is not None:
            asked.made = KeyedLedgerFold
        else:
            asked.made = CombinedFold if copy.queues_in_files.double_write else RocksFold
            asked.more["write_queues"] = copy.write_queues

    def doubts(self, copy: OpenedCopy, found: RocksQueueResults, recovery: Fold) -> Iterator[Gap]:
        """Yield why the prediction stays open: RocksDB compacts bad bytes while the broker starts, or a race decides.

        Each write after such a compaction fails, the database is closed, and the broker's next act depends on the moment
        (rocksdb.md 5).
        """
        table = copy[self].table
        if table is None or not isinstance(recovery, RocksFold):
            return
        entries = [f.file for f in found.findings if f.code == Code.QUEUE_DATABASE_DAMAGED]
        ends = [table.damaged[0]] if table.damaged is not None else []
        bad = entries if recovery.compacts(table.entry_runs) else []
        bad += ends if recovery.compacts(table.end_tables) else []
        if bad:
            yield Gap(Cause.ROCKSDB_COMPACTS_BAD_BYTES, bad[0], (table.database.folder,))
        if recovery.undecided:
            yield recovery.undecided

    def read_queues(self, copy: OpenedCopy, found: RocksQueueResults, served: bool) -> Mapping[QueueKey, QueueSummary]:
        """Return the queues that were read, as the kind of queues in files does."""
        if copy[self].serves != Serves.LIGHT:
            return found.summaries if served is (copy[self].serves == Serves.ALL) else {}
        return {key: summary for key, summary in found.summaries.items() if key[0].startswith(LMQ_PREFIX) is served}

    def known_queues(self, copy: OpenedCopy, known: KnownQueues) -> KnownQueues:
        """Return what is known of all queues, with the database from which consumers are served."""
        table = copy[self].table
        if table is None or copy[self].serves == Serves.NONE:
            return known
        folder = table.database.folder
        return replace(known, database=folder) if copy[self].serves == Serves.ALL else replace(known, light_database=folder)

    def unchanged(self, copy: OpenedCopy, found: RocksQueueResults, before: EarlierRun, gone: bool) -> bool:
        """Return False if consumers are served from RocksDB: no digest says whether a database still holds the same entries."""
        return copy[self].served_table is None

    def left_by_start(self, evidence: Evidence, serious: Sequence[Finding]) -> Iterable[PlanStep]:
        """Return a step for the whole database, if consumers are served from there and a finding blames its files."""
        table = evidence.copy[self].served_table
        if table is None:
            return ()
        folder = table.database.folder
        return rebuilt(serious, lambda file: folder if file == folder or file.startswith(f"{folder}/") else "").values()


ROCKS_QUEUES = RocksQueues()


def _beside_double_write(copy: OpenedCopy) -> str:
    """Name a feature in use whose effect on a double write of queues no repair knows, or ""."""
    rules = copy.rules
    if not rules.combined_queues:
        return ""
    if copy.batch_topics:
        return "topics of type BatchCQ"
    if rules.value("duplicationEnable"):
        return "duplicationEnable"
    loads, light_alone = combination(rules).loads, combination(rules).light_in_rocksdb
    if rules.lmq_in_files != rules.lmq_in_rocksdb and not light_alone:
        return f"light queues in {'files' if rules.lmq_in_files else 'RocksDB'} alone"
    return (
        f"queues of one kind alone (combineCQLoadingCQTypes={rules.value('combineCQLoadingCQTypes')})" if len(loads) == 1 else ""
    )


def _mark_refusal(table: QueueTable) -> Refusal | None:
    """Return why every release ends over a mark that cannot be read."""
    if table.damaged is None or not table.mark_unreadable:
        return None
    return Refusal(RefusalKind.QUEUE_MARK, table.damaged[0], actual=table.damaged[1])


def _unmodelled(table: QueueTable, loaded: LoadedStore, rules: BrokerRules) -> list[Gap]:
    """Return gaps of queues in RocksDB that the rules do not cover."""
    found = []
    why = table.hidden_unknown
    if rules.combined_queues:
        why = why or "start() writes to such queues where they are written twice as well, and RocksDB then compacts them"
    elif rules.value("enableDLegerCommitLog"):
        why = why or "beside a DLedger CommitLog"
    if table.gaps and table.damaged is not None and not table.mark_unreadable and why:
        file, reason = table.damaged
        found.append(Gap(Cause.ROCKSDB_BAD_ENDS, file, (table.database.folder, reason, why)))
    if not loaded.segments and table.ends.maxima:
        found.append(Gap(Cause.ROCKSDB_WITHOUT_LOG, table.database.folder))
    return found
