"""The results of one audit's tasks so far."""

from __future__ import annotations

from typing import Any

from schemas.gaps import Cause, Gap, LedgerRows, LeftOut
from schemas.rows import Finding, IndexFileSummary, QueueKey, QueueSummary, SegmentSummary
from store_io.base.packed import PackedMap, PackedWhenMany
from store_io.base.tasks import NotRead, Task, unpacked
from store_io.broker.prediction import ScanId
from store_io.kinds.compaction.compacted_file import CompactedFileSummary, CompactedFileTask
from store_io.kinds.controller.epoch_starts import EpochStartsResult, EpochStartsTask
from store_io.kinds.dledger.entry_walk import DataTask
from store_io.kinds.dledger.ledger_walks import MAX_STRETCHES, DataWalk, UnitWalk
from store_io.kinds.dledger.unit_reader import UnitTask
from store_io.kinds.index.index_reader import IndexTask
from store_io.kinds.queues.consumequeue_reader import QueueGroup
from store_io.kinds.rocksdb_queues.double_write_compare import TwinGap, TwinTask, least_offset
from store_io.kinds.rocksdb_queues.queue_pass import KeyRangeTask
from store_io.kinds.rocksdb_tables.index_table import IndexTableTask
from store_io.kinds.rocksdb_tables.table_tasks import IndexLookTask, LogTableTask
from store_io.kinds.rocksdb_tables.table_view import TableResults
from store_io.kinds.rocksdb_tables.timer_table import TimerEntriesTask
from store_io.kinds.rocksdb_tables.transaction_table import TransactionTableTask
from store_io.kinds.timers.timer_part import TimerPartTask, TimerResults
from store_io.kinds.timers.timer_task import TimerTask
from store_io.log.scan.segment_edges import EdgeTask, SegmentEdges
from store_io.log.scan.segment_scan import SegmentTask
from store_io.log.scan.stored_runs import KeyTable, RunShelf
from store_io.model.found_gaps import Gaps
from store_io.model.queue_leftovers import LeftoverResult, LeftoverTask

LATE = (
    (LeftoverTask, LeftOut.LEFTOVERS),
    (TwinTask, LeftOut.DOUBLE_WRITE),
    (CompactedFileTask, LeftOut.COMPACTED),
    (EpochStartsTask, LeftOut.EPOCHS),
)

TABLE_TASKS = (LogTableTask, IndexTableTask, TransactionTableTask, IndexLookTask)


