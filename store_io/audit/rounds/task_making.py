"""The tasks of an audit, made from the files of an opened copy."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from schemas.layouts.commitlog_layout import MIN_SIZE_V1_BYTES
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import MappedFile
from store_io.base.packed import items_of
from store_io.base.tasks import Task
from store_io.broker.index_state import IndexHeader
from store_io.broker.prediction import Needs, ScanId
from store_io.kinds.all_kinds import KINDS
from store_io.log.scan.segment_edges import EdgeTask, edge_tasks
from store_io.log.scan.segment_scan import PartialWalk, SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import MAX_PHY_OFFSET, OpenedCopy
from store_io.model.queue_leftovers import LeftoverTask
from store_io.source.store_dir import UNREAD_KINDS

EDGES_TOGETHER = 128  # segments


class TaskMaker:
    """Makes tasks, and knows which of the broker's scans each is. base: a segment's task without a segment."""

    def __init__(self, request: AuditRequest, copy: OpenedCopy):
        self._request, self._copy = request, copy
        self._made: dict[int, tuple[Task, ScanId | None]] = {}  # by id, which stays the task's own while the task is kept
        self._loaded_place = {f.path: i for i, f in enumerate(copy.loaded.segments)}
        self.live_ends: dict[str, int] = {}  # of data files of a DLedger log, once they were walked
        self.base = self._base()

    def _base(self) -> SegmentTask:
        request, copy = self._request, self._copy
        base = SegmentTask(
            store=request.store,
            path="",
            base_offset=0,
            size=0,
            location=request.location,
            rules=copy.rules,
            batch_topics=copy.batch_topics,
            expect_queues=not copy.unmodelled,
            log_end=self._log_end(),
            unclean=copy.unclean,
            digest=request.digests,
            window_bytes=request.window_bytes,
            decoder=request.decoder,
        )
        for kind in KINDS:
            base = kind.prepare_scan(request, copy, base)
        return base

    def _log_end(self) -> int:
        """Return the log's end by the listing. It is beyond all physical offsets if the length of a segment is not known."""
        if any(entry.kind in UNREAD_KINDS for entry in self._copy.tree.children(COMMITLOG)):
            return MAX_PHY_OFFSET
        return max((f.start + f.size for f in self._copy.segment_files), default=0)

    def scan_of(self, task: Task) -> ScanId | None:
        """Return the broker's scan that a segment's task is; None if the broker does not load the segment."""
        return self._made[id(task)][1]

    def _keep(self, task: SegmentTask, scan: ScanId | None) -> Task:
        self._made[id(task)] = task, scan
        return task

    def segments(self, files: Sequence[MappedFile]) -> list[Task]:
        """Return a task for each of these segments. One that was damaged is read however late it is."""
        tasks: list[Task] = []
        counts = messages_by_index([*self._copy.headers.values()], files)
        for file, messages in zip(files, counts, strict=True):
            number = self._loaded_place.get(file.path)
            not_after = 0.0 if self._request.was_damaged(file.path) else self._request.not_after
            task = replace(
                self.base,
                path=file.path,
                base_offset=file.start,
                size=file.size,
                live_end=self.live_ends.get(file.path, 0),
                not_after=not_after,
                messages=messages,
            )
            tasks.append(self._keep(task, ScanId("segment", number) if number is not None else None))
        return tasks

    def rescans(self, needs: Needs, asked: Needs, read: Collection[str]) -> list[Task]:
        """Return a task for each scan that `needs` names, with all cuts ever asked of it.

        read: paths of segments that were read.
        """
        scans = {*needs.scans, *needs.phy_cuts, *needs.queue_cuts, *needs.number_cuts, *needs.marks}
        ordered = sorted(scans, key=lambda s: (s.segment, s.kind, s.start, s.limit))
        return [self._rescan(scan, asked, read) for scan in ordered]

    def _rescan(self, scan: ScanId, asked: Needs, read: Collection[str]) -> Task:
        file = self._copy.loaded.segments[scan.segment]
        task = replace(
            self.base,
            path=file.path,
            base_offset=file.start,
            size=file.size,
            cuts=asked.cuts(scan),
            index_marks=tuple(sorted(asked.marks.get(scan, ()))),
            live_end=self.live_ends.get(file.path, 0),
            # Of what was read already a second look is a little more, and decides the plan.
            not_after=0.0 if file.path in read else self._request.not_after,
        )
        if scan.kind == "from":
            task = replace(task, broker_from=scan.start, walk_audit=False)
        elif scan.kind != "segment":
            task = replace(task, only=PartialWalk(scan.kind, scan.start, scan.limit))
        return self._keep(task, scan)

    def edges(self) -> list[EdgeTask]:
        """Return tasks for the edges of all segments."""
        request, copy = self._request, self._copy
        return edge_tasks(request.store, request.location, copy.rules, copy.segment_files, EDGES_TOGETHER)

    def leftovers(self, evidence: Evidence) -> list[LeftoverTask]:
        """Return a task for each queue with entries that no message of the queue matched."""
        request = self._request
        return [
            LeftoverTask(
                request.store,
                request.location,
                key,
                view.batch,
                view.files,
                tuple(view.leftover),
                tuple(view.missing),
                tuple(view.covered),
                evidence.log,
                request.not_after,
                self.base.database if view.keyed else None,
            )
            for key, view in items_of(evidence.views)
            if view.leftover
        ]


def messages_by_index(headers: Sequence[IndexHeader], segments: Sequence[MappedFile]) -> list[int]:
    """About how many messages each segment holds, by the entries that index files say to have. -1 where there are none. It
    decides no more than what is read first. headers: in the order of the files."""
    entries = np.array([max(0, header.index_count - 1) for header in headers], np.int64)
    if not entries.any():
        return [-1] * len(segments)
    ends = np.maximum.accumulate([headers[0].begin_phy_offset, *(header.end_phy_offset for header in headers)])
    reached = np.concatenate([[0.0], np.cumsum(entries, dtype=float)])
    starts = np.array([segment.start for segment in segments], float)
    sizes = np.array([segment.size for segment in segments], float)
    found = np.interp(starts + sizes, ends, reached) - np.interp(starts, ends, reached)
    counted: list[int] = np.minimum(found, sizes / MIN_SIZE_V1_BYTES).astype(np.int64).tolist()
    return counted
