"""Explains one physical offset of a copy. It says what lies there, the record field by field, which check fails on it and why,
and which entries lead to it.

At most three segments are read whole: the one that holds it, and for damage those beside it; of a DLedger log the last three
files as well. Of everything else bounded pieces are read. Source of the fields: MessageExtEncoder, MessageDecoder; of the checks:
`broker.message_verdict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from schemas.finding_codes import STOP_REASONS
from schemas.layouts import commitlog_layout as layout
from schemas.layouts.dledger_layout import DATA
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import (
    EXTENT_DAMAGED,
    EXTENT_FILLER,
    EXTENT_MESSAGE,
    RUN_QUEUE,
    WALK_AUDIT,
    Extent,
    MappedFile,
    QueueKey,
    SegmentSummary,
)
from store_io.audit.healing.changes import DEFAULT_RISK, Healing, Place
from store_io.audit.healing.heal_task import search, search_of
from store_io.audit.healing.judgement import judged
from store_io.audit.open_copy import open_copy
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import parse_number
from store_io.base.wording import count_text
from store_io.broker.loading import is_folder
from store_io.broker.message_verdict import END, VALID, Message, Verdict
from store_io.broker.settings.ledger_files import ledger_folder
from store_io.log.records.framing import filler_size, framing_of
from store_io.log.records.message_columns import RecordCheck
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.messages.explain.explain_ledger import LedgerStart, ledger_start, read_header
from store_io.messages.explain.explain_pointers import MAX_POINTERS, IndexSearch, Pointer, QueueSearch, Target
from store_io.messages.explain.explain_record import DerivedValue, Field, annotate, boundaries_hold, derived
from store_io.messages.message_search import message_at
from store_io.messages.redaction import NONE, Redaction
from store_io.model.audit_request import AuditRequest
from store_io.model.found_gaps import Gaps
from store_io.model.opened_copy import OpenedCopy
from store_io.source.byte_source import folder_of, name_of
from store_io.source.segment_window import SegmentWindow
from store_io.wording.gaps import gap_text

SHOW_ALL = Redaction(NONE, b"")
WINDOW_BYTES = 1 << 16  # of a segment that is looked into once more
MAX_HEALINGS = 3
OPEN_FIELDS = frozenset(
    "TOTALSIZE MAGICCODE BODYCRC QUEUEOFFSET PHYSICALOFFSET SYSFLAG BODYLENGTH TOPICLENGTH PROPERTIESLENGTH".split()
)
AROUND_ROW = 16
AROUND_BYTES = 4 * AROUND_ROW  # shown of a place where no record begins

# What lies at the physical offset.
RECORD, INSIDE, DAMAGE, FILLER, UNWRITTEN = "record", "inside a record", "damage", "filler", "unwritten"
MISSING, BELOW, BEYOND, NO_LOG = "missing segment", "below the minimum", "beyond the end", "no CommitLog"
CUT_SHORT, UNREAD = "after the end of a short file", "not read"


@dataclass(frozen=True)
class Neighbour:
    """A valid message near the place."""

    phy_offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    store_time: int


@dataclass(frozen=True)
class Check:
    """The result of one check of the record.

    who: "audit", or the release and its phase.
    reason: of STOP_REASONS, "" if it passes.
    expected, actual: the two values, if there are two.
    """

    who: str
    passes: bool
    reason: str = ""
    sentence: str = ""
    expected: str = ""
    actual: str = ""


class EqualRange(NamedTuple):
    """Bytes of one kind (an EXTENT_*), by physical offsets."""

    kind: str
    start: int
    end: int
    reason: str


class ScanEnd(NamedTuple):
    """The end of a scan, with its reason."""

    phy_offset: int
    reason: str


@dataclass
class Explanation:
    """All that is said of one physical offset. Positions are bytes in `file`; None if no file holds the offset.

    kind: one of this module's words.
    sentence: the answer in one.
    record_start, record_size: physical offset and bytes of the record that is shown; size 0 if it is not known.
    around: bytes at the offset itself, from `around_start` on, if it is not the beginning of the record shown.
    extent: the range of bytes of one kind that holds the offset.
    stop: the end of the release's scan of this segment; in a DLedger log the log's end, None if that is not known here.
    start: for a DLedger log, the effect of a start on this file; else "".
    healing: for damage, the change that makes a record whole, or why there is none.
    searched: sentences on the places that were looked through for entries.
    fields: those of the header before the record, if it has one, which lie at negative places; then those of the record.
    """

    phy_offset: int
    release: str
    kind: str
    sentence: str
    file: str | None = None
    position: int | None = None
    segment_start: int = 0
    segment_bytes: int = 0
    record_start: int | None = None
    record_size: int = 0
    fields: list[Field] = field(default_factory=list)
    derived: list[DerivedValue] = field(default_factory=list)
    around: bytes = b""
    around_start: int = 0
    checks: list[Check] = field(default_factory=list)
    extent: EqualRange | None = None
    stop: ScanEnd | None = None
    start: str = ""
    before: Neighbour | None = None
    after: Neighbour | None = None
    healing: list[Healing] = field(default_factory=list)
    pointers: list[Pointer] = field(default_factory=list)
    more_pointers: int = 0
    searched: list[str] = field(default_factory=list)


def explain(request: AuditRequest, phy_offset: int, redaction: Redaction = SHOW_ALL) -> Explanation:
    """Explain one physical offset of the copy. Raises StoreError where the copy cannot be read, UsageError over its settings."""
    return _Explainer(open_copy(request, Gaps()), request, phy_offset, redaction).run()


class _Watch:
    """The messages that the audit's walk of a segment meets around one position. A sink of `scan_segment`."""

    want_keys = False

    def __init__(self, position: int, base: int, header: int):
        self.position, self._base, self._header = position, base, header
        self.holder: Neighbour | None = None
        self.before: Neighbour | None = None
        self.after: Neighbour | None = None

    def add(self, scanned: ScannedRows) -> None:
        """See `DatasetSink`."""
        if self.after is not None:
            return
        rows, keys = scanned.columns.rows[: scanned.columns.count], scanned.keys
        at = int(np.searchsorted(rows["position"] - self._header, self.position, "right")) - 1
        if at >= 0:
            if self.position < int(rows["position"][at]) + int(rows["total_size"][at]):
                self.holder = self._neighbour(rows[at], keys)
                at -= 1
            if at >= 0:
                self.before = self._neighbour(rows[at], keys)
        following = int(np.searchsorted(rows["position"] - self._header, self.position, "right"))
        if following < len(rows):
            self.after = self._neighbour(rows[following], keys)

    def _neighbour(self, row: np.void, keys: Sequence[QueueKey]) -> Neighbour:
        queue = keys[int(row["topic_ref"])]
        position, size, offset, time = (int(row[name]) for name in ("position", "total_size", "queue_offset", "store_time"))
        return Neighbour(self._base + position, size, *queue, offset, time)


