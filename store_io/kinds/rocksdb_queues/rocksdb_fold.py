"""Folds a store whose ConsumeQueues are in RocksDB: what differs from queues in files (rocksdb.md 3; dledger.md 8).

Runs of segments become entries of all queues in the order of dispatch; each lands at its own key. The log may be DLedger's.
Source: RocksDBConsumeQueueStore.putMessagePosition, dispatch, dispatchLMQ, isMappedFileMatchedRecover, truncateDirty;
RocksDBConsumeQueueOffsetTable.truncateDirty; RocksGroupCommitService; CommitLog.recoverNormally, recoverAbnormally,
isMappedFileMatchedRecover; DLedgerCommitLog.dledgerRecoverNormally, dledgerRecoverAbnormally, isMmapFileMatchedRecover. CommitLog
was read at 5.2.0, 5.3.1 and 5.3.3; 5.4.0 and 5.5.0 are as their brokers behave; dispatch at 5.3.3; DLedger's at 5.3.3, 5.4.0 and
5.5.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from schemas.layouts import commitlog_layout
from schemas.layouts.rocksdb_layout import CURRENT
from schemas.rows import FirstRecord, QueueKey, SegmentSummary
from store_io.broker.dispatch import Choice, Dispatch
from store_io.broker.prediction import BrokerQueue, Prediction, Refused, ScanId
from store_io.broker.queues.queue_puts import end_of
from store_io.broker.queues.rocksdb_queue_state import PUT_DTYPE, BadEnds, EntryUnreadable, RocksQueue, StoredEnds
from store_io.broker.queues.start_databases import database_folder
from store_io.broker.recovery import Fold
from store_io.broker.start_segment import StartSearch
from store_io.kinds.dledger.ledger_fold import LedgerFold
from store_io.log.entries.stored_entries import KnownEntries

COMPACTED_FROM = 2  # so many tables are compacted at once (RocksDBOptionsFactory.createCQCFOptions, createOffsetCFOptions)


class RocksPuts:
    """Collects what is put; `settle` gives it to the queues.

    count: records so far.
    mark: the end of the last ones put.
    """

    def __init__(self, find_queue: Callable[[QueueKey], RocksQueue]):
        """find_queue: gives a queue, made if there is none."""
        self._find_queue = find_queue
        self._slots: dict[QueueKey, int] = {}
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []  # (slots, rows)
        self.count = self.mark = 0

    def put(self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray) -> None:
        """Put these runs of a segment, in their order."""
        runs = summary.runs[numbers]
        met = np.unique(runs["queue"])
        slots = np.zeros(len(summary.queues), np.int64)
        for queue in met.tolist():
            slots[queue] = self._slots.setdefault(summary.queues[queue], len(self._slots))
        rows = np.zeros(len(runs), PUT_DTYPE)
        rows["first"], rows["count"] = runs["queue_offset"], runs["records"]
        rows["first_phy"], rows["last_phy"], rows["scan"] = runs["first_phy_offset"], runs["last_phy_offset"], scan_number
        self._parts.append((slots[runs["queue"]], rows))
        self.count += int(runs["records"].sum())
        self.mark = int(end_of(runs["last_phy_offset"], runs["last_size"]).max())

    def settle(self) -> set[QueueKey]:
        """Give everything to its queue; the queues that got something."""
        if not self._parts:
            return set()
        slots = np.concatenate([part for part, _ in self._parts])
        rows = np.concatenate([part for _, part in self._parts])
        order = np.argsort(slots, kind="stable")
        slots, rows = slots[order], rows[order]
        edges = np.searchsorted(slots, np.arange(len(self._slots) + 1)).tolist()
        for key, slot in self._slots.items():
            self._find_queue(key).add(rows[edges[slot] : edges[slot + 1]])
        keys = set(self._slots)
        self._slots, self._parts = {}, []
        return keys


@dataclass(eq=False)
class RocksFold(Fold):
    """One run of the fold.

    ends: what the database says of queues' ends; stored: reads its entries; bad_ends: where bad bytes hold some of the ends, else
    None.
    write_queues: topic -> how many queues it has for writing, of each topic that the broker knows; None where the copy does not
    say.
    undecided: why nobody can say what the broker does, else empty.
    """

    ends: StoredEnds = field(kw_only=True)
    stored: KnownEntries = field(kw_only=True)
    bad_ends: BadEnds | None = field(default=None, kw_only=True)
    write_queues: Mapping[str, int] | None = field(default=None, kw_only=True)
    undecided: Gap | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rocks: dict[QueueKey, RocksQueue] = {}
        self.put_into = RocksPuts(self._find)
        self.dispatch = Dispatch(self.rules, frozenset(), self.disk, self.needs, self.put_into)
        self.index = self.dispatch.index
        self.mark = self.ends.mark
        self.met: set[QueueKey] = set()  # queues into which recovery dispatches

    def run(self) -> Prediction:
        prediction = super().run()
        self.undecided = self.undecided or self.dispatch.undecided
        return prediction

    def close(self) -> None:
        self.stored.close()

    def _find(self, key: QueueKey) -> RocksQueue:
        if key not in self.rocks:
            minimum = self.ends.minima.get(key)
            made = self.rocks[key] = RocksQueue(key, database_folder(self.rules), self.stored, None, minimum)
            if self.bad_ends is not None:
                _ask_ends(made, self.bad_ends)
        return self.rocks[key]

    def _load_queues(self) -> None:
        if self.ends.refusal:
            raise Refused(self.ends.refusal)
        for key, maximum in self.ends.maxima.items():
            self._find(key).maximum = maximum
        for key in self.bad_ends.hidden() if self.bad_ends is not None else ():
            self._find(key)

    def _recover_queues(self) -> None:
        """Recover nothing of the database but what RocksDB itself does when it is opened."""

    def _queues_now(self) -> Mapping[QueueKey, BrokerQueue]:
        return {key: queue.snapshot(self.min_offset()) for key, queue in self.rocks.items()}

    def _read_on(self, scan: ScanId, choice: Choice | None) -> int | None:
        self._tell_skipped(self.segments[scan.segment].start + scan.start)
        return super()._read_on(scan, choice)

    def _tell_skipped(self, start: int) -> None:
        """Note the messages that stay without an entry because of recovery's begin, for reading and for dispatch."""
        skips, mark = self.prediction.skips, self.ends.mark
        if mark < start:
            begins = f"recovery begins at physical offset {start:,}"
            if self.rules.limits_start_search:
                begins += f", at most {int(self.rules.value('commitLogRecoverMaxNum'))} CommitLog files from the end"
            skips.append(f"{begins}, and the queues end at {mark:,}")
        if not self.unclean and self.rules.dispatches_after_clean_exit:
            skips.append(f"after a clean exit the message that begins exactly at the queues' end, {mark:,}, is not dispatched")

    def max_cq_phy(self) -> int:
        return self.mark

    def correct_minimums(self) -> None:
        """Correct the minimum of each queue, as a broker does when somebody asks for it."""

    def _destroy_queues(self) -> None:
        self.rocks.clear()

    def _accelerated_from(self, m: int) -> int:
        rules = self.rules
        on = rules.knows_rocksdb_acceleration and rules.value("enableAcceleratedRecovery")
        return m if on and (self.unclean or rules.accelerates_after_clean_exit) else -1

    def _start_place(self, m: int) -> int | None:
        """Return the newest segment that begins at or below the mark.

        Its first record decides; after a clean exit before 5.3.4 its name.
        """
        if self.rules.start_by_record_check or not self.unclean:
            return self._search(unclean=False).place(m)
        search = self._search(unclean=True)
        for i in reversed(range(len(self.segments))):
            first = search.first(i)
            magics = (commitlog_layout.MAGIC_V1, commitlog_layout.MAGIC_V2)
            if first is not None and first.magic in magics and first.phy_offset <= m:
                return i
        return 0

    def _settle(self) -> None:
        self.met = self.put_into.settle()

    def _cut(self, m: int, end: int) -> None:
        """Cut the log, and the queues if the race inside the broker goes that way.

        After an unclean exit the records read are dispatched again, by a thread of its own: if it has put anything before
        recovery comes here, the mark is at or below the cut already, and nothing is truncated; if it has not, all is. Nobody can
        say which one it is; only for queues into which it puts something the end is the same. Up to 5.3.1 recovery has put all by
        then (finishCommitLogDispatch).
        """
        self.truncate(end, queues=False)
        foreign = any(self.rocks[key].max_phy >= end for key in self.met)  # a record names a wrong offset, and moves the mark
        if m <= end and not foreign:
            return
        perhaps = self.put_into.count > 0
        if perhaps and not foreign and not self.rules.keyed_puts_by_thread:
            self.mark = self.put_into.mark
            return
        for queue in self._listed(end):
            if queue.max_phy < end:
                continue
            as_it_was = replace(queue)
            thrown = queue.truncate(end, self.min_offset())
            queue.cut_back = queue.maximum != as_it_was.maximum
            if thrown and not self.rules.truncates_stored_ends:
                self._fail(thrown, perhaps)
            if perhaps and queue.maximum != as_it_was.maximum:
                queue.or_else = as_it_was
        self.mark = self.put_into.mark if perhaps else end

    def truncate_queues(self, end: int) -> None:
        """truncateDirty of a broker that runs: all is put by then, as it waits for the dispatching thread first."""
        if self.put_into.count:
            self.mark = self.put_into.mark
        if end >= self.mark:
            return
        for queue in self._listed(end):
            self._ask_inside(queue, end)
            for answer in (queue, queue.or_else):
                thrown = answer.truncate(end, self.min_offset()) if answer is not None else ""
                if thrown and not self.rules.truncates_stored_ends:
                    self._fail(thrown, perhaps=True)
            self._ask_maximum(queue)
        self.mark = end

    def _fail(self, thrown: str, perhaps: bool) -> None:
        """Truncation throws, and load() fails over it; perhaps: or it does not come to that."""
        path = f"{database_folder(self.rules)}/{CURRENT}"
        refusal = Refusal(RefusalKind.QUEUE_TRUNCATION, path, actual=thrown)
        if not perhaps:
            raise Refused(refusal)
        self.undecided = self.undecided or Gap(Cause.ROCKSDB_TRUNCATION_THROWS, path, refusal=refusal)

    def _listed(self, end: int) -> Iterator[RocksQueue]:
        """Return the queues to which truncation comes: it lists them, and bad bytes end the list without an error. Up to 5.3.1 it
        asks for each queue of the broker's topics instead."""
        bad, numbers, release = self.bad_ends, self.write_queues, self.rules.release
        if self.rules.truncates_stored_ends:
            return (queue for key, queue in self.rocks.items() if bad is None or bad.lists(key))
        if bad is not None:
            self.undecided = Gap(Cause.ROCKSDB_TRUNCATES_BY_TOPICS, values=(release,))
        elif numbers is not None:
            return (queue for (topic, number), queue in self.rocks.items() if 0 <= number < numbers.get(topic, 0))
        elif any(queue.max_phy >= end for queue in self.rocks.values()):
            self.undecided = Gap(Cause.ROCKSDB_TOPICS_UNKNOWN, "config", (release,))
        return iter(())

    def _ask_inside(self, queue: RocksQueue, phy_offset: int) -> None:
        """Ask for a cut there of what was put: the queue is searched for it."""
        for row in queue.puts[(queue.puts["first_phy"] < phy_offset) & (phy_offset <= queue.puts["last_phy"])]:
            self.needs.queue_cuts[self._scan(row)][queue.key].add(phy_offset)

    def _ask_maximum(self, queue: RocksQueue) -> None:
        """Ask for the place to which the maximum leads, if that is not known."""
        held = queue.held_inside(queue.maximum.queue_offset) if queue.maximum is not None else None
        if queue.maximum is not None and held is not None:
            self.needs.number_cuts[self._scan(held)][queue.key].add(queue.max_offset)

    def _scan(self, row: np.void) -> ScanId:
        found = self.dispatch.scan_ids[row["scan"]]
        assert isinstance(found, ScanId)
        return found

    def _start(self) -> None:
        """Follow the dispatch of readUnCommitted, else of nothing.

        `recheckReputOffsetFromCq` is not modelled here (rocksdb.md 5).
        """
        if not self.rules.dispatches_at_start:
            super()._start()

    def compacts(self, runs: int) -> bool:
        """Say whether RocksDB makes one table of so many while the broker starts.

        recoverAbnormally flushes the queues at its end.
        """
        flushed = self.rules.flushes_after_unclean_exit and self.unclean and self.put_into.count > 0
        return runs + flushed >= COMPACTED_FROM


