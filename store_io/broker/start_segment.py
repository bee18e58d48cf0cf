"""In which segment a broker begins its recovery scan (recovery.md 4, 5).

Source: CommitLog.recoverNormally, recoverAbnormally, isMappedFileMatchedRecover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from schemas.layouts import commitlog_layout
from schemas.rows import Checkpoint, FirstRecord, MappedFile, SegmentSummary
from store_io.broker.prediction import Needs, ScanId
from store_io.broker.releases import BrokerRules


@dataclass(frozen=True)
class StartSearch:
    """The search for the start segment, in one store. Records that it would have to read first are put into `needs`.

    firsts: first records of segments, by place in the list, that were not scanned.
    marks: those of index and transactions in RocksDB; None: nobody can read it.
    """

    rules: BrokerRules
    checkpoint: Checkpoint
    unclean: bool
    segments: Sequence[MappedFile]
    scans: Mapping[ScanId, SegmentSummary]
    firsts: Mapping[int, FirstRecord]
    needs: Needs
    marks: tuple[int | None, ...] = ()

    def place(self, m: int) -> int | None:
        """Return the place of the segment at which the search ends; None if the release does not search.

        m: the largest physical offset that any queue reaches.
        """
        rules, count = self.rules, len(self.segments)
        if rules.start_by_record_check:
            return self._place_by_record(m)
        if not self.unclean:
            if not rules.clean_start_by_queues:
                return None
            i = count - 1
            while i > 0 and self.segments[i].start > m:
                i -= 1
            return i
        for i in reversed(range(count)):
            if self._matched_by_time(i):
                return i
        return 0

    def first(self, i: int) -> FirstRecord | None:
        """Return the segment's first record; None if it must be read first."""
        summary = self.scans.get(ScanId("segment", i))
        if summary is not None:
            return summary.first
        if i not in self.firsts:
            self.needs.scans.add(ScanId("segment", i))
        return self.firsts.get(i)

    def _matched_by_time(self, i: int) -> bool:
        """isMappedFileMatchedRecover up to 5.3.3: magic and store time of the first record."""
        first = self.first(i)
        if first is None:
            return False
        if first.magic != commitlog_layout.MAGIC_V1 and not (first.magic == commitlog_layout.MAGIC_V2 and self.rules.knows_v2):
            return False
        return first.store_time != 0 and self.dispatched(first)

    def _place_by_record(self, m: int) -> int:
        if self.unclean:
            return self.place_where(self.dispatched)
        return self.place_where(lambda first: first.phy_offset <= m and self.indexed(first))

    def place_where(self, matches: Callable[[FirstRecord], bool]) -> int:
        """5.3.4 and later: the first record is checked in full.

        matches: asked of each segment's first record if it is sound, from the newest segment back.
        """
        most = int(self.rules.value("commitLogRecoverMaxNum")) if self.rules.limits_start_search else len(self.segments)
        for looked, i in enumerate(reversed(range(len(self.segments))), 1):
            if not self.unclean and i == 0:
                return 0
            if self._matched_by_record(i, matches) or looked >= most:
                return i
        return 0

    def _matched_by_record(self, i: int, matches: Callable[[FirstRecord], bool]) -> bool:
        first = self.first(i)
        if first is None or first.blank or not first.check_ok or first.store_time == 0:
            return False
        return matches(first)

    def dispatched(self, first: FirstRecord) -> bool:
        """Say whether the checkpoint says that all before this record was dispatched, as it is asked after an unclean exit."""
        return self.indexed(first) and self.queued(first)

    def queued(self, first: FirstRecord) -> bool:
        """Say whether, by the checkpoint, queues in files have all messages before this record."""
        checkpoint = self.checkpoint
        if self.rules.start_by_logics_offset:
            if checkpoint.logics_phy_offset > 0:
                return first.phy_offset <= checkpoint.logics_phy_offset
            return first.store_time <= checkpoint.logics_time
        return first.store_time <= checkpoint.min_time

    def indexed(self, first: FirstRecord) -> bool:
        """Say whether the index, and the tables in RocksDB, have all messages before this record.

        True if the settings do not ask for that.
        """
        if any(mark is None or first.phy_offset > mark for mark in self.marks):
            return False
        if self.rules.value("messageIndexEnable") and self.rules.value("messageIndexSafe"):
            return first.store_time <= self.checkpoint.index_time
        return True
