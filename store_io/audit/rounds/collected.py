"""The results of one audit's tasks so far."""

from __future__ import annotations

from typing import Any

from schemas.advice import Cause, Gap
from schemas.rows import EarlierRun, Finding, SegmentSummary
from store_io.base.packed import PackedWhenMany
from store_io.base.tasks import NotRead, Task, unpacked
from store_io.broker.prediction import ScanId
from store_io.kinds.all_kinds import KINDS
from store_io.log.scan.segment_edges import EdgeTask, SegmentEdges
from store_io.log.scan.segment_scan import SegmentTask
from store_io.log.scan.stored_runs import KeyTable, RunShelf
from store_io.model.found_gaps import Gaps
from store_io.model.kind import Kind, Results
from store_io.model.opened_copy import OpenedCopy


class Collected:
    """Results by file, queue or scan. segments: those that were read, by physical offset; settled by `sort_segments`.

    found: the results of each kind of files, by the kind's name.
    late: files that the time did not suffice for.
    scans: every scan of the broker's own walks, second looks too.
    """

    def __init__(self, gaps: Gaps):
        self._gaps = gaps
        self.segments: list[SegmentSummary] = []
        self.by_path: dict[str, SegmentSummary] = {}
        self.keys = KeyTable()
        self.edges: dict[str, SegmentEdges] = {}
        self.scans: dict[ScanId, SegmentSummary] = {}
        self._findings: PackedWhenMany[Finding] = PackedWhenMany()  # of segments
        self._runs = RunShelf()
        self._kinds = {task: kind for kind in KINDS for task in kind.task_types}
        self.found: dict[str, Any] = {kind.name: kind.nothing_found() for kind in KINDS}
        self.late: set[str] = set()
        self.bytes_read = 0

    def results(self, kind: Kind[Any, Results, Any]) -> Results:
        """Return what the tasks of a kind of files have found so far."""
        found: Results = self.found[kind.name]
        return found

    def unchanged(self, copy: OpenedCopy, before: EarlierRun, gone: bool) -> bool:
        """Say whether all kinds hold the entries that an earlier run has compared. gone: see `Kind.unchanged`."""
        return all(kind.unchanged(copy, self.found[kind.name], before, gone) for kind in KINDS)

    def not_read(self, task: Task) -> None:
        """Note that the time was spent before this task began."""
        task = unpacked(task)
        kind = self._kinds.get(type(task))
        if kind is not None:
            kind.not_read(self.found[kind.name], task)
            self._gaps.add(Gap(Cause.TIME_LIMIT, values=(late,)) for of, late in kind.left_out if isinstance(task, of))
        if kind is None or type(task) not in kind.looks_again:
            self.late.update(task.paths)

    def take(self, task: Task, result: Any, scan: ScanId | None = None) -> None:
        """Take in what a task has found. scan: which of the broker's walks a scan of a segment is."""
        assert not isinstance(result, NotRead)
        task = unpacked(task)
        kind = self._kinds.get(type(task))
        parts = result if isinstance(result, list) else [result]
        self.bytes_read += sum(getattr(part, "bytes_read", 0) for part in parts)
        problems = [part.problem for part in parts if getattr(part, "problem", None)]
        if kind is not None:
            self._gaps.add(problems)
            self._gaps.add(kind.gaps_of(result))
            kind.take(self.found[kind.name], result)
        elif isinstance(task, SegmentTask):
            self._gaps.add(problems)
            self._take_segment(result, scan)
        elif isinstance(task, EdgeTask):
            self.edges.update((edges.path, edges) for edges in parts)
            for problem in problems:
                self._gaps.cannot_read(problem)
        else:
            raise TypeError(f"no kind takes the result of {type(task).__name__}")

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
