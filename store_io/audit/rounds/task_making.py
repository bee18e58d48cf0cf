"""The tasks of an audit, made from the files of an opened copy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from schemas.commitlog_layout import MIN_SIZE_V1_BYTES
from schemas.rows import MappedFile, QueueKey, SegmentSummary
from schemas.store_names import BATCH_QUEUES, COMMITLOG, EXT, QUEUES
from store_io.base.packed import PackedMap, items_of
from store_io.base.tasks import Task
from store_io.broker.index_state import IndexHeader
from store_io.broker.loading import numbered_files
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.queues.combination import light_expected
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.kinds.compaction.compacted_file import CompactedFileTask
from store_io.kinds.compaction.log_messages import LogFiles
from store_io.kinds.compaction.sparse_recovery import RECOVERED_FILES
from store_io.kinds.controller.epoch_starts import MOST_STARTS, EpochPlace, EpochStartsTask
from store_io.kinds.dledger.entry_walk import DataTask
from store_io.kinds.dledger.unit_reader import UnitTask
from store_io.kinds.index.index_files import IndexFileRef
from store_io.kinds.index.index_reader import IndexTask
from store_io.kinds.rocksdb_tables.timer_table import TimerEntriesTask
from store_io.kinds.timers.timer_part import TimerPartTask, part_scan, with_timers
from store_io.kinds.timers.timer_recovery import recovery_begin
from store_io.kinds.timers.timer_task import TimerTask
from store_io.kinds.timers.timer_view import TIMER_QUEUE, TimerView
from store_io.log.scan.segment_edges import EdgeTask, edge_tasks
from store_io.log.scan.segment_scan import PartialWalk, SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.model.opened_copy import MAX_PHY_OFFSET, OpenedCopy
from store_io.source.store_dir import UNREAD_KINDS

EDGES_TOGETHER = 128  # segments
TIMERS_TOGETHER = 500_000  # of them in one task
MAX_TIMER_PARTS = 64  # each reads the log once more
MAX_TIMERS = 400_000  # timer messages and copies of a store, and units, that the driver holds


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
        table = copy.light_table or copy.queue_table
        stored = table.queues if table is not None else frozenset()
        if copy.light_table is not None:
            stored = frozenset(key for key in stored if key[0].startswith(LMQ_PREFIX))
        ext = (
            (key, tuple(numbered_files(copy.tree, f"{EXT}/{folder.partition('/')[2]}")))
            for key, folder in (copy.queue_folders.items() if copy.tree.is_folder(EXT) else ())
        )
        return SegmentTask(
            store=request.store,
            path="",
            base_offset=0,
            size=0,
            location=request.location,
            rules=copy.rules,
            batch_topics=copy.batch_topics,
            queue_files=self._files_below(QUEUES),
            expect_queues=not copy.unmodelled,
            batch_queue_files=self._files_below(BATCH_QUEUES),
            ext_files=PackedMap.of(((key, files) for key, files in ext if files), weigh=len),
            database=table.database if table is not None else None,
            stored_queues=stored,
            index_files=() if request.quick else self._index_refs(),
            lmq=light_expected(copy.rules),
            log_end=self._log_end(),
            most_timers=max(1, MAX_TIMERS // max(1, len(copy.segment_files))) if self._has_timers() else 0,
            unclean=copy.unclean,
            digest=request.digests,
            window_bytes=request.window_bytes,
            decoder=request.decoder,
        )

    def _has_timers(self) -> bool:
        """Whether there is anything that a scan must hold timer messages against."""
        timers = self._copy.timers or self._copy.idle_timers
        return (
            timers is not None
            and timers.judged
            and bool(timers.files or timers.table is not None or TIMER_QUEUE in self._copy.queue_folders)
        )

    def timers(self) -> list[Task]:
        """The task that reads the timer store; none of a copy without one."""
        request, timers = self._request, self._copy.timers or self._copy.idle_timers
        if timers is None or not timers.judged or request.quick:
            return []
        begin = recovery_begin(timers.flush_position, timers.files)
        return [
            TimerTask(
                request.store,
                request.location,
                timers.files,
                timers.wheel,
                timers.wheel_bytes,
                timers.check,
                begin,
                self._copy.rules.timer_precision,
                self._copy.unclean,
                MAX_TIMERS,
                request.not_after,
            ),
            *self._timer_entries(),
        ]

    def _timer_entries(self) -> list[Task]:
        """Return the task that reads timers in RocksDB, if there are any."""
        request, timers = self._request, self._copy.timers or self._copy.idle_timers
        table = timers.table if timers is not None else None
        if table is None or table.database.absent or table.damaged is not None:
            return []
        return [TimerEntriesTask(request.store, request.location, table.database, MAX_TIMERS, request.not_after)]

    def timer_parts(self, view: TimerView | None, segments: Sequence[SegmentSummary]) -> list[Task]:
        """Return tasks for parts of a store's timer messages, if these are too many to be held together."""
        if view is None or view.held or view.damaged:
            return []
        found, rows = with_timers(segments)
        parts = -(-max(rows, view.files.unit_count, view.entries.count) // TIMERS_TOGETHER)
        if parts > MAX_TIMER_PARTS or not found:
            return []
        scans = tuple(part_scan(self.base, s.path, s.base_offset, s.size) for s in found)
        late = self._request.not_after
        return [
            TimerPartTask(scans, view.parts.files, view.database, view.log, view.precision, view.state, part, parts, late)
            for part in range(parts)
        ]

    def _files_below(self, kind: str) -> Mapping[QueueKey, tuple[MappedFile, ...]]:
        files = self._copy.queue_files
        items = ((key, files[key]) for key, folder in self._copy.queue_folders.items() if folder.startswith(kind + "/"))
        return PackedMap.of(((key, own) for key, own in items if own), weigh=len)

    def _log_end(self) -> int:
        """Return the log's end by the listing. It is beyond all physical offsets if the length of a segment is not known."""
        if any(entry.kind in UNREAD_KINDS for entry in self._copy.tree.children(COMMITLOG)):
            return MAX_PHY_OFFSET
        return max((f.start + f.size for f in self._copy.segment_files), default=0)

    def _index_refs(self) -> tuple[IndexFileRef, ...]:
        """Return all files of the index. None if not all can be read: messages would lack the entries of the rest."""
        files = self._copy.index_files
        return tuple(map(self._index_ref, range(len(files)))) if len(files) == len(self._copy.headers) else ()

    def _index_ref(self, number: int) -> IndexFileRef:
        files, headers = self._copy.index_files, self._copy.headers
        file = files[number]
        header = headers[file.path]
        return IndexFileRef(
            path=file.path,
            size=file.size,
            begin_phy_offset=header.begin_phy_offset,
            end_phy_offset=header.end_phy_offset,
            begin_timestamp=header.begin_timestamp,
            index_count=header.index_count,
            slots=self._copy.rules.index_slots,
            max_entries=self._copy.rules.index_max,
            previous_end_timestamp=headers[files[number - 1].path].end_timestamp if number else 0,
            end_timestamp=header.end_timestamp,
            may_be_torn=self._copy.unclean and number == len(files) - 1,
        )

    def scan_of(self, task: Task) -> ScanId | None:
        """Return the broker's scan that a segment's task is; None if the broker does not load the segment."""
        return self._made[id(task)][1]

    def _keep(self, task: SegmentTask, scan: ScanId | None) -> Task:
        self._made[id(task)] = task, scan
        return task

    def segments(self, files: Sequence[MappedFile]) -> list[Task]:
        """A task for each of these segments. One that was damaged is read however late it is."""
        tasks: list[Task] = []
        headers = [self._copy.headers[f.path] for f in self._copy.index_files if f.path in self._copy.headers]
        counts = messages_by_index(headers, files)
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
        """A task for each scan that `needs` names, with all cuts ever asked of it. read: paths of segments that were read."""
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
        """Tasks for the edges of all segments."""
        request, copy = self._request, self._copy
        return edge_tasks(request.store, request.location, copy.rules, copy.segment_files, EDGES_TOGETHER)

    def index(self) -> list[Task]:
        """A task for each index file."""
        request, copy = self._request, self._copy
        if request.quick:  # a broker reads nothing of an index file but its header
            return []
        headers: list[IndexHeader | None] = [None, *(copy.headers.get(file.path) for file in copy.index_files)]
        return [
            IndexTask(
                request.store,
                request.location,
                copy.rules,
                file.path,
                file.size,
                newest=file is copy.index_files[-1],
                unclean=copy.unclean,
                previous_end=(before.end_timestamp, before.end_phy_offset) if before is not None else None,
                not_after=request.not_after,
            )
            for file, before in zip(copy.index_files, headers, strict=False)
        ]

    def compacted(self) -> list[Task]:
        """Return a task for each file of a compacted topic's log and the entries of that name.

        At the quick level they are those that recovery reads.
        """
        request, copy = self._request, self._copy
        tasks: list[Task] = []
        topics = copy.config.compacted_topics  # looked for among all topics
        if copy.rules.compacts and not request.quick:
            for key, files in items_of(copy.queue_files) if topics else ():
                if key[0] in topics and key[0] not in copy.batch_topics and key not in copy.compacted.queues:
                    tasks.append(self._without_log(key, files))
        for key, queue in sorted(copy.compacted.queues.items()):
            log, entries = ({f.start: f for f in reversed(files)} for files in (queue.all_log, queue.all_entries))
            names = sorted(log.keys() | entries.keys())
            queue_files = () if key[0] in copy.batch_topics else copy.queue_files.get(key, ())
            for start in names[-RECOVERED_FILES:] if request.quick else names:
                task = CompactedFileTask(
                    request.store,
                    request.location,
                    copy.rules,
                    key,
                    log.get(start),
                    entries.get(start),
                    LogFiles(tuple(copy.segment_files), queue_files),
                    last=start == names[-1],
                    unclean=copy.unclean,
                    records=not request.quick,
                    put_here=key[0] in topics,
                    window_bytes=request.window_bytes,
                    decoder=request.decoder,
                    not_after=request.not_after,
                )
                tasks.append(task)
        return tasks

    def _without_log(self, key: QueueKey, files: tuple[MappedFile, ...]) -> CompactedFileTask:
        """A queue of a compacted topic that has no log of its own: are there messages which it should hold?"""
        request, copy = self._request, self._copy
        return CompactedFileTask(
            request.store,
            request.location,
            copy.rules,
            key,
            None,
            None,
            LogFiles(tuple(copy.segment_files), files),
            last=True,
            unclean=copy.unclean,
            put_here=True,
            not_after=request.not_after,
        )

    def epoch_starts(self, segments: Sequence[SegmentSummary]) -> list[Task]:
        """Return a task that looks up the begins of a replica's newest epochs, if any begins inside of these segments."""
        epochs = self._copy.epochs.epochs[-MOST_STARTS:]
        bounds = [MappedFile(s.path, s.base_offset, s.size) for s in segments]
        places = tuple(
            EpochPlace(epoch.start, file)
            for epoch in epochs
            for file in bounds
            if file.start < epoch.start < file.start + file.size
        )
        request = self._request
        if not places:
            return []
        return [EpochStartsTask(request.store, request.location, self._copy.rules, places, request.not_after)]

    def ledger(self) -> list[Task]:
        """A task for each data file and index file of a DLedger group. A start reads the headers whatever the time."""
        request, copy = self._request, self._copy
        if copy.loaded.ledger is None:
            return []
        committed = copy.ledger_texts.committed
        wanted = -1 if committed is None else committed
        tasks: list[Task] = [
            DataTask(request.store, request.location, file, copy.ledger_index, wanted, request.window_bytes)
            for file in copy.ledger_data
        ]
        tasks += [UnitTask(request.store, request.location, file, copy.rules.segment_bytes) for file in copy.ledger_index]
        return tasks


def messages_by_index(headers: Sequence[IndexHeader], segments: Sequence[MappedFile]) -> list[int]:
    """About how many messages each segment holds, by the entries that index files say to have; -1 where there are none. It
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
