"""The start of a broker with a DLedger log: DLedger's own recovery inside of the CommitLog's, then leadership, then dispatch.

One node that is alone in its group: it elects itself, commits all that it has, and dispatches it (dledger.md 4, 6).
Source: DLedgerCommitLog.recover (up to 5.1.4), dledgerRecoverNormally, dledgerRecoverAbnormally, setRecoverPosition,
isMmapFileMatchedRecover, getMaxOffset, getMinOffset, DLedgerRoleChangeHandler, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from schemas.advice import Refusal, RefusalKind
from schemas.layouts import commitlog_layout
from schemas.layouts.dledger_layout import DATA, HEADER_BYTES, SIZE_POSITION
from schemas.rows import WALK_BROKER, FirstRecord, MappedFile, SegmentSummary
from store_io.broker.dispatch import EVERYTHING, Choice
from store_io.broker.prediction import LogFile, Refused, ScanId
from store_io.broker.recovery import Fold
from store_io.broker.settings.ledger_files import LedgerFiles
from store_io.broker.start_segment import StartSearch
from store_io.kinds.dledger.ledger_recovery import LedgerMemory, UnitList, recover_ledger
from store_io.kinds.dledger.ledger_walks import DataWalk, LedgerTexts


@dataclass(frozen=True)
class LedgerRead:
    """The parts of the group that were read.

    walks: by path.
    """

    walks: Mapping[str, DataWalk]
    texts: LedgerTexts


@dataclass(eq=False)
class LedgerFold(Fold):
    """`Fold` for a store with a DLedger log."""

    read: LedgerRead = field(default_factory=lambda: LedgerRead({}, LedgerTexts()))

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.loaded.ledger is not None
        self.files: LedgerFiles = self.loaded.ledger
        self.old = self.log[: self.files.old_segments]
        self.ledger = LedgerMemory([], UnitList(self.files.index))

    # ---- what the broker answers ---------------------------------------------------------------------------------------

    def min_offset(self) -> int:
        files = [*self.old, *self.ledger.data]
        return files[0].file.start if files else 0

    def max_offset(self) -> int:
        if self.ledger.committed_pos > 0:
            return self.ledger.committed_pos
        return max(0, self.ledger.data[0].file.start) if self.ledger.data else 0

    def log_end(self) -> int:
        return self.ledger.log_end if self.ledger.data else super().log_end()

    # ---- load ------------------------------------------------------------------------------------------------------------

    def _recover_log(self) -> None:
        files = self.files
        if files.refusal:
            raise Refused(files.refusal)
        m = self._with_marks(self.max_cq_phy())
        if files.data:
            self.ledger = recover_ledger(files, self.read.walks, self.read.texts, self.rules)
            self._say_where()
            self.log[:] = [*self.old, *self.ledger.data]
            self.deleted += self.ledger.deleted
            if self.unclean and self.rules.ledger_crash_dispatch:
                self._recover_abnormally(m)
            elif m >= self.ledger.log_end:
                self.truncate_queues(self.ledger.log_end)
        else:
            self._begin_ledger()
        self.prediction.ledger, self.prediction.ledger_end = self.ledger.state(), self.log_end()

    def _say_where(self) -> None:
        ledger, p = self.ledger, self.prediction
        assert ledger.start_file is not None
        first = self.files.old_segments
        p.start_segment = self.log[first + ledger.start_file].name
        p.stop_reason = ledger.stop_reason
        p.stop_segment, p.stop_position = self.files.data[ledger.stop_file].path, ledger.stop_position
        p.scanned += range(first + ledger.start_file, first + ledger.stop_file + 1)

    def _begin_ledger(self) -> None:
        """Follow the first start with DLedger: an ordinary recovery.

        Then the last CommitLog file counts as full, and data begin after it.
        """
        unclean = self.unclean
        self.unclean = unclean and self.rules.ledger_crash_dispatch
        try:
            super()._recover_log()
        finally:
            self.unclean = unclean
        self.old = list(self.log)
        if not self.old:
            return
        last = self.old[-1]
        if last.file.size - last.wrote < commitlog_layout.FRAME_BYTES:
            raise Refused(Refusal(RefusalKind.LEDGER_NO_FILLER, last.file.path))
        last.wrote = last.file.size
        divided = last.file.start + last.file.size
        path = f"{self.files.folder}/{DATA}/{divided:020d}"
        self.ledger.divided = divided
        self.ledger.data = [LogFile(MappedFile(path, divided, self.rules.segment_bytes), 0)]

    # ---- after an unclean exit, 5.2.0 and later ------------------------------------------------------------------------

    def _recover_abnormally(self, m: int) -> None:
        """Follow dledgerRecoverAbnormally: a scan from a matched data file that dispatches, headers unread.

        It reads whole files, so also the bytes beyond the end that DLedger's recovery has found. The place at which it stops says
        how far queues are cut, but that place is counted in messages without their headers: 48 bytes too little for each.
        """
        i = self.files.old_segments + self._matched()
        self.prediction.ledger_from = self.segments[i].start
        while True:
            scan = ScanId("segment", i)
            summary = self.recovered(scan)
            if summary is None:
                return
            self.dispatch.put(scan, summary, self._choice())
            if summary.broker.kind != "end" or i + 1 == len(self.log):
                break
            i += 1
        self._settle()
        counted = self.segments[i].start + _message_bytes(summary)
        self._cut_after_crash(m, counted)

    def _cut_after_crash(self, m: int, counted: int) -> None:
        """Cut the queues at the place that was counted, if one reaches it. m: as it was before recovery."""
        if self.rules.start_by_logics_offset:
            m = self._with_marks(self.checkpoint.logics_phy_offset)
        if m >= counted:
            self.prediction.ledger_cut = counted
            self.truncate_queues(counted)

    def _choice(self) -> Choice:
        if not self.rules.value("duplicationEnable"):
            return EVERYTHING
        confirmed = self.max_offset()
        return Choice(
            lambda first, last, first_end, last_end: (last < confirmed, (first < confirmed) & (last >= confirmed)), confirmed
        )

    def _matched(self) -> int:
        """isMmapFileMatchedRecover from the newest data file back: the place of the one in which the scan begins. It does not ask
        how far index and transactions in RocksDB reach."""
        search = replace(self._search(self.unclean), marks=())
        for i in reversed(range(len(self.ledger.data))):
            first = search.first(self.files.old_segments + i)
            if first is not None and self._begins_at(search, first):
                return self.rules.first_recovered(len(self.ledger.data), i)
        return 0

    def _begins_at(self, search: StartSearch, first: FirstRecord) -> bool:
        """Say whether the scan may begin in a file with this first record."""
        return first.magic == commitlog_layout.MAGIC_V1 and first.store_time != 0 and self._is_dispatched(search, first)

    def _is_dispatched(self, search: StartSearch, first: FirstRecord) -> bool:
        return search.dispatched(first)

    def _compensate(self) -> None:
        """compensateForHA with duplicationEnable: load() fails if an entry lies at the end of what DLedger knows as committed.

        Without the group's checkpoint nothing is known as committed, so that the walk begins at the first data file. It takes the
        number at the head of DLedger's own header, 1 in front of an entry and -1 in a filler, for the size of a message.
        Source: ConsumeQueueStore.compensateForHA (up to 5.1.4 within recoverOffsetTable), selectOneMessageByOffset of
        DefaultMessageStore, DLedgerCommitLog.getMaxOffset and getMessage, read at 5.0.0, 5.1.4, 5.3.3, 5.5.0.
        """
        if not self.rules.dup_info:
            return
        at = self.max_offset()
        holds = (
            f for f in self.ledger.data if 0 <= at - f.file.start <= f.wrote - SIZE_POSITION and at < f.file.start + f.file.size
        )
        for data in holds:
            raise Refused(Refusal(RefusalKind.LEDGER_DUPLICATION, data.file.path, phy_offset=at))

    # ---- start() ---------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Once the node is leader all of its log is committed; reput continues at the position that load() has found."""
        begin = max(self.min_offset(), 0, self.max_cq_phy()) if self.rules.dispatches_at_start else self.max_offset()
        begin = max(begin, self.min_offset())
        self.prediction.ledger_from = min(begin, self.prediction.ledger_from) if self.prediction.ledger_from >= 0 else begin
        # Whatever duplicationEnable says: DLedgerCommitLog.getConfirmOffset is the end of what is committed.
        self.prediction.hangs_at = self.dispatch_on(begin)
        self.dispatch.puts.settle()
        with contextlib.suppress(Refused):  # the handler of the role change logs what is thrown; minimums stay as they are
            self.correct_minimums()


def _message_bytes(summary: SegmentSummary) -> int:
    """Return the sizes of the messages that the broker's walk read in that file, without their headers."""
    runs = summary.index_runs
    records = int(runs["records"][runs["walk"] & WALK_BROKER != 0].sum())
    return max(0, summary.broker.position - records * HEADER_BYTES)
