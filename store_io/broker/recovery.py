"""Summaries -> what a broker of the release does when it is started on the copy: load(), recovery, start().

A fold over one summary per segment, queue and index file, in the broker's own order (recovery.md 1 to 9). It holds no
message. Where a decision falls inside a run, it asks for a finer scan (`Needs`) and is run again with it.
Source: DefaultMessageStore.load and recover, CommitLog.recoverNormally, recoverAbnormally, isMappedFileMatchedRecover,
DefaultMessageStore.ReputMessageService, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0, 5.5.0.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.advice import Refusal, RefusalKind
from schemas.layouts import commitlog_layout
from schemas.layouts.checkpoint_layout import CHECKPOINT_FILE
from schemas.rows import Checkpoint, FirstRecord, QueueKey, QueueSummary, SegmentSummary
from store_io.base.packed import PackedMap
from store_io.broker.dispatch import EVERYTHING, Choice, Dispatch, recovery_choice
from store_io.broker.epochs import Epoch
from store_io.broker.fenced_broker import ConfirmOffset, compensate, elected
from store_io.broker.index_state import IndexFileState, IndexHeader
from store_io.broker.loading import LoadedQueue, LoadedStore
from store_io.broker.prediction import BrokerQueue, LogFile, Memory, Needs, Prediction, Refused, ScanId, cut_files
from store_io.broker.queues.queue_minimum import correct_minimum
from store_io.broker.queues.queue_pieces import Pieces
from store_io.broker.queues.queue_state import DiskEntries, NeedCut, QueueState
from store_io.broker.releases import BrokerRules
from store_io.broker.start_segment import StartSearch


@dataclass
class AskedRecovery:
    """All that one run of the fold is made from.

    made: the recovery of a store with these files; more: what it needs besides.
    queue_summaries, disk: of queues in files; disk reads a few of their entries.
    Others: as in `Fold`.
    """

    rules: BrokerRules
    loaded: LoadedStore
    batch_topics: frozenset[str]
    checkpoint: Checkpoint
    unclean: bool
    scans: Mapping[ScanId, SegmentSummary]
    firsts: Mapping[int, FirstRecord]
    headers: Mapping[str, IndexHeader]
    epochs: tuple[Epoch, ...]
    marks: tuple[int | None, ...]
    queue_summaries: Mapping[QueueKey, QueueSummary] = field(default_factory=dict)
    disk: DiskEntries = field(default=lambda path, first, count: np.zeros(0))
    made: Callable[..., Fold] | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def fold(self) -> Fold:
        """Return the fold, to be run once."""
        facts = self.rules, self.loaded, self.batch_topics, self.checkpoint, self.unclean, self.scans
        read = self.queue_summaries, self.headers, self.disk, self.firsts, self.epochs
        return (self.made or Fold)(*facts, *read, marks=self.marks, **self.more)


@dataclass(eq=False)
class Fold:
    """One run of the fold. `run()` gives the prediction; `needs` is non-empty if it is not reliable yet.

    firsts: first records of segments, by place in the list, that were not scanned.
    epochs: those of a replica in controller mode.
    marks: those of index and transactions in RocksDB.
    """

    rules: BrokerRules
    loaded: LoadedStore
    batch_topics: frozenset[str]
    checkpoint: Checkpoint
    unclean: bool
    scans: Mapping[ScanId, SegmentSummary]
    queue_summaries: Mapping[QueueKey, QueueSummary]
    index_headers: Mapping[str, IndexHeader]
    disk: DiskEntries
    firsts: Mapping[int, FirstRecord] = field(default_factory=dict)
    epochs: tuple[Epoch, ...] = ()
    marks: tuple[int | None, ...] = field(default=(), kw_only=True)
    needs: Needs = field(init=False, default_factory=Needs)

    def __post_init__(self) -> None:
        self.segments = self.loaded.segments
        self.log = [LogFile(f, f.size) for f in self.segments]
        self.deleted: list[str] = list(self.loaded.deleted)
        self.prediction = Prediction(True, self.unclean)
        self.dispatch = Dispatch(self.rules, self.batch_topics, self.disk, self.needs)
        self.queues, self.index = self.dispatch.queues, self.dispatch.index
        self.confirm = ConfirmOffset(self.checkpoint.confirm_phy_offset)
        self.dispatched_to = -1  # where start() leaves the dispatching thread
        self._places = {f.path: i for i, f in enumerate(self.segments)}

    def run(self) -> Prediction:
        """Follow load() and start(). Damage never raises; `needs` says whether the answer is final."""
        p = self.prediction
        try:
            self._load()
        except Refused as why:
            p.starts, p.refusal = False, why.refusal
            return p
        p.min_phy_offset, p.truncate_at = self.min_offset(), self.max_offset()
        for queue in self.queues:
            self.deleted += queue.deleted
        deleted = {*self.deleted}
        # Dispatch makes a queue's deleted file again under the same name: what counts is what is there after load().
        for queue in self.queues if deleted else ():
            deleted.difference_update(f"{queue.folder}/{file.start:020d}" for file in queue.files if file.path is None)
        p.deleted_files = sorted(deleted)
        p.after_load = self.memory()
        self.dispatched_to = self.confirm.value
        try:
            self._start()
        except Refused as why:  # the dispatching thread throws at this message again and again: start() never catches up
            self.dispatched_to = why.refusal.phy_offset
            if self.rules.dispatches_at_start or not self.rules.controlled:  # else it is the election that waits
                p.hangs_at, p.hangs_why = why.refusal.phy_offset, why.refusal
        p.after_dispatch = self.memory()
        if self.rules.controller_mode:
            p.controller = elected(self)
        if stop := self.dispatch.stopped():
            p.skips.append(stop)
        return p

    def close(self) -> None:
        """End what reads entries, if anything does."""

    def memory(self) -> Memory:
        """Return a snapshot that later steps do not touch."""
        index = []
        for file in self.index.files:
            twin = copy.copy(file)
            twin.pieces = list(file.pieces)
            index.append(twin)
        return Memory([LogFile(f.file, f.wrote) for f in self.log], self._queues_now(), index)

    def _queues_now(self) -> Mapping[QueueKey, BrokerQueue]:
        loaded = self.prediction.after_load
        return self.queues.snapshot(loaded.queues if loaded is not None else {})

    # ---- load ------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        rules, loaded = self.rules, self.loaded
        if loaded.refusal:
            raise Refused(loaded.refusal)
        self._load_queues()
        self._load_index()
        self._recover_queues()
        self._recover_log()
        self.correct_minimums()
        self._compensate()
        if rules.late_delays:
            # correctDelayOffset looks up the queue of every level, which creates the absent ones.
            for level in rules.delays:
                self.dispatch.find_queue((commitlog_layout.SCHEDULE_TOPIC, level - 1))
        if loaded.later_refusal:
            raise Refused(loaded.later_refusal)

    def _compensate(self) -> None:
        """Do compensateForHA, in releases and with settings that call it. Raises Refused if load() fails over it."""
        if self.rules.controlled and self.rules.reads_unconfirmed or self.rules.confirms_last:
            compensate(self)

    def _load_queues(self) -> None:
        found = self.loaded.queues
        many = isinstance(found, PackedMap) and found.packs
        self.queues.load(((key, self._loaded_queue(queue)) for key, queue in found.items()), many, self.queue_summaries)

    def _loaded_queue(self, found: LoadedQueue) -> QueueState:
        pieces = Pieces(self.dispatch.scan_ids)
        return QueueState(found.key, found.batch, found.folder, self.rules, self.disk, pieces=pieces)

    def _recover_queues(self) -> None:
        for queue in self.queues.changing():
            summary = self.queue_summaries.get(queue.key)
            if summary is None:
                continue
            if summary.refusal:
                raise Refused(summary.refusal)
            queue.set_recovered(self.loaded.queues[queue.key].files, summary.wrote, summary.max_phy_offset)
            self.deleted += summary.deleted
            queue.recovered = queue.files[-1].path if queue.files else None
            queue.summaries = self.queue_summaries

    def _load_index(self) -> None:
        for entry in self.loaded.index:
            header = self.index_headers.get(entry.path)
            if header is None:
                continue
            if self.unclean and header.end_timestamp > self.checkpoint.index_time:
                self.deleted.append(entry.path)
                continue
            times, offsets = (header.begin_timestamp, header.end_timestamp), (header.begin_phy_offset, header.end_phy_offset)
            made = IndexFileState(entry.path, self.rules.index_max, *times, *offsets, header.index_count, header.begin_timestamp)
            self.index.files.append(made)

    def max_cq_phy(self) -> int:
        return max(-1, max((queue.max_phy for queue in self.queues), default=-1))

    def min_offset(self) -> int:
        return self.log[0].file.start if self.log else -1

    def max_offset(self) -> int:
        """Return the answer of getMaxPhyOffset after load()."""
        return self.log_end()

    def log_end(self) -> int:
        return self.log[-1].file.start + self.log[-1].wrote if self.log else 0

    def correct_minimums(self) -> None:
        for queue in self.queues.changing():
            try:
                correct_minimum(queue, self.min_offset())
            except NeedCut as cut:
                self.dispatch.cut_pieces(queue, cut.phy_offset)

    # ---- the CommitLog ---------------------------------------------------------------------------------------------

    def _recover_log(self) -> None:
        m = self.max_cq_phy()
        dispatch_from = self._with_marks(m)
        begin = self._accelerated_from(m)
        begin = self._with_marks(begin) if begin >= 0 else begin
        if not self.log:
            self._destroy_queues()
            self.prediction.stop_reason = "no_commitlog"
            return
        first = self._first_scan(self.rules.first_recovered(len(self.segments), self._start_place(m)), begin)
        self.confirm.begin(self.segments[first.segment].start)
        end = self._read_on(first, recovery_choice(self.rules, self.checkpoint, self.unclean, dispatch_from))
        self._settle()
        if end is None:
            return
        if self.rules.confirms_last:
            self.confirm.confirm_last(self.segments[first.segment].start, self.unclean)
        else:
            self.confirm.settle(self.min_offset(), end, self.unclean)
        self._cut(m, end)

    def _with_marks(self, m: int) -> int:
        """Return the smallest of a physical offset and all marks above 0, if the release asks for these."""
        marks = [mark for mark in self.marks if mark is not None and mark > 0] if self.rules.dispatches_from_marks else []
        return min([m, *marks])

    def _accelerated_from(self, m: int) -> int:
        """Return the physical offset at which an accelerated recovery begins to read; -1 for any other recovery."""
        if not self.unclean or not self.rules.accelerated:
            return -1
        if self.checkpoint.logics_phy_offset <= 0 < self.checkpoint.physic_time:
            raise Refused(Refusal(RefusalKind.ACCELERATED_WITHOUT_OFFSET, CHECKPOINT_FILE))
        return self.checkpoint.logics_phy_offset

    def _destroy_queues(self) -> None:
        for queue in self.queues.changing():
            queue.destroy()

    def _search(self, unclean: bool) -> StartSearch:
        return StartSearch(self.rules, self.checkpoint, unclean, self.segments, self.scans, self.firsts, self.needs, self.marks)

    def _start_place(self, m: int) -> int | None:
        """Return the place of the segment at which the search for the first one to read ends. None if there is no search."""
        return self._search(self.unclean).place(m)

    def _settle(self) -> None:
        """Settle the queues, as all is dispatched: they may be looked at."""
        self.dispatch.puts.settle()

    def _first_scan(self, i: int, begin: int) -> ScanId:
        """Return the first scan of recovery, in the segment in which it starts.

        begin: as `_accelerated_from` gives it.
        """
        segment = self.segments[i]
        self.prediction.start_segment = self.log[i].name
        position = max(0, begin - segment.start)
        if position > segment.size:
            raise Refused(Refusal(RefusalKind.ACCELERATED_BEYOND_FILE, segment.path, position=position))
        return ScanId("from", i, position) if position else ScanId("segment", i)

    def _read_on(self, scan: ScanId, choice: Choice | None) -> int | None:
        """Read segment after segment and dispatch; return the physical offset at which recovery stops. None: not scanned yet."""
        p = self.prediction
        while True:
            i = scan.segment
            p.scanned.append(i)
            summary = self.recovered(scan)
            if summary is None:
                return None
            if choice is not None:
                self.dispatch.put(scan, summary, choice)
                if self.unclean and self.rules.controlled:
                    self.confirm.met(scan, summary, choice, self.needs)
            self.confirm.read(summary)
            stop = summary.broker
            if stop.kind == "end" and i + 1 < len(self.log):
                scan = ScanId("segment", i + 1)
                continue
            p.stop_reason = "end_of_last_file" if stop.kind == "end" else stop.reason
            p.stop_segment, p.stop_position = self.log[i].file.path, stop.position
            return self.segments[i].start + stop.position

    def recovered(self, scan: ScanId) -> SegmentSummary | None:
        """Return the scan that recovery reads there. None: it is asked for, and all after it as well.

        Recovery continues there, or cuts it, and then its messages are counted.
        """
        summary = self.scans.get(scan)
        if summary is None:
            later = (ScanId("segment", k) for k in range(scan.segment + 1, len(self.log)))
            self.needs.scans.update(s for s in (scan, *later) if s not in self.scans)
        return summary

    def _cut(self, m: int, end: int) -> None:
        """Cut the log, and the queues if one may reach there.

        m: as it was before recovery.
        """
        if self.rules.truncates_by_new_maximum:
            m = self.max_cq_phy()
        self.truncate(end, m >= end)

    def truncate(self, end: int, queues: bool) -> None:
        """Cut the log at this physical offset, and the queues too if asked (recovery.md 6)."""
        if queues:
            self.truncate_queues(end)
        self.log[:] = cut_files(self.log, end, self.deleted)

    def truncate_queues(self, end: int) -> None:
        for queue in self.queues.changing():
            try:
                queue.truncate_logic(end)
            except NeedCut as cut:
                self.dispatch.cut_pieces(queue, cut.phy_offset)

    # ---- start() ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Follow the dispatch of start().

        It runs in 4.x from the ConsumeQueues' maximum on, later ones only by a setting (recovery.md 9).
        """
        rules = self.rules
        if rules.dispatches_at_start:
            self.catch_up(max(self.min_offset(), 0, self.max_cq_phy()))
        elif rules.reads_uncommitted and rules.waits_for_confirm:
            self.catch_up(max(self.min_offset(), self.confirm.value))
        else:
            return
        self.dispatch.puts.settle()
        if rules.catches_up:
            self.correct_minimums()

    def catch_up(self, at: int) -> None:
        """Dispatch from this physical offset on, up to the log's end, or to confirmOffset.

        confirmOffset limits it if the broker waits for confirmation and readUnCommitted is off. start() waits for confirmed
        messages alone, and only if it looks at the queues.
        """
        rules = self.rules
        if rules.waits_for_confirm:
            self.dispatch_on(at, None if rules.reads_uncommitted else self.confirm.value)
            if rules.dispatches_at_start and self.dispatched_to < self.confirm.value:
                self.prediction.hangs_at = self.dispatched_to
        elif not rules.value("duplicationEnable"):
            self.prediction.hangs_at = self.dispatch_on(at)
        elif rules.catches_up and at < self.log_end():
            # confirmOffset is -1: nothing is dispatched, and start() waits for it.
            self.prediction.hangs_at = at

    def dispatch_on(self, at: int, confirmed: int | None = None) -> int:
        """Dispatch as the dispatching thread does, from here to the log's end, or to the confirmed offset.

        Returns the offset at which it waits without end, else -1.
        """
        end = self.log_end() if confirmed is None else min(confirmed, self.log_end())
        self.dispatched_to = at
        while at < end:
            found = self.find_segment(at)
            if found is None:
                return at
            file = found[1]
            if at - file.file.start >= file.wrote:
                return at
            scan = self._reput_scan(file, at - file.file.start, end)
            summary = self.scans.get(scan)
            if summary is None:
                self._ask_reput(scan, end)
                return -1
            self.dispatch.put(scan, summary, EVERYTHING)
            if summary.broker.position <= at:
                return at  # no master: the record is read again without end
            at = self.dispatched_to = summary.broker.position
        return -1

    def find_segment(self, phy_offset: int) -> tuple[int, LogFile] | None:
        for file in self.log:
            if file.file.start <= phy_offset < file.file.start + file.file.size:
                return self._places[file.file.path], file
        if self.log and phy_offset == 0:
            return self._places[self.log[0].file.path], self.log[0]
        return None

    def _reput_scan(self, file: LogFile, position: int, end: int) -> ScanId:
        """Return the walk from this position in the file up to a physical offset. After a full file the log continues."""
        full, left = file.wrote == file.file.size, end - file.file.start
        return ScanId("reput", self._places[file.file.path], position, left if full else min(left, file.wrote))

    def _ask_reput(self, scan: ScanId, end: int) -> None:
        """Ask for this walk, and for those of all later files from their beginning, which usually come next."""
        self.needs.scans.add(scan)
        for file in self.log:
            number = self._places[file.file.path]
            later = self._reput_scan(file, 0, end)
            if number > scan.segment and file.wrote and file.file.start < end and later not in self.scans:
                self.needs.scans.add(later)
