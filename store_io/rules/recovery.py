"""Summaries -> what a broker of the release does when it is started on the copy: load(), recovery, start().

A fold over one summary per segment, queue and index file, in the broker's own order (recovery.md 1 to 9). It holds no
message. Where a decision falls inside a run, it asks for a finer scan (`Needs`) and is run again with it.
Source: DefaultMessageStore.load and recover, CommitLog.recoverNormally, recoverAbnormally, isMappedFileMatchedRecover,
DefaultMessageStore.ReputMessageService, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0, 5.5.0.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from schemas import commitlog_layout
from schemas import consumequeue_layout as layout
from schemas.rows import (
    RUN_LMQ,
    RUN_UNQUEUED,
    WALK_BROKER,
    Cuts,
    FirstRecord,
    MappedFile,
    QueueKey,
    QueueSummary,
    Row,
    SegmentSummary,
)
from store_io.rules.index_state import IndexFileState, IndexState, NeedMarks
from store_io.rules.loading import LoadedStore, queue_folder
from store_io.rules.queue_pieces import PIECE_DTYPE, Pieces
from store_io.rules.queue_state import DiskEntries, NeedCut, QueueRefusal, QueueState
from store_io.rules.releases import BrokerRules


@dataclass(frozen=True)
class Checkpoint:
    """The fields as the broker reads them; zeros where the file is missing or short."""

    physic_time: int = 0
    logics_time: int = 0
    index_time: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_phy_offset: int = 0

    @property
    def min_time(self) -> int:
        """StoreCheckpoint.getMinTimestamp: three seconds below the smaller of the two."""
        return max(0, min(self.physic_time, self.logics_time) - 3000)


@dataclass(frozen=True)
class IndexHeader:
    """An index file's header as stored."""

    path: str
    begin_time: int
    end_time: int
    begin_phy: int
    end_phy: int
    index_count: int


@dataclass(frozen=True)
class ScanId:
    """Which scan a fold speaks of: a segment (by its place in the list) read whole, or a walk from a position in it.

    kind: "segment"; "from": the broker's walk begins at `start` (accelerated recovery); "reput": start()'s walk from
    `start` to `limit`.
    """

    kind: str
    segment: int
    start: int = 0
    limit: int = 0


