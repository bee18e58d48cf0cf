"""The results of one audit's tasks so far."""

from __future__ import annotations

from typing import Any

from schemas.rows import Finding, IndexFileSummary, QueueKey, QueueSummary, SegmentSummary
from store_io.audit.epoch_starts import EpochStartsResult, EpochStartsTask
from store_io.audit.queue_leftovers import LeftoverResult, LeftoverTask
from store_io.audit.shortcomings import Shortcomings
from store_io.audit.tables.table_tasks import IndexLookTask, LogTableTask
from store_io.audit.tables.table_view import TableResults
from store_io.audit.timer.timer_part import TimerPartTask, TimerResults
from store_io.base.packed import PackedMap, PackedWhenMany
from store_io.base.tasks import NotRead, Task, unpacked
from store_io.formats.consumequeue_reader import QueueGroup
from store_io.formats.dledger.entry_walk import DataTask
from store_io.formats.dledger.unit_reader import UnitTask
from store_io.formats.index_reader import IndexTask
from store_io.formats.rocksdb.index_table import IndexTableTask
from store_io.formats.rocksdb.queue_pass import KeyRangeTask
from store_io.formats.rocksdb.timer_table import TimerEntriesTask
from store_io.formats.rocksdb.transaction_table import TransactionTableTask
from store_io.formats.timer.timer_task import TimerTask
from store_io.rules.dledger.ledger_walks import MAX_STRETCHES, DataWalk, UnitWalk
from store_io.rules.prediction import ScanId
from store_io.scan.compaction.compacted_file import CompactedFileSummary, CompactedFileTask
from store_io.scan.queues.twin_queues import TwinGap, TwinTask, least_offset
from store_io.scan.segment_edges import EdgeTask, SegmentEdges
from store_io.scan.segment_scan import SegmentTask
from store_io.scan.stored_runs import RunShelf
from store_io.scan.summary_pickle import KeyTable

LEFTOVERS_LATE = "the time limit was reached: ConsumeQueue entries that lead to no message were not examined"
TWINS_LATE = "the time limit was reached: ConsumeQueues in files were not compared with those in RocksDB"
COMPACTED_LATE = "the time limit was reached: logs of compacted topics were not examined"
EPOCHS_LATE = "the time limit was reached: the starts of epochs were not looked up in the log"
LATE = (
    (LeftoverTask, LEFTOVERS_LATE), (TwinTask, TWINS_LATE), (CompactedFileTask, COMPACTED_LATE), (EpochStartsTask, EPOCHS_LATE),
)  # fmt: skip

TABLE_TASKS = (LogTableTask, IndexTableTask, TransactionTableTask, IndexLookTask)


class Collected:
    """Results by file, queue or scan. segments: those that were read, by physical offset; settled by `sort_segments`.

    file_queues, keyed_queues: in files, and in RocksDB; queue_problems: how many of them could not be read.
    late: files that the time did not suffice for.
    scans: every scan of the broker's own walks, second looks too.
    """

    def __init__(self, short: Shortcomings):
        self._short = short
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
        sentence = next((late for kind, late in LATE if isinstance(task, kind)), None)
        if not isinstance(task, (LeftoverTask, EpochStartsTask, TwinTask)):
            self.late.update(task.paths)
        if sentence is not None and sentence not in self._short.on_purpose:
            self._short.on_purpose.append(sentence)

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
                    self._short.cannot_read(edges.problem)
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
            self._say_dropped(result.path, "stretches of entries", result.stretches_dropped)
            self._say_dropped(result.path, "ranges of entries with other index units", result.unequal_dropped)
        elif isinstance(task, UnitTask):
            self.units[result.path] = result
            self._say_dropped(result.path, "runs of index units", result.runs_dropped)

    def _say_dropped(self, path: str, what: str, dropped: int) -> None:
        if dropped:
            self._short.add_new([f"{path}: {MAX_STRETCHES + dropped:,} {what}; only the first {MAX_STRETCHES:,} were judged"])

    def _count(self, result: Any) -> None:
        self.bytes_read += getattr(result, "bytes_read", 0)
        problem = getattr(result, "problem", "")
        if problem:
            self._short.add_new([problem])

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