def _ask_ends(queue: RocksQueue, bad: BadEnds) -> None:
    """Ask for both ends by key, as a broker does."""
    try:
        queue.maximum = bad.maximum(queue.key)
    except EntryUnreadable:
        queue.maximum_bad = True
    try:
        queue.stored_minimum = bad.minimum(queue.key)
    except EntryUnreadable:
        queue.minimum_bad = True


@dataclass(eq=False)
class KeyedLedgerFold(LedgerFold, RocksFold):
    """One run of the fold."""

    def _begins_at(self, search: StartSearch, first: FirstRecord) -> bool:
        if self.rules.start_by_record_check:
            return super()._begins_at(search, first)
        return first.magic == commitlog_layout.MAGIC_V1 and first.phy_offset <= self.mark

    def _is_dispatched(self, search: StartSearch, first: FirstRecord) -> bool:
        return search.indexed(first) and first.phy_offset <= self.mark

    def _cut_after_crash(self, m: int, counted: int) -> None:
        """Truncate after a dispatch at a place that recovery counts too low.

        If the thread that puts has put all by then, each queue that leads there is cut; if it has put nothing, the queues into
        which it puts end as they did before.
        """
        if m < counted:
            return
        self.prediction.ledger_cut = counted
        put_first = self.put_into.mark if self.put_into.count else m
        for key, queue in self.rocks.items():
            self._ask_inside(queue, counted)
            as_it_was, cut = replace(queue), replace(queue)
            cut.truncate(counted, self.min_offset())
            cut.cut_back = cut.maximum != as_it_was.maximum
            answer = cut if counted < put_first else as_it_was
            other = cut if counted < m and key not in self.met else as_it_was
            self._ask_maximum(answer)
            if other.maximum != answer.maximum:
                answer.or_else = other
            self.rocks[key] = answer
        self.mark = put_first

    def _start(self) -> None:
        LedgerFold._start(self)

    def compacts(self, runs: int) -> bool:
        """dledgerRecoverAbnormally flushes nothing."""
        return runs >= COMPACTED_FROM
