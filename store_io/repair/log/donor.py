"""Messages of a second copy of the same replica group, put where the first one is damaged.

Only what passes every check at the very same physical offset is taken, and only where both copies have the same messages beside
it (`two_logs`). What is not taken is reported with its reason; a store that is no copy of this log is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from schemas.finding_codes import Code
from schemas.layouts.commitlog_layout import FRAME_BYTES
from schemas.repair import DonorReport, HealReport, LeftRange, LogRange
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, Extent, SegmentSummary
from store_io.base.errors import UnfitDonor
from store_io.base.ranges import subtract, union
from store_io.base.wording import count_text
from store_io.broker.loading import Tree
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.segment_walk import whole_messages_end
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.repair.log.edits import WINDOW_BYTES, message_extents, segment_path
from store_io.repair.log.two_logs import TwoLogs
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_steps import TAKE
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_file import ByteFile
from store_io.source.segment_window import SegmentWindow

COPY_BYTES = 4 << 20
_LONGER = "; the donor's log continues after this copy's last message, which no repair adds: use the donor's store instead"


class _Refused(NamedTuple):
    """A range that the donor may not fill."""

    start: int
    end: int
    why: str


@dataclass
class _Segment:
    """One segment's place in the log.

    summary: None if the copy has no such file.
    gaps: ranges that hold no message.
    doubtful: messages whose properties no broker wrote.
    """

    base: int
    summary: SegmentSummary | None
    gaps: list[tuple[int, int]]
    doubtful: list[tuple[int, int]] = field(default_factory=list)
    taken: list[LogRange] = field(default_factory=list)
    refused: list[_Refused] = field(default_factory=list)

    @property
    def holds_messages(self) -> bool:
        return self.summary is not None and bool(message_extents(self.summary))

    def wanted(self, size: int) -> list[tuple[int, int]]:
        """Return ranges that are damaged or missing: the report is about them, not about fillers and the log's unwritten end."""
        if self.summary is None or not self.holds_messages:
            return [(0, size)]
        return sorted([*((e.start, e.end) for e in self.summary.extents if e.kind == EXTENT_DAMAGED), *self.doubtful])


@dataclass(frozen=True)
class Healed:
    """A copy with fewer damaged records.

    audit: the same one if nothing was changed, else one of the copy as it is now.
    by_donor, by_change: what was done, None if nobody asked.
    """

    audit: Audited
    by_donor: DonorReport | None = None
    by_change: HealReport | None = None


def heal(work: Work, audit: Audited) -> Healed:
    """Take the copy's damaged ranges from the request's donor, so that they are damaged no more. Raises UnfitDonor."""
    if work.request.donor is None:
        return Healed(audit)
    if audit.evidence.copy.loaded.ledger is not None:
        raise UnfitDonor("--donor: nothing is taken from another copy into a log of DLedger; leave it out")
    work.progress("taking damaged ranges from the donor")
    logs = TwoLogs(work.source, audit.segments, work.request.donor, work.rules)
    given = Donor(logs, work.writer, audit.tree).heal()
    if not given.taken:
        return Healed(audit, given)
    for taken in given.taken:
        start, end = taken.start, taken.end
        work.steps.add(TAKE, taken.file, start=start, end=end, reason="the donor has it whole", kept={"bytes": end - start})
    return Healed(audit_changed(work, "the copy with the donor's messages"), given)


