"""Messages of a second copy of the same replica group, put where the first one is damaged.

Only what passes every check at the very same physical offset is taken, and only where the segment holds messages that both
copies have with equal bytes (next to the segment where nothing is left of it): copies of different groups share offsets but no
messages, and those of one group may have parted. What is not taken is told with its reason; a store that is no copy of this log
is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.commitlog_layout import FRAME_BYTES, MAGIC_BLANK_BYTES
from schemas.finding_codes import PROPERTIES
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, Extent, Row, SegmentSummary
from store_io.base.errors import StoreError
from store_io.base.ranges import subtract, union
from store_io.formats.commitlog.message_columns import RecordCheck
from store_io.formats.commitlog.segment_walk import whole_messages_end
from store_io.repair.log.log_plan import WINDOW_BYTES, segment_path
from store_io.repair.repair_audit import Audited, audit_changed
from store_io.repair.repair_steps import TAKE
from store_io.repair.repair_work import Work
from store_io.repair.writing.writer import Writer
from store_io.rules.loading import Tree, segments_of
from store_io.rules.message_verdict import VALID
from store_io.rules.releases import BrokerRules
from store_io.scan.segment_scan import SegmentTask, scan_segment
from store_io.source.byte_source import ByteFile, ByteSource, StoreLocation, open_source, shown
from store_io.source.segment_window import SegmentWindow
from store_io.source.store_dir import list_store

COPY_BYTES = 4 << 20
COMPARED_BYTES, MOST_COMPARED = 512, 8
MOST_SEGMENTS = 64  # whose messages are compared to tell whether the donor is a copy of this log


@dataclass
class _Segment:
    """One segment's place in the log. summary: None where the copy has no such file. gaps: ranges that hold no message;
    doubtful: those of messages whose properties no broker wrote."""

    base: int
    summary: SegmentSummary | None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    doubtful: list[tuple[int, int]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.summary.path if self.summary is not None else segment_path(self.base)

    @property
    def messages(self) -> list[Extent]:
        return [e for e in self.summary.extents if e.kind == EXTENT_MESSAGE] if self.summary is not None else []

    def wanted(self, size: int) -> list[tuple[int, int]]:
        """Ranges that are damaged or missing: of them the report speaks, not of fillers and of the log's unwritten end."""
        if not self.messages:
            return [(0, size)]
        damaged = [(e.start, e.end) for e in self.summary.extents if e.kind == EXTENT_DAMAGED] if self.summary else []
        return sorted([*damaged, *self.doubtful])


@dataclass(frozen=True)
class Healed:
    """audit: the same one where nothing was taken, else one of the copy as it is now.  row: the report's, None without one."""

    audit: Audited
    row: Row | None


def heal(work: Work, audit: Audited) -> Healed:
    """Take the copy's damaged ranges from the request's donor; from here on they are damaged no more. Raises StoreError."""
    if work.request.donor is None:
        return Healed(audit, None)
    work.progress("taking damaged ranges from the donor")
    row = Donor(work.request.donor, work.rules).heal(work.writer, audit.segments, work.source, audit.tree)
    if not row["taken"]:
        return Healed(audit, row)
    for taken in row["taken"]:
        start, end = taken["start"], taken["end"]
        work.steps.add(TAKE, taken["file"], start=start, end=end, reason="the donor has it whole", kept={"bytes": end - start})
    return Healed(audit_changed(work, "the copy with the donor's messages"), row)