@dataclass
class Needs:
    """Finer scans that a fold asks for."""

    scans: set[ScanId] = field(default_factory=set)
    phy_cuts: dict[ScanId, set[int]] = field(default_factory=lambda: defaultdict(set))
    queue_cuts: dict[ScanId, dict[QueueKey, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    number_cuts: dict[ScanId, dict[QueueKey, set[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(set)))
    marks: dict[ScanId, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))

    def __bool__(self) -> bool:
        return bool(self.scans or self.phy_cuts or self.queue_cuts or self.number_cuts or self.marks)

    def cuts(self, scan: ScanId) -> Cuts:
        """All cuts asked for of one scan."""
        return Cuts(
            tuple(sorted(self.phy_cuts.get(scan, ()))),
            {key: tuple(sorted(values)) for key, values in self.queue_cuts.get(scan, {}).items()},
            {key: tuple(sorted(values)) for key, values in self.number_cuts.get(scan, {}).items()},
        )


@dataclass
class LogFile:
    """One CommitLog file in the broker's memory."""

    file: MappedFile
    wrote: int

    @property
    def name(self) -> str:
        return self.file.path.rpartition("/")[2]


@dataclass
class Memory:
    """The broker's memory at one moment: what STATE in plan.json tells, and more."""

    log: list[LogFile]
    queues: dict[QueueKey, QueueState]
    index: list[IndexFileState]

    def state(self) -> Row:
        """contract.md's STATE."""
        return {
            "commitlog": [{"file": f.name, "wrote": f.wrote} for f in self.log],
            "queues": [
                {
                    "topic": key[0],
                    "queue_id": key[1],
                    "min_offset": q.min_offset,
                    "max_offset": q.max_offset,
                    "max_phy_offset": q.max_phy,
                }
                for key, q in sorted(self.queues.items())
            ],
            "index": [
                {"begin_phy_offset": f.begin_phy, "end_phy_offset": f.end_phy, "index_count": f.stored_count} for f in self.index
            ],
        }


@dataclass
class Prediction:
    """What the broker does. Where `starts` is False only `refusal` counts."""

    starts: bool
    unclean: bool
    refusal: str = ""
    start_segment: str | None = None
    stop_reason: str = ""
    stop_segment: str | None = None
    stop_position: int = 0
    min_phy_offset: int = -1
    truncate_at: int = 0
    deleted_files: list[str] = field(default_factory=list)
    after_load: Memory | None = None
    after_dispatch: Memory | None = None
    scanned: list[int] = field(default_factory=list)  # segments that recovery reads, by place in the list
    hangs_at: int = -1  # start() waits for ever at this physical offset

    def broker_section(self) -> Row:
        """plan.json's "broker"."""
        if not self.starts or self.after_load is None or self.after_dispatch is None:
            keys = "start_segment stop_reason min_phy_offset truncate_at lost deleted_files after_load after_dispatch".split()
            return {"starts": False, "refusal": self.refusal, "exit": self.exit, **dict.fromkeys(keys)}
        return {
            "starts": True,
            "refusal": None,
            "exit": self.exit,
            "start_segment": self.start_segment,
            "stop_reason": self.stop_reason,
            "min_phy_offset": self.min_phy_offset,
            "truncate_at": self.truncate_at,
            "deleted_files": self.deleted_files,
            "after_load": self.after_load.state(),
            "after_dispatch": self.after_dispatch.state(),
        }

    @property
    def exit(self) -> str:
        return "unclean" if self.unclean else "clean"


class Refused(Exception):
    """load() returns false or throws; the message is the sentence. phy_offset: of the message at fault, where one is."""

    def __init__(self, sentence: str, phy_offset: int = -1):
        super().__init__(sentence)
        self.phy_offset = phy_offset


# (first and last phy_offset, first and last end) of runs -> (which are dispatched, for which the decision falls inside).
Filter = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
FAR = 1 << 56  # queue offsets and positions beyond come from damage: their runs are put one by one, in exact numbers
FEW_ROWS = 8  # for which it does not pay to look at them together


class Fold:
    """One run of the fold. `run()` gives the prediction; `needs` is non-empty where it is not reliable yet."""

    def __init__(
        self,
        rules: BrokerRules,
        loaded: LoadedStore,
        batch_topics: frozenset[str],
        checkpoint: Checkpoint,
        unclean: bool,
        scans: Mapping[ScanId, SegmentSummary],
        queue_summaries: Mapping[QueueKey, QueueSummary],
        index_headers: Mapping[str, IndexHeader],
        disk: DiskEntries,
        firsts: Mapping[int, FirstRecord] | None = None,
    ):
        """firsts: first records of segments, by place in the list, that were not scanned."""
        self.rules, self.loaded, self.batch_topics = rules, loaded, batch_topics
        self.checkpoint, self.unclean = checkpoint, unclean
        self.scans, self.queue_summaries, self.index_headers, self.disk = scans, queue_summaries, index_headers, disk
        self.firsts = firsts or {}
        self.needs = Needs()
        self.segments = loaded.segments
        self.log = [LogFile(f, f.size) for f in self.segments]
        self.queues: dict[QueueKey, QueueState] = {}
        self.index = IndexState(rules)
        self.deleted: list[str] = list(loaded.deleted)
        self.prediction = Prediction(True, unclean)
        self.scan_ids: list[object] = []  # of the pieces' scan numbers
        self._scan_numbers: dict[ScanId, int] = {}
        self.puts = _Puts(self)
        self._places = {f.path: i for i, f in enumerate(self.segments)}

    def run(self) -> Prediction:
        """Follow load() and start(). Damage never raises; `needs` tells whether the answer is final."""
        p = self.prediction
        try:
            self._load()
        except Refused as why:
            p.starts, p.refusal = False, str(why)
            return p
        except QueueRefusal as why:
            p.starts, p.refusal = False, str(why)
            return p
        p.min_phy_offset, p.truncate_at = self._min_offset(), self._max_offset()
        for queue in self.queues.values():
            self.deleted += queue.deleted
        # Dispatch makes a queue's deleted file again under the same name: what counts is what is there after load().
        made = {f"{q.folder}/{f.start:020d}" for q in self.queues.values() for f in q.files if f.path is None}
        p.deleted_files = sorted(set(self.deleted) - made)
        p.after_load = self._memory()
        try:
            self._start()
        except Refused as why:  # the dispatching thread throws at this message again and again: start() never catches up
            p.hangs_at = why.phy_offset
        p.after_dispatch = self._memory()
        return p

    def _memory(self) -> Memory:
        """A snapshot that later steps do not touch."""
        queues = {}
        for key, queue in self.queues.items():
            kept = copy.copy(queue)
            kept.files = [copy.copy(f) for f in queue.files]
            kept.pieces = queue.pieces.copy()
            queues[key] = kept
        index = []
        for file in self.index.files:
            twin = copy.copy(file)
            twin.pieces = list(file.pieces)
            index.append(twin)
        return Memory([LogFile(f.file, f.wrote) for f in self.log], queues, index)

    # ---- load ------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        rules, loaded = self.rules, self.loaded
        if loaded.refusal:
            raise Refused(loaded.refusal)
        for key, found in loaded.queues.items():
            self.queues[key] = QueueState(key, found.batch, found.folder, rules, self.disk, pieces=Pieces(self.scan_ids))
        self._load_index()
        for key, queue in self.queues.items():
            summary = self.queue_summaries.get(key)
            if summary is None:
                continue
            if summary.refusal:
                raise Refused(summary.refusal)
            queue.set_recovered(loaded.queues[key].files, summary.wrote, summary.max_phy_offset)
            self.deleted += summary.deleted
            self._remember_prefix(queue, summary)
        self._recover_log()
        self._correct_minimums()
        if rules.late_delays:
            # correctDelayOffset looks up the queue of every level, which creates the absent ones.
            for level in rules.delays:
                self.find_queue((commitlog_layout.SCHEDULE_TOPIC, level - 1))
        if loaded.index_refusal:
            raise Refused(loaded.index_refusal)

    @staticmethod
    def _remember_prefix(queue: QueueState, summary: QueueSummary) -> None:
        last = queue.files[-1] if queue.files else None
        if last is not None and last.path is not None and summary.last_prefix > 0:
            queue.prefix = (last.path, summary.last_prefix, summary.last_prefix_phy, summary.last_prefix_max_phy)
        queue.edges = summary.edges

    def _load_index(self) -> None:
        for entry in self.loaded.index:
            header = self.index_headers.get(entry.path)
            if header is None:
                continue
            if self.unclean and header.end_time > self.checkpoint.index_time:
                self.deleted.append(entry.path)
                continue
            file = IndexFileState(
                header.path,
                self.rules.index_max,
                header.begin_time,
                header.end_time,
                header.begin_phy,
                header.end_phy,
                header.index_count,
            )
            file.start_begin_time = header.begin_time
            self.index.files.append(file)

    def _max_cq_phy(self) -> int:
        return max([q.max_phy for q in self.queues.values()] + [-1])

    def _min_offset(self) -> int:
        return self.log[0].file.start if self.log else -1

    def _max_offset(self) -> int:
        return self.log[-1].file.start + self.log[-1].wrote if self.log else 0

    def _correct_minimums(self) -> None:
        for key, queue in self.queues.items():
            try:
                queue.correct_min(self._min_offset())
            except NeedCut as cut:
                self._cut_pieces(key, queue, cut.phy_offset)

    # ---- the CommitLog ---------------------------------------------------------------------------------------------

    def _recover_log(self) -> None:
        rules, p = self.rules, self.prediction
        m = self._max_cq_phy()
        accelerated = self.unclean and rules.accelerated
        if accelerated and self.checkpoint.logics_phy_offset <= 0 < self.checkpoint.physic_time:
            raise Refused(
                "checkpoint: accelerated recovery needs logicsPhysicalOffset, which is 0 while physicMsgTimestamp is set"
            )
        if not self.log:
            for queue in self.queues.values():
                queue.destroy()
            p.stop_reason = "no_commitlog"
            return
        i = self._start_file(m)
        p.start_segment = self.log[i].name
        first = ScanId("segment", i)
        if accelerated:
            position = max(0, self.checkpoint.logics_phy_offset - self.segments[i].start)
            if position > self.segments[i].size:
                raise Refused(
                    f"{self.segments[i].path}: accelerated recovery would begin at position {position}, beyond the file"
                )
            if position:
                first = ScanId("from", i, position)
        dispatches = self._recovery_filter(m)
        scan = first
        while True:
            p.scanned.append(i)
            summary = self.scans.get(scan)
            if summary is None:
                # All behind it is asked for as well: recovery goes on there, or cuts it, and then its messages are counted.
                later = (ScanId("segment", k) for k in range(i + 1, len(self.log)))
                self.needs.scans.update(s for s in (scan, *later) if s not in self.scans)
                self.puts.settle()
                return
            if dispatches is not None:
                self._dispatch(scan, summary, *dispatches)
            stop = summary.broker
            if stop.kind == "end":
                if i + 1 < len(self.log):
                    i += 1
                    scan = ScanId("segment", i)
                    continue
                p.stop_reason = "end_of_last_file"
            else:
                p.stop_reason = stop.reason
            p.stop_segment, p.stop_position = self.log[i].name, stop.position
            end = self.segments[i].start + stop.position
            break
        self.puts.settle()
        if rules.truncates_by_new_maximum:
            m = self._max_cq_phy()
        if m >= end:
            for key, queue in self.queues.items():
                try:
                    queue.truncate_logic(end)
                except NeedCut as cut:
                    self._cut_pieces(key, queue, cut.phy_offset)
        for file in list(self.log):
            if file.file.start + file.file.size > end:
                if end >= file.file.start:
                    file.wrote = end % file.file.size
                else:
                    self.log.remove(file)
                    self.deleted.append(file.file.path)

    def _recovery_filter(self, m: int) -> tuple[Filter, int] | None:
        """(which runs recovery dispatches, the threshold to cut at); None: it dispatches nothing (recovery.md 4, 5)."""
        rules = self.rules
        if not self.unclean:
            if not rules.dispatches_after_clean_exit:
                return None

            return lambda first, last, first_end, last_end: (first > m, (first <= m) & (last > m)), m
        if not rules.value("duplicationEnable") and not rules.controlled:
            return _everything, 0
        if not rules.keeps_confirm_offset:
            # confirmOffset is -1 in a process that has just started: below it lies only what stores a nonsensical offset.
            return lambda first, last, first_end, last_end: (first < -1, np.zeros(len(first), bool)), -1

        confirmed = self.checkpoint.confirm_phy_offset

        def below(
            first: np.ndarray, last: np.ndarray, first_end: np.ndarray, last_end: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            return last_end <= confirmed, (last_end > confirmed) & (first_end <= confirmed)

        return below, confirmed

    def _start_file(self, m: int) -> int:
        rules, count = self.rules, len(self.log)
        if rules.start_by_record_check:
            return self._start_file_540(m)
        if not self.unclean:
            if not rules.clean_start_by_queues:
                return max(0, count - 3)
            i = count - 1
            while i > 0 and self.segments[i].start > m:
                i -= 1
            return i
        for i in reversed(range(count)):
            if self._matched_by_time(i):
                return i
        return 0

    def _first(self, i: int) -> FirstRecord | None:
        summary = self.scans.get(ScanId("segment", i))
        if summary is not None:
            return summary.first
        if i not in self.firsts:
            self.needs.scans.add(ScanId("segment", i))
        return self.firsts.get(i)

    def _matched_by_time(self, i: int) -> bool:
        """isMappedFileMatchedRecover up to 5.3.3: magic and store time of the first record."""
        first = self._first(i)
        if first is None:
            return False
        if first.magic != commitlog_layout.MAGIC_V1 and not (first.magic == commitlog_layout.MAGIC_V2 and self.rules.knows_v2):
            return False
        limit = self.checkpoint.min_time
        if self.rules.value("messageIndexEnable") and self.rules.value("messageIndexSafe"):
            limit = min(limit, self.checkpoint.index_time)
        return first.store_time != 0 and first.store_time <= limit

    def _start_file_540(self, m: int) -> int:
        """5.4.0 and later: the first record is checked in full; the search ends at commitLogRecoverMaxNum files."""
        most = int(self.rules.value("commitLogRecoverMaxNum"))
        for looked, i in enumerate(reversed(range(len(self.log))), 1):
            if not self.unclean and i == 0:
                return 0
            if self._matched_by_record(i, m) or looked >= most:
                return i
        return 0

    def _matched_by_record(self, i: int, m: int) -> bool:
        first, rules = self._first(i), self.rules
        if first is None:
            return False
        if first.blank or not first.check_ok or first.store_time == 0:
            return False
        if (
            rules.value("messageIndexEnable")
            and rules.value("messageIndexSafe")
            and first.store_time > self.checkpoint.index_time
        ):
            return False
        if not self.unclean:
            return first.phy_offset <= m
        if rules.start_by_logics_offset:
            if self.checkpoint.logics_phy_offset > 0:
                return first.phy_offset <= self.checkpoint.logics_phy_offset
            return first.store_time <= self.checkpoint.logics_time
        return first.store_time <= self.checkpoint.min_time

    # ---- dispatch --------------------------------------------------------------------------------------------------

    def find_queue(self, key: QueueKey) -> QueueState:
        """The queue, made if there is none."""
        queue = self.queues.get(key)
        if queue is None:
            batch = key[0] in self.batch_topics
            queue = self.queues[key] = QueueState(
                key, batch, queue_folder(batch, key), self.rules, self.disk, pieces=Pieces(self.scan_ids)
            )
            if batch:
                queue.revise()
        return queue

    def _dispatch(self, scan: ScanId, summary: SegmentSummary, accepts: Filter, threshold: int) -> None:
        """Put a segment's runs into queues and index, in scan order. Raises Refused at a message whose LMQ offset is no number,
        when it is in its own queue and before it is indexed."""
        faults = summary.lmq_faults if self.rules.multi_dispatch else []
        fault = next((f for f in faults if _accepts_at(accepts, f[0])), None)
        end = fault[0] if fault else 1 << 62  # what lies behind is not reached
        rows = summary.runs
        if len(rows):
            reached = (rows["walk"] & WALK_BROKER != 0) & (rows["kind"] != RUN_UNQUEUED) & (rows["first_phy_offset"] <= end)
            if not self.rules.multi_dispatch:
                reached &= rows["kind"] != RUN_LMQ
            chosen = self._chosen(scan, rows, np.flatnonzero(reached & (rows["last_phy_offset"] <= end)), accepts, threshold)
            if (reached & (rows["last_phy_offset"] > end)).any():
                self.needs.phy_cuts[scan].add(end)
            if len(chosen):
                self.puts.put(scan, self._scan_number(scan), summary, chosen)
        if self.rules.builds_index:
            self._dispatch_index(scan, summary, accepts, threshold, end)
        if fault is not None:
            self.puts.settle()
            sentence = f"the message at physical offset {fault[0]} names the LMQ offset {fault[1]!r}, which is no number"
            raise Refused(f"{summary.path}: {sentence}", fault[0])

    def _chosen(self, scan: ScanId, rows: np.ndarray, numbers: np.ndarray, accepts: Filter, threshold: int) -> np.ndarray:
        """Which of these runs (or index runs) are dispatched; a cut is asked for where the decision falls inside one."""
        yes, inside = accepts(*_ends(rows[numbers]))
        if inside.any():
            self.needs.phy_cuts[scan].add(threshold)
        return numbers[yes]

    def _scan_number(self, scan: ScanId) -> int:
        if scan not in self._scan_numbers:
            self._scan_numbers[scan] = len(self.scan_ids)
            self.scan_ids.append(scan)
        return self._scan_numbers[scan]

    def _dispatch_index(self, scan: ScanId, summary: SegmentSummary, accepts: Filter, threshold: int, end: int) -> None:
        rows = summary.index_runs
        reached = (rows["walk"] & WALK_BROKER != 0) & (rows["records"] != 0) & (rows["first_phy_offset"] < end)
        if (reached & (rows["last_phy_offset"] >= end)).any():
            self.needs.phy_cuts[scan].add(end)
        whole = np.flatnonzero(reached & (rows["last_phy_offset"] < end))
        for number in self._chosen(scan, rows, whole, accepts, threshold).tolist():
            run = rows[number]
            least = self.index.threshold()
            if int(run["last_phy_offset"]) < least:
                continue
            if int(run["first_phy_offset"]) < least:
                self.needs.phy_cuts[scan].add(least)
                continue
            try:
                self.index.put_run(scan, number, run, summary.index_marks)
            except NeedMarks as needed:
                if not self.needs.phy_cuts.get(scan) and not self.needs.queue_cuts.get(scan):
                    self.needs.marks[scan].update((number, k) for k in needed.marks)

    def _cut_pieces(self, key: QueueKey, queue: QueueState, phy_offset: int) -> None:
        for number in np.flatnonzero(
            (queue.pieces.rows["first_phy"] <= phy_offset) & (phy_offset <= queue.pieces.rows["last_phy"])
        ).tolist():
            piece = queue.pieces.piece(number)
            if isinstance(piece.scan, ScanId) and piece.first_phy <= phy_offset <= piece.last_phy:
                self.needs.queue_cuts[piece.scan][key].add(phy_offset)

    # ---- start() ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """What start() dispatches: 4.x from the ConsumeQueues' maximum on, later releases only when told to (recovery.md 9)."""
        rules = self.rules
        if not rules.dispatches_at_start:
            return
        at = max(self._min_offset(), 0, self._max_cq_phy())
        while at < self._max_offset() and not rules.value("duplicationEnable"):
            found = self._find_segment(at)
            if found is None:
                self.prediction.hangs_at = at
                break
            number, file = found
            if at - file.file.start >= file.wrote:
                self.prediction.hangs_at = at
                break
            scan = ScanId("reput", number, at - file.file.start, file.wrote)
            summary = self.scans.get(scan)
            if summary is None:
                self._ask_reput(scan)
                self.puts.settle()
                return
            self._dispatch(scan, summary, _everything, 0)
            if summary.broker.position <= at:
                self.prediction.hangs_at = at  # no master: the record is read again, for ever
                break
            at = summary.broker.position
        self.puts.settle()
        if rules.catches_up:
            self._correct_minimums()

    def _find_segment(self, phy_offset: int) -> tuple[int, LogFile] | None:
        for file in self.log:
            if file.file.start <= phy_offset < file.file.start + file.file.size:
                return self._places[file.file.path], file
        if self.log and phy_offset == 0:
            return self._places[self.log[0].file.path], self.log[0]
        return None

    def _ask_reput(self, scan: ScanId) -> None:
        """Ask for this walk, and for those of all later files from their beginning: that is how it goes on mostly."""
        self.needs.scans.add(scan)
        for file in self.log:
            number = self._places[file.file.path]
            later = ScanId("reput", number, 0, file.wrote)
            if number > scan.segment and file.wrote and later not in self.scans:
                self.needs.scans.add(later)


def _everything(
    first: np.ndarray, last: np.ndarray, first_end: np.ndarray, last_end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(len(first), bool), np.zeros(len(first), bool)


def _accepts_at(accepts: Filter, phy_offset: int) -> bool:
    """Whether a message there is dispatched, as far as that is known."""
    at = np.array([phy_offset], np.int64)
    return bool(accepts(at, at, at + 1, at + 1)[0][0])


def _ends(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What a filter asks of runs, or of index runs."""
    first, last = rows["first_phy_offset"], rows["last_phy_offset"]
    if "last_end" in (rows.dtype.names or ()):
        return first, last, rows["first_end"], rows["last_end"]
    return first, last, _sum(first, rows["first_size"]), _sum(last, rows["last_size"])


def _sum(phy_offset: np.ndarray, size: np.ndarray) -> np.ndarray:
    """phy_offset + size; the largest number where a damaged one leads beyond it."""
    end = phy_offset + size
    return np.where((end < phy_offset) & (size > 0), np.iinfo(np.int64).max, end)


class _Puts:
    """Dispatch into all queues at once, segment by segment.

    Of each ordinary queue what a put asks is in arrays: while its runs follow one another they never touch its QueueState.
    Whatever else happens (a file begins, numbers are out of line) goes through `QueueState.put_run`. `settle` brings all
    QueueStates up to date; nothing else may look at them before.
    """

    def __init__(self, fold: Fold):
        self.fold = fold
        self.slots: dict[QueueKey, int] = {}
        self.states: list[QueueState] = []
        self.max_phy = np.zeros(0, np.int64)
        self.cursor = np.zeros(0, np.int64)  # byte of the queue at which the next entry goes; -1: ask the QueueState
        self.room = np.zeros(0, np.int64)  # entries
        self.file = np.zeros(0, np.int32)
        self.file_start = np.zeros(0, np.int64)
        self.ahead = np.zeros(0, bool)  # of its QueueState
        self._log: list[tuple[np.ndarray, np.ndarray]] = []  # (slots, rows of pieces)
        self._slow: list[tuple[int, tuple[int, ...]]] = []  # the same one by one, behind the log's end
        self._of_list: dict[int, tuple[object, np.ndarray]] = {}  # a segment's list of queues -> slots

    def put(self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray) -> None:
        """Put these runs of a segment, in their order."""
        rows = summary.runs[numbers]
        slots = self._slots_of(summary, rows["queue"])
        order = np.argsort(slots, kind="stable")
        ordered = slots[order]
        first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        rank = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        by_rank = order[np.argsort(rank, kind="stable")]
        at = 0
        for size in np.bincount(rank).tolist():  # each queue's first run, then each one's second, ...
            part = by_rank[at : at + size]
            at += size
            if size >= FEW_ROWS:
                part = self._put_together(scan, scan_number, summary, numbers[part], rows[part], slots[part])
            else:
                part = np.stack([slots[part], numbers[part]], axis=1)
            for slot, number in part.tolist():
                self._put_one(scan, scan_number, summary, slot, number)

    def _put_together(
        self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray, rows: np.ndarray, slots: np.ndarray
    ) -> np.ndarray:
        """Put what is in line of one run per queue; gives (slot, number) of the others."""
        last_end = _sum(rows["last_phy_offset"], rows["last_size"])
        wanted = last_end > self.max_phy[slots]
        plain = (self.cursor[slots] >= 0) & (last_end < FAR)
        inside = wanted & plain & (_sum(rows["first_phy_offset"], rows["first_size"]) <= self.max_phy[slots])
        for i in np.flatnonzero(inside).tolist():
            self.fold.needs.queue_cuts[scan][self.states[slots[i]].key].add(int(self.max_phy[slots[i]]))
        offset = rows["queue_offset"]
        in_line = wanted & plain & ~inside & (offset >= 0) & (offset < FAR) & (rows["records"] <= self.room[slots])
        in_line &= offset * layout.ENTRY_BYTES == self.cursor[slots]
        if in_line.any():
            self._flush()
            at, put = slots[in_line], rows[in_line]
            pieces = np.zeros(len(at), PIECE_DTYPE)
            pieces["file"], pieces["at"], pieces["count"] = self.file[at], self.cursor[at] - self.file_start[at], put["records"]
            pieces["first_phy"], pieces["last_phy"] = put["first_phy_offset"], put["last_phy_offset"]
            pieces["last_size"], pieces["scan"], pieces["run"], pieces["extra"] = (
                put["last_size"],
                scan_number,
                numbers[in_line],
                -1,
            )
            self._log.append((at.astype(np.int32), pieces))
            self.cursor[at] += put["records"] * layout.ENTRY_BYTES
            self.room[at] -= put["records"]
            self.max_phy[at] = last_end[in_line]
            self.ahead[at] = True
        others = wanted & ~inside & ~in_line
        return np.stack([slots[others], numbers[others]], axis=1)

    def _put_one(self, scan: ScanId, scan_number: int, summary: SegmentSummary, slot: int, number: int) -> None:
        state = self.states[slot]
        self._update(slot)
        try:
            state.put_run(scan, number, summary.runs[number])
        except NeedCut as cut:
            self.fold.needs.queue_cuts[scan][state.key].add(cut.phy_offset)
        if not state.batch:
            self._slow += [(slot, row) for row in state.pieces.take_fresh()]
            self._read(slot)

    def _slots_of(self, summary: SegmentSummary, queues: np.ndarray) -> np.ndarray:
        """The slot of each run's queue; queues come into being in the order of their first run."""
        kept = self._of_list.get(id(summary.queues))
        if kept is None:
            kept = self._of_list[id(summary.queues)] = (summary.queues, np.full(len(summary.queues), -1, np.int64))
        known = kept[1]
        met, first = np.unique(queues, return_index=True)
        for queue in met[np.argsort(first)].tolist():
            if known[queue] < 0:
                known[queue] = self._slot(summary.queues[queue])
        slots: np.ndarray = known[queues]
        return slots

    def _slot(self, key: QueueKey) -> int:
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = len(self.states)
            self.states.append(self.fold.find_queue(key))
            if slot == len(self.max_phy):
                more = max(64, slot)
                for name in ("max_phy", "cursor", "room", "file", "file_start", "ahead"):
                    column = getattr(self, name)
                    setattr(self, name, np.concatenate([column, np.zeros(more, column.dtype)]))
            self._read(slot)
        return slot

    def _read(self, slot: int) -> None:
        """Take over what the QueueState has."""
        state = self.states[slot]
        last = state.files[-1] if state.files else None
        self.ahead[slot], self.cursor[slot], self.max_phy[slot] = False, -1, -FAR
        if state.batch or abs(state.max_phy) >= FAR:
            return
        self.max_phy[slot] = state.max_phy
        if last is None or last.full or last.start < 0 or last.start + last.wrote >= FAR:
            return
        self.cursor[slot] = last.start + last.wrote
        self.room[slot] = (last.size - last.wrote) // layout.ENTRY_BYTES
        self.file[slot], self.file_start[slot] = state.pieces.file_number(last.start), last.start

    def _update(self, slot: int) -> None:
        """Bring the QueueState up to date, all but its pieces."""
        if self.ahead[slot]:
            state = self.states[slot]
            state.max_phy = int(self.max_phy[slot])
            state.files[-1].wrote = int(self.cursor[slot]) - state.files[-1].start
            self.ahead[slot] = False

    def _flush(self) -> None:
        if self._slow:
            slots = np.array([slot for slot, _ in self._slow], np.int32)
            self._log.append((slots, np.array([row for _, row in self._slow], PIECE_DTYPE)))
            self._slow = []

    def settle(self) -> None:
        """Bring all QueueStates up to date, and forget them: others may change them now."""
        self._flush()
        for slot in np.flatnonzero(self.ahead[: len(self.states)]).tolist():
            self._update(slot)
        if self._log:
            slots = np.concatenate([part for part, _ in self._log])
            rows = np.concatenate([part for _, part in self._log])
            self._log = []
            order = np.argsort(slots, kind="stable")
            rows = rows[order]
            met, starts = np.unique(slots[order], return_index=True)
            for slot, start, end in zip(met.tolist(), starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
                self.states[slot].pieces.extend(rows[start:end])
        self.slots, self.states, self._of_list = {}, [], {}