class Donor:
    """Writes the donor's messages into the copy's damaged ranges. tree: the copy's names."""

    def __init__(self, logs: TwoLogs, writer: StoreWriter, tree: Tree):
        self.logs, self.writer, self.tree = logs, writer, tree

    def heal(self) -> DonorReport:
        """Take messages from the donor; return what was taken, what not, and why.

        Raises UnfitDonor if the donor is no copy of this log.
        """
        logs = self.logs
        if not logs.held:
            said = "nothing was taken: the copy holds no message that could be compared with the donor's"
            return DonorReport(logs.name, sentence=said)
        compared, same = logs.recognise()
        taken, not_taken = list[LogRange](), list[LeftRange]()
        last, healed_end = logs.held[-1], False
        for base, missing in _bases(logs):
            if base > last and not healed_end:
                break
            segment = self._healed(base)
            taken += segment.taken
            if base <= last:
                not_taken += self._not_taken(segment, missing)
            healed_end = bool(segment.taken) and base >= last
        size = sum(part.end - part.start for part in taken)
        longer = not healed_end and logs.donor_continues()
        given = DonorReport(logs.name, compared, same, tuple(taken), size, tuple(not_taken))
        return replace(given, sentence=_sentence(given) + (_LONGER if longer else ""))

    def _healed(self, base: int) -> _Segment:
        """Return the segment, once the donor has given what it has for it."""
        logs, summary = self.logs, self.logs.own.get(base)
        segment = _Segment(base, summary, _gaps(summary.extents if summary else [], logs.size))
        if summary is not None:
            segment.doubtful = list(self._doubtful(summary))
        if base not in logs.files:
            segment.refused = [_Refused(0, logs.size, "the donor has no such segment")]
        elif not segment.holds_messages and (why := logs.parted_around(base)):
            segment.refused = [_Refused(0, logs.size, why)]
        elif segment.gaps or segment.doubtful:
            self._fill(segment)
        return segment

    def _not_taken(self, segment: _Segment, count: int) -> Iterator[LeftRange]:
        """Yield each damaged range that the donor does not fill; one range for `count` segments that neither copy has."""
        size, path = self.logs.size, segment_path(segment.base)
        if count > 1:
            why = f"neither the copy nor the donor has these {count} segments"
            yield LeftRange(path, 0, count * size, segment.base, why)
            return
        if segment.taken and not segment.holds_messages:  # a whole segment is not damaged where its unwritten end is left
            return
        wanted = union(segment.wanted(size))
        left = subtract(wanted, union((part.start, part.end) for part in segment.taken))
        refused = sorted(segment.refused)
        for start, end in wanted:
            place = bisect_left(left, start, key=lambda part: part[1] - 1)
            if place == len(left) or left[place][0] >= end:
                continue
            place = bisect_left(refused, start, key=lambda reason: reason.end - 1)
            known = place < len(refused) and refused[place].start < end
            why = refused[place].why if known else "the donor has no valid message there"
            yield LeftRange(path, start, end, segment.base + start, why)

    # ---- what is taken ---------------------------------------------------------------------------------------------

    def _doubtful(self, summary: SegmentSummary) -> Iterator[tuple[int, int]]:
        """Yield messages whose properties no broker wrote: no checksum covers them, so that only another copy shows what they
        were."""
        doubtful = [(f.phy_offset or 0) - summary.base_offset for f in summary.findings if f.code == Code.PROPERTIES_MALFORMED]
        if doubtful:
            with self.logs.source.open(summary.path) as file:
                for at in doubtful:
                    yield at, at + int.from_bytes(file.read(at, 4), "big")

    def _fill(self, segment: _Segment) -> None:
        logs, base, summary = self.logs, segment.base, segment.summary
        file, size = logs.files[base], logs.size
        task = SegmentTask(0, file.path, base, file.size, logs.location, logs.rules, probe=False, digest=False)
        scanned = scan_segment(task, logs.donor)
        extents = [e for e in message_extents(scanned) if not e.plausible]
        fillers = {e.start for e in scanned.extents if e.kind == EXTENT_FILLER}
        path = segment_path(base)
        target = summary.path if summary is not None else path
        made = summary is not None or path in self.tree.by_path
        with logs.donor.open(file.path) as donor:
            for start, end in segment.gaps + segment.doubtful:
                if why := logs.parted_beside(donor, base, (start, end), segment.doubtful):
                    segment.refused.append(_Refused(start, end, why))
                    continue
                for low, high in self._whole_messages(donor, base, extents, (start, end)):
                    if not made:
                        self.writer.create(path, size)
                    elif summary is not None and summary.size < size:
                        self.writer.resize(target, size)
                    made = True
                    for at in range(low, high, COPY_BYTES):
                        self.writer.write(target, at, donor.read(at, min(COPY_BYTES, high - at)))
                    segment.taken.append(LogRange(path, low, high, base + low))
                    if high in fillers and end == size:
                        self.writer.write(target, high, donor.read(high, FRAME_BYTES))

    def _whole_messages(
        self, donor: ByteFile, base: int, extents: Sequence[Extent], gap: tuple[int, int]
    ) -> Iterator[tuple[int, int]]:
        """Yield ranges of whole messages of the donor inside the gap."""
        check = RecordCheck.audit_of(base, self.logs.rules, segment_path(base))
        window = SegmentWindow(donor, donor.size, WINDOW_BYTES)
        for extent in extents:
            low, high = max(gap[0], extent.start), min(gap[1], extent.end)
            whole = whole_messages_end(check, window, low, high)
            if whole > low:
                yield low, whole


def _sentence(given: DonorReport) -> str:
    """Return a sentence on the result of the donor."""
    taken, left = given.taken, given.not_taken
    if not given.compared and not taken:
        return "nothing was taken: the donor has no message where the copy has one, so the two cannot be compared"
    if not taken:
        return "nothing was taken" + ("" if left else ": up to its last message no range of the copy is damaged or missing")
    be = "was" if given.taken_bytes == 1 else "were"
    sentence = f"{count_text(given.taken_bytes, 'byte')} in {count_text(len(taken), 'range')} {be} taken"
    return sentence + (f"; of {count_text(len(left), 'damaged range')} not all could be" if left else "")


def _bases(logs: TwoLogs) -> Iterator[tuple[int, int]]:
    """Yield (base, 1) of each segment that the copy or the donor has, from the copy's first with messages on.

    They are ascending. Between them it yields (base of the first, how many) of those that neither has. After the copy's last one
    it ends with the donor.
    """
    at, last = logs.held[0], logs.held[-1]
    for base in sorted(b for b in {*logs.own, *logs.files} if b >= at):
        if base > at and at > last:
            return
        if base > at:
            yield at, (base - at) // logs.size
        yield base, 1
        at = base + logs.size


def _gaps(extents: Sequence[Extent], size: int) -> list[tuple[int, int]]:
    """Return the ranges of a segment that hold no message."""
    messages = union((e.start, e.end) for e in extents if e.kind == EXTENT_MESSAGE)
    return subtract([(0, max([size, *(end for _, end in messages)]))], messages)