class Donor:
    """The second copy. Raises StoreError where it is no store."""

    def __init__(self, location: StoreLocation, rules: BrokerRules):
        self.location, self.rules = location, rules
        self.name = shown(location.root)
        self.source = open_source(location)
        size = rules.segment_bytes
        files = segments_of(Tree(list_store(location).files))
        self.files = {f.start: f for f in files if f.start % size == 0 and f.size <= size}

    def heal(self, writer: Writer, segments: Sequence[SegmentSummary], source: ByteSource, tree: Tree) -> Row:
        """Write the donor's messages into the copy's damaged ranges; for the report, what was taken and what not, and why.

        Raises StoreError where the donor is no copy of this log."""
        size = self.rules.segment_bytes
        own = {s.base_offset: s for s in segments if s.base_offset % size == 0}
        held = sorted(base for base, s in own.items() if any(e.kind == EXTENT_MESSAGE for e in s.extents))
        row: Row = {"path": self.name, "compared": 0, "same": 0, "taken": [], "taken_bytes": 0, "not_taken": []}
        if not held:
            return row | {"sentence": "nothing was taken: the copy holds no message that could be compared with the donor's"}
        row["compared"], row["same"] = self._recognise(own, held, source)
        taken, refused = row["taken"], row["not_taken"]
        healed_end = False
        for base, missing in _bases(held, {*own, *self.files}, size):
            if base > held[-1] and not healed_end:
                break
            segment = _Segment(base, own.get(base))
            segment.gaps = _gaps(segment.summary.extents if segment.summary else [], size)
            if segment.summary is not None:
                segment.doubtful = list(self._doubtful(segment.summary, source))
            rows, reasons = self._heal_one(writer, segment, own, held, source, tree)
            taken += rows
            if base <= held[-1]:
                refused += self._not_taken(segment, rows, reasons, missing)
            healed_end = bool(rows) and base >= held[-1]
        row["taken_bytes"] = sum(r["end"] - r["start"] for r in taken)
        last = own[held[-1]]
        end = max(e.end for e in last.extents if e.kind == EXTENT_MESSAGE)
        longer = not healed_end and self._continues(held[-1], end)
        return row | {"sentence": _sentence(row) + (_LONGER if longer else "")}

    def _continues(self, base: int, end: int) -> bool:
        """Whether the donor has a message after that position of a segment, the copy's last one."""
        for file, start in ((self.files.get(base), end), (self.files.get(base + self.rules.segment_bytes), 0)):
            if file is None:
                continue
            with self.source.open(file.path) as donor:
                head = donor.read(start, min(FRAME_BYTES, max(0, donor.size - start)))
            if any(head) and head[4:8] != MAGIC_BLANK_BYTES:
                return True
        return False

    def _heal_one(
        self,
        writer: Writer,
        segment: _Segment,
        own: Mapping[int, SegmentSummary],
        held: Sequence[int],
        source: ByteSource,
        tree: Tree,
    ) -> tuple[list[Row], list[tuple[int, int, str]]]:
        """(rows of what was taken, (start, end, reason) of gaps that the donor may not fill)."""
        size = self.rules.segment_bytes
        if segment.base not in self.files:
            return [], [(0, size, "the donor has no such segment")]
        gaps = segment.gaps
        if not segment.messages and (why := self._other_around(segment.base, own, held, source)):
            return [], [(0, size, why)]
        gaps = gaps + segment.doubtful
        if not gaps:
            return [], []
        reasons: list[tuple[int, int, str]] = []
        return list(self._fill(writer, segment, gaps, source, tree, reasons)), reasons

    def _not_taken(
        self, segment: _Segment, taken: Sequence[Row], reasons: Sequence[tuple[int, int, str]], count: int
    ) -> Iterator[Row]:
        """A row for each damaged range of which something is left; for `count` segments that neither copy has, one."""
        if count > 1:
            end = count * self.rules.segment_bytes
            why = f"neither the copy nor the donor has these {count} segments"
            yield {"file": segment_path(segment.base), "start": 0, "end": end, "phy_offset": segment.base, "reason": why}
            return
        wanted = union(segment.wanted(self.rules.segment_bytes))
        left = subtract(wanted, union((r["start"], r["end"]) for r in taken))
        if taken and not segment.messages:  # a whole segment is not damaged where its unwritten end is left
            return
        told = sorted(reasons)
        for start, end in wanted:
            place = bisect_left(left, start, key=lambda piece: piece[1] - 1)
            if place == len(left) or left[place][0] >= end:
                continue
            place = bisect_left(told, start, key=lambda reason: reason[1] - 1)
            why = told[place][2] if place < len(told) and told[place][0] < end else "the donor has no valid message there"
            path = segment_path(segment.base)
            yield {"file": path, "start": start, "end": end, "phy_offset": segment.base + start, "reason": why}

    # ---- whether it is a copy of this log --------------------------------------------------------------------------

    def _recognise(self, own: Mapping[int, SegmentSummary], held: Sequence[int], source: ByteSource) -> tuple[int, int]:
        """(messages compared, those that are the same). Raises StoreError where there are some, and none is."""
        common = sorted(base for base in held if base in self.files)
        if not common:
            raise StoreError(
                f"--donor {self.name}: no copy of this log: none of its segments has the offsets of one of the copy's, which hold"
                f" {self._span(held)}; the donor's hold {self._span(self.files)}"
            )
        compared = same = 0
        first: tuple[int, int] | None = None
        step = max(1, len(common) // MOST_SEGMENTS)
        for base in common[::step]:
            with source.open(own[base].path) as mine, self.source.open(self.files[base].path) as donor:
                for extent in [e for e in own[base].extents if e.kind == EXTENT_MESSAGE][:MOST_COMPARED]:
                    end = min(extent.end, extent.start + COMPARED_BYTES)
                    if _nothing(donor, extent.start):
                        continue
                    compared += 1
                    same += _equal(mine, donor, extent.start, end)
                    first = first or (base, extent.start)
            if same:
                break
        if first is not None and not same:
            base, at = first
            raise StoreError(
                f"--donor {self.name}: no copy of this log: of {compared} messages compared none is the same; at physical offset"
                f" {base + at} the copy has {self._told(source, own[base].path, base, at)}, the donor"
                f" {self._told(self.source, self.files[base].path, base, at)}"
            )
        return compared, same

    def _span(self, bases: Sequence[int] | Mapping[int, object]) -> str:
        return f"{min(bases)} to {max(bases) + self.rules.segment_bytes}" if bases else "nothing"

    def _told(self, source: ByteSource, path: str, base: int, at: int) -> str:
        """What lies there, in words."""
        with source.open(path) as file:
            window = SegmentWindow(file, file.size, WINDOW_BYTES)
            verdict = RecordCheck.audit(base, self.rules.delays).verdict(window, at, file.size)
        message = verdict.message
        if verdict.kind != VALID or message is None:
            return "no valid message"
        time = str(np.datetime64(message.store_time, "ms")).replace("T", " ")
        return (
            f"a message of {message.topic}, queue {message.queue_id}, offset {message.queue_offset}, {message.total_size} bytes,"
            f" body CRC 0x{message.body_crc & 0xFFFFFFFF:08x}, stored {time}"
        )

    # ---- what is taken ---------------------------------------------------------------------------------------------

    @staticmethod
    def _doubtful(summary: SegmentSummary, source: ByteSource) -> Iterator[tuple[int, int]]:
        """Messages whose properties no broker wrote: no checksum covers them, so that only another copy tells."""
        doubtful = [(f.phy_offset or 0) - summary.base_offset for f in summary.findings if f.code == PROPERTIES]
        if doubtful:
            with source.open(summary.path) as file:
                for at in doubtful:
                    yield at, at + int.from_bytes(file.read(at, 4), "big")

    def _fill(
        self,
        writer: Writer,
        segment: _Segment,
        gaps: Sequence[tuple[int, int]],
        source: ByteSource,
        tree: Tree,
        reasons: list[tuple[int, int, str]],
    ) -> Iterator[Row]:
        base, summary = segment.base, segment.summary
        file = self.files[base]
        task = SegmentTask(0, file.path, base, file.size, self.location, self.rules, probe=False, digest=False)
        scanned = scan_segment(task, self.source)
        extents = [e for e in scanned.extents if e.kind == EXTENT_MESSAGE and not e.plausible]
        path, target = segment_path(base), segment.path
        size = self.rules.segment_bytes
        made = summary is not None or path in tree.by_path
        with self.source.open(file.path) as donor:
            for start, end in gaps:
                if why := self._other_beside(donor, start, end, segment, source):
                    reasons.append((start, end, why))
                    continue
                for low, high in self._whole_messages(donor, base, extents, start, end):
                    if not made:
                        writer.create(path, size)
                    elif summary is not None and summary.size < size:
                        writer.resize(target, size)
                    made = True
                    for at in range(low, high, COPY_BYTES):
                        writer.write(target, at, donor.read(at, min(COPY_BYTES, high - at)))
                    yield {"file": path, "start": low, "end": high, "phy_offset": base + low}
                    if any(e.kind == EXTENT_FILLER and e.start == high for e in scanned.extents) and end == size:
                        writer.write(target, high, donor.read(high, FRAME_BYTES))

    def _whole_messages(
        self, donor: ByteFile, base: int, extents: Sequence[Extent], start: int, end: int
    ) -> Iterator[tuple[int, int]]:
        """Ranges of whole messages of the donor inside the gap."""
        check = RecordCheck.audit_of(base, self.rules)
        window = SegmentWindow(donor, donor.size, WINDOW_BYTES)
        for extent in extents:
            low, high = max(start, extent.start), min(end, extent.end)
            whole = whole_messages_end(check, window, low, high)
            if whole > low:
                yield low, whole

    def _other_around(self, base: int, own: Mapping[int, SegmentSummary], held: Sequence[int], source: ByteSource) -> str:
        """Why the copies do not agree next to a segment of which nothing is left, "" where they do: at the end of the last one
        before it that holds messages, else at the beginning of the first one after it. held: ascending."""
        place = bisect_left(held, base)
        before = held[place - 1] if place else None
        near = before if before is not None else held[place]
        if near not in self.files:
            return f"the donor does not have {segment_path(near)} beside it, by which the copies could be compared"
        known = [e for e in own[near].extents if e.kind == EXTENT_MESSAGE]
        edge = known[-1] if before is not None else known[0]
        low, high = (
            (max(edge.start, edge.end - COMPARED_BYTES), edge.end)
            if before is not None
            else (edge.start, min(edge.end, edge.start + COMPARED_BYTES))
        )
        with source.open(own[near].path) as mine, self.source.open(self.files[near].path) as donor:
            same = _equal(mine, donor, low, high)
        return "" if same else f"the copies have other bytes beside it, at physical offsets {near + low} to {near + high}"

    def _other_beside(self, donor: ByteFile, start: int, end: int, segment: _Segment, source: ByteSource) -> str:
        """Why the copies do not have the same messages beside the gap, "" where they do: those that touch it must be the same,
        as copies may have parted inside of the segment (a master that came back); where none does, some others. A whole segment
        has none."""
        known = segment.messages
        if segment.summary is None or not known:
            return ""
        base = segment.base
        touching = [(max(e.start, e.end - COMPARED_BYTES), e.end) for e in known if e.end == start]
        touching += [(e.start, min(e.end, e.start + COMPARED_BYTES)) for e in known if e.start == end and not e.plausible]
        sure = [(a, b) for a, b in touching if not any(low < b and a < high for low, high in segment.doubtful)]
        heads = [(e.start, min(e.end, e.start + COMPARED_BYTES)) for e in known[:MOST_COMPARED] if e.start != start]
        with source.open(segment.summary.path) as own:
            if not sure:
                same = any(_equal(own, donor, a, b) for a, b in heads)
                return "" if same else f"no message of this segment is the same in both copies, of {len(heads)} compared"
            for a, b in sure:
                if not _equal(own, donor, a, b) and not (a >= end and _nothing(donor, a)):
                    return f"the copies have other bytes beside it, at physical offsets {base + a} to {base + b}"
        return ""


_LONGER = "; the donor's log continues after this copy's last message, which no repair adds: use the donor's store instead"


def _sentence(row: Row) -> str:
    """What came of the donor, in one sentence."""
    taken, left = row["taken"], row["not_taken"]
    if not row["compared"] and not taken:
        return "nothing was taken: the donor has no message where the copy has one, so the two cannot be compared"
    told = f"{row['taken_bytes']} bytes in {len(taken)} ranges were taken"
    if not taken:
        told = "nothing was taken" + ("" if left else ": up to its last message no range of the copy is damaged or missing")
    return told + (f"; of {len(left)} damaged ranges not all could be" if left and taken else "")


def _bases(held: Sequence[int], known: set[int], size: int) -> Iterator[tuple[int, int]]:
    """(base, 1) of each segment from the copy's first with messages on that the copy or the donor has, ascending; between them
    (base of the first, how many) of those that neither has. Behind the copy's last one it ends where the donor does."""
    at, last = min(held), max(held)
    for base in sorted(b for b in known if b >= at):
        if base > at and at > last:
            return
        if base > at:
            yield at, (base - at) // size
        yield base, 1
        at = base + size


def _equal(own: ByteFile, donor: ByteFile, start: int, end: int) -> bool:
    return donor.size >= end and own.read(start, end - start) == donor.read(start, end - start)


def _nothing(donor: ByteFile, start: int) -> bool:
    """Whether the donor ends before: a slave that was behind."""
    return donor.size <= start or not any(donor.read(start, min(FRAME_BYTES, donor.size - start)))


def _gaps(extents: Sequence[Extent], size: int) -> list[tuple[int, int]]:
    """What of a segment holds no message."""
    gaps, at = [], 0
    for extent in extents:
        if extent.kind == EXTENT_MESSAGE:
            if at < extent.start:
                gaps.append((at, extent.start))
            at = extent.end
    if at < size:
        gaps.append((at, size))
    return gaps