class _Explainer:
    def __init__(self, copy: OpenedCopy, request: AuditRequest, phy_offset: int, redaction: Redaction):
        self.copy, self.location, self.n, self.redaction = copy, request.location, phy_offset, redaction
        self.source, self.rules, self.segments = copy.source, copy.rules, copy.segment_files
        self.said = Explanation(phy_offset, copy.rules.release, NO_LOG, "")
        self.message: Message | None = None
        self.ledger: LedgerStart | None = None

    def run(self) -> Explanation:
        said, n = self.said, self.n
        holder = next((f for f in reversed(self.segments) if f.start <= n < f.start + f.size), None)
        if holder is None:
            self._outside()
        else:
            said.file, said.position = holder.path, n - holder.start
            said.segment_start, said.segment_bytes = holder.start, holder.size
            summary, watch = self._scan(holder, n)
            said.before, said.after = watch.before, watch.after
            if said.before is None:
                said.before = next((self._last_of(f) for f in self.segments if f.start + f.size == holder.start), None)
            if said.after is None:
                said.after = next((self._first_of(f) for f in self.segments if f.start == holder.start + holder.size), None)
            self.ledger = ledger_start(self.copy, self.location, holder, n)
            if self.ledger is None:
                said.stop = ScanEnd(holder.start + summary.broker.position, summary.broker.reason)
            else:
                said.start = self.ledger.sentence
                said.stop = None if self.ledger.end is None else ScanEnd(*self.ledger.end)
            self._inside(holder, summary, watch)
            said.healing = self._healing(holder, summary)
        self._pointers()
        return said

    # ---- where it lies -----------------------------------------------------------------------------------------------

    def _scan(self, file: MappedFile, phy_offset: int) -> tuple[SegmentSummary, _Watch]:
        watch = _Watch(phy_offset - file.start, file.start, framing_of(self.rules, file.path).header_bytes)
        task = SegmentTask(
            0,
            file.path,
            file.start,
            file.size,
            self.location,
            self.rules,
            batch_topics=self.copy.batch_topics,
            probe=False,
            digest=False,
            unclean=self.copy.unclean,
        )
        summary = scan_segment(task, self.source, watch)
        if summary.problem:
            raise StoreError(gap_text(summary.problem))
        return summary, watch

    def _outside(self) -> None:
        said, n, files = self.said, self.n, self.segments
        if not files:
            said.sentence = "the copy holds no CommitLog segment"
            return
        first, last = files[0], max(files, key=lambda f: f.start + f.size)
        end = last.start + last.size
        if n < first.start:
            said.kind = BELOW
            said.sentence = f"below the CommitLog's minimum, {first.start:,}: retention deleted it, or it was not copied"
        elif (short := self._cut_short()) is not None:
            said.kind, said.sentence = short
        elif n >= end:
            said.kind = BEYOND
            said.sentence = f"beyond the copy's last segment, which ends at {end:,}"
        else:
            said.kind = MISSING
            size = self.rules.segment_bytes
            said.sentence = f"no segment of this copy holds it: {folder_of(first.path)}/{n - n % size:020d} is missing"
        below = [f for f in files if f.start + f.size <= n]
        said.before = self._last_of(below[-1]) if below else None
        said.after = next((found for f in files if f.start > n and (found := self._first_of(f))), None)

    def _cut_short(self) -> tuple[str, str] | None:
        """Return (kind, sentence) if a file of the log should hold the offset, but cannot.

        It is too short, or cannot be read.
        """
        n, size, tree = self.n, self.rules.segment_bytes, self.copy.tree
        folder = ledger_folder(self.rules)
        for entry in [*tree.children(COMMITLOG), *(tree.children(f"{folder}/{DATA}") if folder else [])]:
            start = parse_number(name_of(entry.path), 64)
            if is_folder(entry) or start is None or not start <= n < start + size:
                continue
            if entry.kind != "file":
                return (
                    UNREAD,
                    f"{entry.path} is a link that leads out of the store, or no file that can be read: it was not opened",
                )
            length = count_text(entry.size, "byte")
            return CUT_SHORT, f"{entry.path} is only {length} long, not {size:,}: this place lies after its end"
        return None

    def _last_of(self, file: MappedFile) -> Neighbour | None:
        return self._scan(file, file.start + file.size)[1].before

    def _first_of(self, file: MappedFile) -> Neighbour | None:
        first = file.start + framing_of(self.rules, file.path).header_bytes
        m = message_at(self.source, self.rules, file, first)
        return None if m is None else Neighbour(first, m.total_size, m.topic, m.queue_id, m.queue_offset, m.store_time)

    def _inside(self, file: MappedFile, summary: SegmentSummary, watch: _Watch) -> None:
        said, n, base = self.said, self.n, file.start
        position = n - base
        extent = next(e for e in summary.extents if e.start <= position < e.end)
        said.extent = EqualRange(extent.kind, base + extent.start, base + extent.end, extent.reason)
        with self.source.open(file.path) as opened:
            window = SegmentWindow(opened, file.size, WINDOW_BYTES)
            if extent.kind == EXTENT_MESSAGE and watch.holder is not None:
                self._in_message(file, window, watch.holder, extent)
            elif extent.kind in (EXTENT_DAMAGED, EXTENT_FILLER):
                self._in_refused(file, window, extent)
            else:
                said.kind = UNWRITTEN
                said.sentence = f"unwritten: zeros from {base + extent.start:,} to the segment's end at {base + extent.end:,}"
            if said.record_start != n:
                said.around_start = n
                said.around = window.read(position, min(position + AROUND_BYTES, file.size))
                if self.redaction.mode != NONE and said.kind in (INSIDE, DAMAGE):
                    said.around = b""  # it may hold somebody's text

    def _in_message(self, file: MappedFile, window: SegmentWindow, holder: Neighbour, extent: Extent) -> None:
        said, n = self.said, self.n
        self._frame(file, window, holder.phy_offset - file.start - framing_of(self.rules, file.path).header_bytes)
        plausible = " after damage, so its boundaries are plausible, not proven" if extent.plausible else ""
        if n < holder.phy_offset:
            said.kind = INSIDE
            said.sentence = (
                f"inside the header before the valid message at {holder.phy_offset:,}{plausible}; no record begins here"
            )
            return
        if holder.phy_offset == n:
            said.kind, said.sentence = RECORD, f"a valid message of {holder.size:,} bytes{plausible}"
        else:
            said.kind = INSIDE
            what = next((f.name for f in said.fields if f.at <= n - holder.phy_offset < f.at + f.size), "")
            said.sentence = (
                f"{n - holder.phy_offset} bytes inside the valid message at {holder.phy_offset:,}"
                f"{', in ' + what if what else ''}{plausible}; no record begins here"
            )

    def _in_refused(self, file: MappedFile, window: SegmentWindow, extent: Extent) -> None:
        """Explain damage or a filler. Shows the frame at the offset if there is one, else that at the range's start."""
        said, n, base = self.said, self.n, file.start
        position = n - base
        framing = framing_of(self.rules, file.path)
        magic = window.read(position + layout.MAGIC_POSITION, position + layout.FRAME_BYTES)
        records = (layout.MAGIC_V1_BYTES, layout.MAGIC_V2_BYTES)
        begins = magic in records and position >= framing.header_bytes
        if filler_size(framing, window.read(position, position + layout.FRAME_BYTES)) is not None:
            start = position
        elif begins:
            start = position - framing.header_bytes
        else:
            start = extent.start
        self._frame(file, window, start)
        reason = next((c.reason for c in said.checks if not c.passes and c.reason), extent.reason)
        why = STOP_REASONS.get(reason, reason).rstrip(".")
        if extent.kind == EXTENT_FILLER:
            said.kind = FILLER
            where = "" if position == extent.start else f", which begins at {base + extent.start:,}"
            said.sentence = f"the segment's filler{where}: {extent.end - extent.start} bytes that hold no message"
            return
        said.kind = DAMAGE
        at = start + framing.header_bytes if begins else start
        where = "" if position == at else f", {position - at} bytes after its start"
        passes = all(c.passes for c in said.checks)
        said.sentence = (
            f"damage from {base + extent.start:,} to {base + extent.end:,}{where}"
            + (": " + why[:1].lower() + why[1:] if why else "")
            + (", although a record that passes every check begins here" if passes else "")
        )

    # ---- the record --------------------------------------------------------------------------------------------------

    def _frame(self, file: MappedFile, window: SegmentWindow, position: int) -> None:
        """Explain the frame at this position of the segment.

        It is a filler, or a record with the header before it, if it has one.
        """
        said, base = self.said, file.start
        check = RecordCheck.audit_of(base, self.rules, file.path)
        audit = check.verdict(window, position, file.size)
        broker = RecordCheck.broker(self.rules, file.path).verdict(window, position, file.size)
        reput = RecordCheck.reput(self.rules, file.path).verdict(window, position, file.size)
        header = 0 if audit.kind == END else check.framing.header_bytes
        release = f"RocketMQ {self.rules.release}"
        said.checks = [_check("audit", audit)]
        if self.ledger is None:
            said.checks.append(_check(f"{release}, recovery", broker))
        elif self.ledger.scans:
            said.checks.append(_check(f"{release}, scan after recovery", broker))
        if self.ledger is None or self.ledger.in_log:
            said.checks.append(_check(f"{release}, dispatch", reput))
        # A check that fails on the body has not looked at what follows it; dispatch checks no checksum.
        whole = (v.message for v in (audit, broker, reput) if v.message is not None and (v.kind == VALID or v.message.topic))
        self.message = next(whole, None) if self.redaction.mode == NONE or boundaries_hold(audit) else None
        phy_offset = said.record_start = base + position + header
        blamed = audit if audit.kind != VALID else broker
        said.fields = annotate(window, position + header, file.size, phy_offset, blamed, self.redaction)
        if header:
            before, checks = read_header(self.copy, check.framing, window, position, phy_offset)
            said.fields = [*before, *said.fields]
            said.checks += [
                Check(f"entry header, {c.name}", c.passes, "", "" if c.passes else "is another one", c.expected, c.actual)
                for c in checks
            ]
        said.record_size = (audit.size - header if audit.kind == VALID else 0) or audit.computed_size
        if self.message is not None:
            said.derived = derived(self.message, phy_offset, self.rules, self.redaction)

    # ---- what would make it whole ------------------------------------------------------------------------------------

    def _healing(self, file: MappedFile, summary: SegmentSummary) -> list[Healing]:
        """Return the healing of the damaged record at the offset, or of the whole range.

        This segment and those beside it are asked.
        """
        position = self.n - file.start
        if self.said.kind not in (DAMAGE, FILLER) and not self._alone(summary, position):
            return []
        beside = [f for f in self.segments if f.start + f.size == file.start or f.start == file.start + file.size]
        summaries = sorted([summary, *(self._scan(f, f.start)[0] for f in beside)], key=lambda s: s.base_offset)
        wanted = search_of(self.copy, self.location, self.rules, summaries)
        found = []
        for task in (replace(t, places=_at(t.places, position)) for t in wanted.tasks if t.path == file.path):
            found += [judged(task, each, wanted.order, DEFAULT_RISK) for each in search(task, self.source)]
        here = [h for h in found if h.start <= position < h.end]
        return [self._shown(h) for h in (here[-1:] or found[:MAX_HEALINGS])]

    def _alone(self, summary: SegmentSummary, position: int) -> bool:
        """Say whether the message at this position continues none of its queue in the segment, nor one continues it."""
        rows = summary.runs[(summary.runs["kind"] == RUN_QUEUE) & (summary.runs["walk"] & WALK_AUDIT != 0)]
        here = (rows["first_position"] <= position) & (position < rows["first_position"] + rows["first_size"])
        return bool((here & (rows["records"] == 1)).any())

    def _shown(self, healing: Healing) -> Healing:
        """Return the healing without bytes of texts and of hosts, if these may not be shown."""
        if self.redaction.mode == NONE or healing.change is None:
            return healing
        changes = [c if c.field in OPEN_FIELDS else replace(c, old=b"", new=b"") for c in (healing.change, *healing.others)]
        return replace(healing, change=changes[0], others=tuple(changes[1:]))

    # ---- what leads here ---------------------------------------------------------------------------------------------

    def _pointers(self) -> None:
        said = self.said
        start = said.record_start if said.record_start is not None else self.n
        end = max(start + said.record_size, self.n + 1)
        message = self.message if said.kind in (RECORD, INSIDE, DAMAGE) else None
        target = Target(start, end, message, said.record_start is not None)
        queues, index = QueueSearch(self.copy, target), IndexSearch(self.copy, target, self.redaction)
        found = [*queues.run(), *index.run()]
        said.searched = [queues.searched, index.searched]
        said.pointers, said.more_pointers = found[:MAX_POINTERS], max(0, len(found) - MAX_POINTERS)


def _at(places: Sequence[Place], position: int) -> tuple[Place, ...]:
    return tuple(place for place in places if place.start <= position < place.end)


def _check(who: str, verdict: Verdict) -> Check:
    if verdict.kind == VALID:
        return Check(who, True)
    sentence = STOP_REASONS.get(verdict.reason, verdict.reason)
    return Check(who, verdict.kind == END, verdict.reason, sentence, verdict.expected, verdict.actual)
