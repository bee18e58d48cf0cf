"""Folds a store with a double write of its ConsumeQueues, to files and RocksDB, from 5.4.0 on (rocksdb.md 8).

Source: CombineConsumeQueueStore: recover, isMappedFileMatchedRecover, getDispatchFromPhyOffset, truncateDirty, start with
verifyAndInitOffsetForAllStore; CommitLog.recoverNormally, recoverAbnormally; read at 5.4.0 and 5.5.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from schemas.advice import Cause, Gap, Refusal, RefusalKind
from schemas.rows import RUN_LMQ, FirstRecord, QueueKey, SegmentSummary
from store_io.broker.dispatch import Dispatch, Puts
from store_io.broker.loading import queue_folder
from store_io.broker.prediction import BrokerQueue, Memory, Prediction, Refused, ScanId
from store_io.broker.queues.combination import combination, light_from_rocksdb, line_to_correct
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.queues.rocksdb_queue_state import RocksQueue
from store_io.broker.recovery import Fold
from store_io.broker.releases import BrokerRules
from store_io.broker.start_segment import StartSearch
from store_io.kinds.rocksdb_queues.rocksdb_fold import RocksFold


class _BothPuts:
    """Puts every dispatched message into both kinds of queues.

    Entries of light queues go into the kinds that get such. A name with "/" has none in files.
    """

    def __init__(self, rules: BrokerRules, files: Puts, keyed: Puts):
        self._rules, self._files, self._keyed = rules, files, keyed
        # ConsumeQueue.doDispatchLmqQueue asks the kind that is read for the queue, and takes what it gets for one in files.
        self._throws = combination(rules).reads_rocksdb

    def put(self, scan: ScanId, scan_number: int, summary: SegmentSummary, numbers: np.ndarray) -> None:
        light = summary.runs["kind"][numbers] == RUN_LMQ
        keyed = files = numbers
        if light.any():
            keyed = numbers if self._rules.lmq_in_rocksdb else numbers[~light]
            named = np.array([self._rules.lmq_in_files and "/" not in topic for topic, _ in summary.queues])
            into_files = light & named[summary.runs["queue"][numbers]]
            if self._throws and into_files.any():
                raise _cast_fails(self._rules, summary, int(summary.runs["first_phy_offset"][numbers[into_files]].min()))
            files = numbers[~light | into_files]
        if len(files):
            self._files.put(scan, scan_number, summary, files)
        if len(keyed):
            self._keyed.put(scan, scan_number, summary, keyed)

    def settle(self) -> None:
        self._files.settle()
        self._keyed.settle()


def _cast_fails(rules: BrokerRules, summary: SegmentSummary, phy_offset: int) -> Refused:
    line = line_to_correct(rules, "combineCQPreferCQType", "enableMultiDispatch")
    return Refused(Refusal(RefusalKind.DOUBLE_WRITE_CAST, summary.path, setting=line, phy_offset=phy_offset))


@dataclass(eq=False)
class CombinedFold(RocksFold):
    """One run of the fold. `queues` are those in files, `rocks` those in RocksDB."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.combination = combination(self.rules)
        self.dispatch = Dispatch(self.rules, self.batch_topics, self.disk, self.needs)
        self._file_puts = self.dispatch.puts
        self.dispatch.puts = _BothPuts(self.rules, self._file_puts, self.put_into)
        self.queues, self.index = self.dispatch.queues, self.dispatch.index
        self._extra_left = self.combination.extra_files or 0
        self._file_reach = -1  # when recovery begins
        self._ends_in_start: Refusal | None = None

    def run(self) -> Prediction:
        prediction = super().run()
        if prediction.starts and self._ends_in_start:
            prediction.starts, prediction.refusal = False, self._ends_in_start
        return prediction

    def memory(self) -> Memory:
        """Return a snapshot with both kinds of queues."""
        found = super().memory()
        files, log_min = Fold._queues_now(self), self.min_offset()
        # Nobody asks for a minimum between load() and what start() dispatches then: a copy of the queue remembers the answer.
        rocks = {key: replace(queue) if self.rules.dispatches_at_start else queue for key, queue in self.rocks.items()}
        keyed: dict[QueueKey, BrokerQueue] = {key: queue.snapshot(log_min) for key, queue in rocks.items()}
        found.queues, found.twins = (keyed, files) if self.combination.reads_rocksdb else (files, keyed)
        if light_from_rocksdb(self.rules):
            light = {key for key in files.keys() | keyed.keys() if key[0].startswith(LMQ_PREFIX)}
            found.queues, found.twins = (
                {key: queue for kind, those in both for key, queue in kind.items() if (key in light) == those}
                for both in (((files, False), (keyed, True)), ((keyed, False), (files, True)))
            )
        return found

    def _queues_now(self) -> Mapping[QueueKey, BrokerQueue]:
        return {}  # `memory` looks at both kinds

    # ---- load ------------------------------------------------------------------------------------------------------

    def _load_queues(self) -> None:
        Fold._load_queues(self)
        super()._load_queues()

    def _recover_queues(self) -> None:
        Fold._recover_queues(self)
        self._file_reach = Fold.max_cq_phy(self)

    def correct_minimums(self) -> None:
        Fold.correct_minimums(self)

    def _destroy_queues(self) -> None:
        Fold._destroy_queues(self)
        super()._destroy_queues()

    def max_cq_phy(self) -> int:
        """Dispatch begins after the smaller end of the two."""
        return min(self._file_reach, self.mark)

    def _accelerated_from(self, m: int) -> int:
        begin = Fold._accelerated_from(self, m)
        return min(begin, self.mark) if begin >= 0 else begin

    def _start_place(self, m: int) -> int:
        search = self._search(self.unclean)
        return search.place_where(lambda first: search.indexed(first) and self._matches(first, search))

    def _matches(self, first: FirstRecord, search: StartSearch) -> bool:
        """Say whether recovery may begin at this record.

        The store that gives the numbers must allow it; for the other one only so many segments more are looked at.
        """
        in_files = search.queued(first) if self.unclean else first.phy_offset <= self._file_reach
        in_rocksdb = first.phy_offset <= self.mark
        reach = self._file_reach if self.combination.assigns_rocksdb else self.mark
        assigning, other = (in_rocksdb, in_files) if self.combination.assigns_rocksdb else (in_files, in_rocksdb)
        if not assigning:
            return False
        if other or self.rules.combines_with_unwritten and reach <= 0:
            return True
        if self.combination.extra_files is None:
            return False
        self._extra_left -= 1
        if self._extra_left >= 0:
            return False
        if not self.combination.one_gives_all:
            kind = RefusalKind.ROCKSDB_ENDS_EARLY if self.combination.reads_rocksdb else RefusalKind.FILES_END_EARLY
            raise Refused(Refusal(kind, phy_offset=reach))
        return True

    def _tell_skipped(self, start: int) -> None:
        """Note the messages that the queues that are read lack because of recovery's begin."""
        reads = self.combination.reads_rocksdb
        reach = self.mark if reads else self._file_reach
        skips, where = self.prediction.skips, "in RocksDB" if reads else "in files"
        if max(reach, 0) < start:
            skips.append(f"recovery begins at physical offset {start:,}, and the queues {where} end at {reach:,}")
        if not self.unclean:
            self.prediction.dispatches_after = self.max_cq_phy()
            skips.append(
                f"after a clean exit the message that begins exactly at the smaller end of the two stores,"
                f" {self.max_cq_phy():,}, is not dispatched"
            )

    def _settle(self) -> None:
        super()._settle()
        self._file_puts.settle()

    def _cut(self, m: int, end: int) -> None:
        if Fold.max_cq_phy(self) >= end:
            Fold.truncate_queues(self, end)
        super()._cut(self.ends.mark, end)

    def truncate_queues(self, end: int) -> None:
        """Truncate both kinds of queues of a running broker."""
        Fold.truncate_queues(self, end)
        super().truncate_queues(end)

    # ---- start() ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Give each queue of the other store the maximum of the one that gives the numbers, without entries. RocksDB lists no
        queue yet when it is the one."""
        if self.rules.dispatches_at_start:  # a look at the kind that is read; of RocksDB that is not modelled
            self.catch_up(max(self.min_offset(), 0, Fold.max_cq_phy(self)))
            self._settle()
        ahead: list[QueueKey] = []
        perhaps_ahead: list[QueueKey] = []
        for assigning in () if self.combination.assigns_rocksdb else self.queues:
            key, other = assigning.key, self._find(assigning.key)
            if self.combination.light_in_rocksdb and key[0].startswith(LMQ_PREFIX) and other.max_offset > 0:
                continue
            if _take_number(other, assigning.max_offset):
                ahead.append(key)
            if other.or_else is not None and _take_number(other.or_else, assigning.max_offset):
                perhaps_ahead.append(key)
        if self.combination.one_gives_all or not ahead and not perhaps_ahead:
            return
        key = (ahead or perhaps_ahead)[0]
        refusal = Refusal(RefusalKind.DOUBLE_WRITE_ENDS_DIFFER, queue_folder(False, key), queue=key)
        if ahead:
            self._ends_in_start = refusal
        else:
            self.undecided = Gap(Cause.DOUBLE_WRITE_RACE, refusal=refusal)


def _take_number(queue: RocksQueue, number: int) -> bool:
    """Follow initializeWithOffset if the queue ends elsewhere. Returns whether it has another end, and is not just empty."""
    end = queue.max_offset
    if number == end or number <= 0 and end <= 0:
        return False
    queue.initialise(number)
    return end > 0
