"""The results of one audit's tasks so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.advice import Cause, Gap, LeftOut
from schemas.rows import Finding, IndexFileSummary, QueueKey, QueueSummary, SegmentSummary
from store_io.base.packed import PackedMap, PackedWhenMany
from store_io.base.tasks import NotRead, Task, unpacked
from store_io.broker.prediction import ScanId
from store_io.kinds.all_kinds import KINDS
from store_io.kinds.index.index_kind import INDEX
from store_io.kinds.queues.consumequeue_reader import QueueGroup
from store_io.kinds.rocksdb_queues.double_write_compare import TwinGap, TwinTask, least_offset
from store_io.kinds.rocksdb_queues.queue_pass import KeyRangeTask
from store_io.log.scan.segment_edges import EdgeTask, SegmentEdges
from store_io.log.scan.segment_scan import SegmentTask
from store_io.log.scan.stored_runs import KeyTable, RunShelf
from store_io.model.found_gaps import Gaps
from store_io.model.queue_leftovers import LeftoverResult, LeftoverTask

LATE = ((LeftoverTask, LeftOut.LEFTOVERS), (TwinTask, LeftOut.DOUBLE_WRITE))


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
        self.edges: dict[str, SegmentEdges] = {}
        self.scans: dict[ScanId, SegmentSummary] = {}
        self.leftovers: PackedMap[QueueKey, LeftoverResult] = PackedMap(weigh=LeftoverResult.weight)
        self._findings: PackedWhenMany[Finding] = PackedWhenMany()  # of segments
        self._runs = RunShelf()
        self._kinds = {task: kind for kind in KINDS for task in kind.tasks}
        self.found: dict[str, Any] = {kind.name: kind.nothing_found() for kind in KINDS}
        self.database_findings: list[Finding] = []
        self.late: set[str] = set()
        self.bytes_read = 0

    @property
    def index(self) -> Mapping[str, IndexFileSummary]:
        """Return the index files that were read, by path."""
        files: Mapping[str, IndexFileSummary] = self.found[INDEX.name].files
        return files

    def not_read(self, task: Task) -> None:
        """The time was spent before this task began."""
        task = unpacked(task)
        kind = self._kinds.get(type(task))
        left_out = next((late for of, late in LATE if isinstance(task, of)), None)
        if kind is not None:
            kind.not_read(self.found[kind.name], task)
            left_out = kind.left_out
        if kind.reads_own_files if kind is not None else left_out is None:
            self.late.update(task.paths)
        if left_out is not None:
            self._gaps.add([Gap(Cause.TIME_LIMIT, values=(left_out,))])

    def take(self, task: Task, result: Any, scan: ScanId | None = None) -> None:
        """Take in what a task has found. scan: which of the broker's walks a scan of a segment is."""
        assert not isinstance(result, NotRead)
        task = unpacked(task)
        self._count(result)
        kind = self._kinds.get(type(task))
        if kind is not None:
            self._gaps.add(kind.take(self.found[kind.name], task, result))
        elif isinstance(task, SegmentTask):
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
        elif isinstance(task, LeftoverTask):
            self.leftovers.add({result.key: result})

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
