"""The fold over a store with a DLedger log whose ConsumeQueues are in RocksDB (dledger.md 8).

Source: DLedgerCommitLog.dledgerRecoverNormally, dledgerRecoverAbnormally, isMmapFileMatchedRecover; RocksGroupCommitService;
RocksDBConsumeQueueStore.isMappedFileMatchedRecover, truncateDirty; read at 5.3.3, 5.4.0 and 5.5.0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas import commitlog_layout
from schemas.rows import FirstRecord
from store_io.broker.start_segment import StartSearch
from store_io.kinds.dledger.ledger_fold import LedgerFold
from store_io.kinds.rocksdb_queues.rocksdb_fold import COMPACTED_FROM, RocksFold


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
