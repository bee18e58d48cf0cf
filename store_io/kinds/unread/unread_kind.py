"""The logs of a copy that a start does not read: the tasks that count their messages, the kind, and the findings.

The scan is the audit's own, which accepts what passes every check. Of a data file of DLedger those entries do not count that the
log of this node holds as well: two logs of one group in which one entry is the same are the same up to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from schemas.advice import Advice, Gap, Step
from schemas.finding_codes import Code
from schemas.rows import Finding, MappedFile
from store_io.base.errors import StoreError
from store_io.base.tasks import OfScan, Task
from store_io.base.wording import count_text
from store_io.broker.releases import Setting, broker_rules
from store_io.kinds.dledger.entry_walk import DataTask, headers_of
from store_io.kinds.dledger.ledger_chain import live_ends
from store_io.kinds.dledger.ledger_walks import DataWalk
from store_io.kinds.unread.unread_logs import UnreadLog, unread_logs
from store_io.log.scan.segment_scan import SegmentTask, part_scan, scan_segment
from store_io.model.audit_request import AuditRequest
from store_io.model.evidence import Evidence
from store_io.model.kind import Kind, Opening
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import ByteSource, open_source
from store_io.source.segment_window import SegmentWindow

_SIZE = 1  # column of a row of `headers_of`


@dataclass(frozen=True)
class UnreadWalkTask(DataTask):
    """One data file of DLedger to walk: its headers say where the log ends and leftovers of a cut begin."""


@dataclass(frozen=True)
class UnreadCount:
    """The messages of one file that are in no log that a start reads."""

    path: str
    messages: int = 0
    bytes_read: int = 0
    problem: Gap | None = None


@dataclass(frozen=True)
class UnreadCountTask(OfScan):
    """One file to count. Picklable. own: the data file of the log that a start reads with the same name; None without one."""

    scan: SegmentTask
    own: MappedFile | None = None
    not_after: float = 0

    def run(self) -> UnreadCount:
        """Return the count. Never raises over bytes; a file that cannot be read gives `problem`."""
        source = open_source(self.scan.location)
        found = scan_segment(self.scan, source)
        if found.problem is not None:
            return UnreadCount(found.path, problem=found.problem)
        messages = sum(extent.message_count for extent in found.extents)
        if self.own is not None:
            try:
                messages = max(0, messages - _shared(source, self.scan, self.own))
            except StoreError as why:
                return UnreadCount(found.path, problem=why.gap(self.own.path))
        return UnreadCount(found.path, messages, found.bytes_read)


def _shared(source: ByteSource, scan: SegmentTask, own: MappedFile) -> int:
    """Return how many entries at the file's beginning are in this node's own file too. Raises StoreError."""
    with source.open(scan.path) as left, source.open(own.path) as right:
        theirs, ours = (
            chain.from_iterable(headers_of(SegmentWindow(file, size, scan.window_bytes), base, size))
            for file, base, size in ((left, scan.base_offset, scan.size), (right, own.start, own.size))
        )
        count, last = 0, None
        for mine, other in zip(theirs, ours, strict=False):
            if not np.array_equal(mine, other):
                break
            count, last = count + 1, mine
        if last is None:
            return 0
        at, size = int(last[0]), int(last[_SIZE])
        return count if left.read(at, size) == right.read(at, size) else 0


@dataclass
class UnreadFound:
    """What the tasks have found, by path."""

    walks: dict[str, DataWalk] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class UnreadLogs(Kind[tuple[UnreadLog, ...], UnreadFound, UnreadFound]):
    """Logs that a start does not read. Their messages are counted, and nothing else of them is judged."""

    name = "unread"
    task_types = (UnreadWalkTask, UnreadCountTask)
    nothing_found = UnreadFound

    def open(self, opening: Opening) -> tuple[UnreadLog, ...]:
        return tuple(unread_logs(opening.tree, opening.rules))

    def no_repair(self, copy: OpenedCopy) -> Advice | None:
        """Return the lines to change: a repair under these settings would leave the messages out.

        A log beside that of this node may hold the same messages, and a repair copies it as it is.
        """
        return next((Advice(Step.READ_WITH_LINES, (log.folder, *log.needs)) for log in copy[self] if not log.own), None)

    def tasks_before_log(self, request: AuditRequest, copy: OpenedCopy) -> Iterator[Task]:
        for log in copy[self] if not request.quick else ():
            if log.of_ledger:
                for file in log.files:
                    late = request.not_after
                    yield UnreadWalkTask(request.store, request.location, file, (), -1, request.window_bytes, late)

    def tasks_after_prediction(self, evidence: Evidence, base: SegmentTask) -> Iterator[Task]:
        request, copy = evidence.request, evidence.copy
        ends = live_ends(evidence.results(self).walks.values())
        framed = {**copy.rules.settings, "enableDLegerCommitLog": Setting(True, "changed")}
        rules = broker_rules(request.release, framed)
        for log in copy[self] if not request.quick else ():
            own = {file.start: file for file in log.own}
            for file in log.files:
                scan = part_scan(base, file.path, file.start, file.size)
                if log.of_ledger:
                    scan = SegmentTask(
                        base.store, file.path, file.start, file.size, base.location, rules, live_end=ends.get(file.path, 0),
                        digest=False, probe=False, window_bytes=base.window_bytes, decoder=base.decoder,
                    )  # fmt: skip
                yield UnreadCountTask(scan, own.get(file.start), request.not_after)

    def take(self, found: UnreadFound, result: object) -> None:
        if isinstance(result, DataWalk):
            found.walks[result.path] = result
        elif isinstance(result, UnreadCount) and result.problem is None:
            found.counts[result.path] = result.messages


UNREAD = UnreadLogs()


def holds_unread(evidence: Evidence) -> bool:
    """Say whether the copy has messages in a log that a start does not read: they are not gone."""
    return any(unread_findings(evidence))


def lies_in_unread(evidence: Evidence, phy_offset: int | None) -> bool:
    """Say whether a log that a start does not read has a file for the physical offset."""
    if phy_offset is None or not holds_unread(evidence):
        return False
    return any(file.start <= phy_offset < file.start + file.size for log in evidence.copy[UNREAD] for file in log.files)


def unread_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each log with messages that a start does not read, or with bytes that were not counted."""
    counts = evidence.results(UNREAD).counts
    for log in evidence.copy[UNREAD]:
        number = sum(counts.get(file.path, 0) for file in log.files)
        rest = sum(file.size for file in log.files if file.path not in counts)
        if not number and not rest:
            continue
        least = "at least " if rest else ""
        messages = f"{least}{count_text(number, 'message')}" if number else f"{rest:,} bytes, which were not counted,"
        lines = " and ".join(log.needs)
        are = "is" if number == 1 and not rest else "are"
        yield Finding(
            Code.MESSAGES_NOT_READ,
            log.folder,
            expected=lines,
            actual=log.has or None,
            message=f"{messages} in {log.folder}/ {are} not read without {lines}",
            next=Advice(Step.READ_WITH_LINES, (log.folder, *log.needs)),
            count=max(1, number),
        )