class Collected:
    """Results by file, queue or scan. segments: those that were read, by physical offset; settled by `sort_segments`.

    file_queues, keyed_queues: in files, and in RocksDB; queue_problems: how many of them could not be read.
    late: files that the time did not suffice for.
    scans: every scan of the broker's own walks, second looks too.
    """

    def __init__(self, gaps: Gaps):
        self._gaps = gaps
        self.segments: list[SegmentSummary] = []
        self.by_path: dict[str, SegmentSummary] = {}
        self.keys = KeyTable()
        self.file_queues: PackedMap[QueueKey, QueueSummary] = PackedMap(weigh=QueueSummary.weight)
        self.keyed_queues: dict[QueueKey, QueueSummary] = {}
        self.queue_problems = 0
        self.twin_gaps: list[TwinGap] = []
        self.twin_from = -1
        self.index: dict[str, IndexFileSummary] = {}
        self.edges: dict[str, SegmentEdges] = {}
        self.scans: dict[ScanId, SegmentSummary] = {}
        self.leftovers: PackedMap[QueueKey, LeftoverResult] = PackedMap(weigh=LeftoverResult.weight)
        self._findings: PackedWhenMany[Finding] = PackedWhenMany()  # of segments and index files
        self._runs = RunShelf()
        self.compacted: list[CompactedFileSummary] = []
        self.timers = TimerResults()
        self.tables = TableResults()
        self.ledger: dict[str, DataWalk] = {}
        self.units: dict[str, UnitWalk] = {}
        self.database_findings: list[Finding] = []
        self.late: set[str] = set()
        self.no_epoch_starts: list[int] = []
        self.bytes_read = 0

    def not_read(self, task: Task) -> None:
        """The time was spent before this task began."""
        task = unpacked(task)
        if isinstance(task, TimerPartTask):
            self.timers.not_read()
        if isinstance(task, TABLE_TASKS):
            self.tables.late = True
        left_out = [late for kind, late in LATE if isinstance(task, kind)]
        if not isinstance(task, (LeftoverTask, EpochStartsTask, TwinTask)):
            self.late.update(task.paths)
        self._gaps.add(Gap(Cause.TIME_LIMIT, values=(late,)) for late in left_out)

    def take(self, task: Task, result: Any, scan: ScanId | None = None) -> None:
        """Take in what a task has found. scan: which of the broker's walks a scan of a segment is."""
        assert not isinstance(result, NotRead)
        task = unpacked(task)
        self._count(result)
        if isinstance(task, SegmentTask):
            self._take_segment(result, scan)
        elif isinstance(task, QueueGroup):
            self.file_queues.add({summary.key: summary for summary in result})
            for summary in result:
                self.queue_problems += bool(summary.problem)
                self._count(summary)
        elif isinstance(task, KeyRangeTask):
            self.database_findings += result.findings
            for summary in result.queues:
                self.queue_problems += bool(summary.problem)
                self.keyed_queues[summary.key] = summary
        elif isinstance(task, TwinTask):
            self.twin_gaps += result.gaps
            self.twin_from = least_offset(self.twin_from, result.keyed_from)
        elif isinstance(task, EdgeTask):
            for edges in result:
                self.edges[edges.path] = edges
                self.bytes_read += edges.bytes_read
                if edges.problem:
                    self._gaps.cannot_read(edges.problem)
        elif isinstance(task, IndexTask):
            result.findings = self._findings.of(result.findings)
            self.index[result.path] = result
        elif isinstance(task, EpochStartsTask):
            assert isinstance(result, EpochStartsResult)
            self.no_epoch_starts = result.no_record
        elif isinstance(task, TimerTask):
            self.timers.files = result
        elif isinstance(task, LogTableTask):
            self.tables.add_log(result)
        elif isinstance(task, IndexTableTask):
            self.tables.add_index(result)
        elif isinstance(task, TransactionTableTask):
            self.tables.transactions = result
        elif isinstance(task, IndexLookTask):
            self.tables.look = result
        elif isinstance(task, TimerEntriesTask):
            self.timers.entries = result
        elif isinstance(task, TimerPartTask):
            self.timers.add(result)
        elif isinstance(task, LeftoverTask):
            self.leftovers.add({result.key: result})
        elif isinstance(task, CompactedFileTask):
            self.compacted.append(result)
        elif isinstance(task, DataTask):
            self.ledger[result.path] = result
            self._say_dropped(result.path, LedgerRows.STRETCHES, result.stretches_dropped)
            self._say_dropped(result.path, LedgerRows.OTHER_UNITS, result.unequal_dropped)
        elif isinstance(task, UnitTask):
            self.units[result.path] = result
            self._say_dropped(result.path, LedgerRows.UNIT_RUNS, result.runs_dropped)

    def _say_dropped(self, path: str, rows: LedgerRows, dropped: int) -> None:
        if dropped:
            self._gaps.add([Gap(Cause.LEDGER_LARGE, path, (rows, MAX_STRETCHES + dropped, MAX_STRETCHES))])

    def _count(self, result: Any) -> None:
        self.bytes_read += getattr(result, "bytes_read", 0)
        problem: Gap | None = getattr(result, "problem", None)
        if problem:
            self._gaps.add([problem])

    def _take_segment(self, summary: SegmentSummary, scan: ScanId | None) -> None:
        self.keys.share(summary)
        summary.findings = self._findings.of(summary.findings)
        summary = self._runs.of(summary)
        if scan is not None:
            self.scans[scan] = summary
        if is_whole(scan):
            self.by_path[summary.path] = summary
            self.late.discard(summary.path)
            self.segments = []

    def sort_segments(self) -> None:
        """Settle `segments` after some were taken in."""
        if not self.segments:
            self.segments = sorted(self.by_path.values(), key=lambda s: (s.base_offset, s.path))


def is_whole(scan: ScanId | None) -> bool:
    """Say whether such a scan is the audit's own of a whole segment. Others are a part of the broker's walk alone."""
    return scan is None or scan.kind == "segment"
