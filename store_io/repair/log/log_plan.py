"""What the CommitLog of a repaired store is: which bytes stay, where it ends, what is bridged, filled, zeroed or removed.

Nothing is written here: the result is a list of edits of a copy. Sources of the bytes that stay are the audit's extents: only
messages that pass every check count. Offsets never move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from schemas import commitlog_layout as layout
from schemas.rows import EXTENT_FILLER, EXTENT_MESSAGE, RUN_LMQ, WALK_AUDIT, Row, SegmentSummary, StoreFile
from schemas.store_names import COMMITLOG
from store_io.base.errors import StoreError
from store_io.formats.commitlog import bridges
from store_io.formats.commitlog.message_columns import RecordCheck
from store_io.formats.commitlog.segment_walk import whole_messages_end
from store_io.repair.repair_steps import BRIDGE, CREATE, CUT, FILL, REMOVE, RENAME, RESIZE, ZERO, Step
from store_io.repair.repair_work import Work
from store_io.rules.loading import Tree
from store_io.rules.message_verdict import VALID, Message
from store_io.rules.releases import BrokerRules
from store_io.source.byte_source import ByteSource
from store_io.source.segment_window import SegmentWindow

MAX_NEW_SEGMENTS = 10_000
_NOT_KEPT = "no segment of the new log"
WINDOW_BYTES = 1 << 20


@dataclass(frozen=True)
class Edit:
    """One act on the copy. action: CREATE (`end` zeros), RESIZE (to `end`), FILL (with `data`), ZERO or CUT, REMOVE, RENAME (to
    `to`), BRIDGE (with `store_time`, of the segment that begins at `base`).  reason, lost: of the step."""

    action: str
    path: str
    start: int = 0
    end: int = 0
    data: bytes = b""
    to: str = ""
    mtime_ns: int = 0
    base: int = 0
    store_time: int = 0
    reason: str = ""
    lost: Mapping[str, int] = field(default_factory=dict)

    @property
    def step(self) -> Step:
        """The same as a step of the repair."""
        start, end = (self.start, self.end) if self.end else (None, None)
        if self.action == FILL:
            end = self.start + int.from_bytes(self.data[:4], "big")
        reason = f"{self.reason} {self.to}" if self.to else self.reason
        return Step(self.action, self.path, start, end, reason, lost=self.lost)


@dataclass
class LogPlan:
    """end: physical offset after the last message, 0 where no message stays.  own_end: the same without added segments.
    messages: how many stay, bridges not counted.  bridges, dropped: rows of the report."""

    edits: list[Edit] = field(default_factory=list)
    start: int = 0
    end: int = 0
    messages: int = 0
    bridges: list[Row] = field(default_factory=list)
    dropped: list[Row] = field(default_factory=list)
    zeroed_bytes: int = 0
    padded_from: int | None = None

    @property
    def own_end(self) -> int:
        return self.end if self.padded_from is None else self.padded_from


@dataclass
class _Segment:
    base: int
    summary: SegmentSummary | None
    valid: list[tuple[int, int]]  # positions of what stays, ascending
    filler: int = -1  # where a sound filler begins; -1: none

    @property
    def path(self) -> str:
        """Its path in the new store."""
        return segment_path(self.base)


@dataclass(frozen=True)
class _Place:
    """A segment among all those of the new log, by its number in them."""

    whole: list[_Segment]
    number: int

    @property
    def segment(self) -> _Segment:
        return self.whole[self.number]

    @property
    def is_last(self) -> bool:
        return self.number == len(self.whole) - 1


def segment_path(base: int) -> str:
    """The path that a broker gives the segment."""
    return f"{COMMITLOG}/{base:020d}"


def apply_edits(work: Work, edits: Sequence[Edit]) -> None:
    """Carry the edits out on the copy, each a step. Raises WriteFailed."""
    writer = work.writer
    for edit in edits:
        work.steps.take(edit.step)
        if edit.action == CREATE:
            writer.create(edit.path, edit.end)
            if edit.mtime_ns > 0:
                writer.set_time(edit.path, edit.mtime_ns)
        elif edit.action == RESIZE:
            writer.resize(edit.path, edit.end)
        elif edit.action == FILL:
            writer.write(edit.path, edit.start, edit.data)
        elif edit.action in (ZERO, CUT):
            writer.zero(edit.path, edit.start, edit.end)
        elif edit.action == REMOVE:
            writer.remove(edit.path)
        elif edit.action == RENAME:
            writer.move(edit.path, edit.to)
        else:
            writer.zero(edit.path, edit.start, edit.end)
            for bridge in bridges.bridges(edit.base, edit.start, edit.end, edit.store_time, work.rules):
                for at, part in bridge.parts():
                    writer.write(edit.path, at, part)


class LogRepair:
    """Plans the log of one store. limit: physical offset at which the log ends at the latest; None: keeps all that is valid."""

    def __init__(
        self,
        segments: Sequence[SegmentSummary],
        rules: BrokerRules,
        source: ByteSource,
        tree: Tree,
        limit: int | None,
    ):
        self.rules, self.source, self.tree, self.limit = rules, source, tree, limit
        self.size = rules.segment_bytes
        self.plan = LogPlan()
        self.summaries = segments

    def run(self) -> LogPlan:
        """The plan. Raises StoreError where the log cannot be made whole."""
        kept = self._chosen()
        while kept and not kept[-1].valid:
            kept.pop()
        while kept and not kept[0].valid:
            kept.pop(0)
        bases = {s.base for s in kept}
        for entry in self.tree.all:
            top = entry.path.partition("/")[0].partition("[")[0]
            if (
                top == COMMITLOG
                and entry.path != COMMITLOG
                and not any(s.summary is not None and s.summary.path == entry.path for s in kept)
            ):
                self.plan.edits.append(Edit(REMOVE, entry.path, reason=_NOT_KEPT, lost=self._lost_with(entry)))
        if not kept:
            return self.plan
        self.plan.start, last = kept[0].base, kept[-1]
        missing = (last.base - kept[0].base) // self.size + 1 - len(kept)
        if missing > MAX_NEW_SEGMENTS:
            raise StoreError(
                f"{COMMITLOG}: {missing} segments are missing between {segment_path(kept[0].base)} and"
                f" {segment_path(last.base)}; one of these names is wrong"
            )
        whole = list(kept)
        for base in range(kept[0].base, last.base, self.size):
            if base not in bases:
                whole.append(_Segment(base, None, []))
        whole.sort(key=lambda s: s.base)
        for number, segment in enumerate(whole):
            self._normalise(segment, whole)
            self._fill(_Place(whole, number))
        final = [s for s in whole if s.valid]
        self.plan.end = final[-1].base + final[-1].valid[-1][1]
        self.plan.messages = sum(map(self._messages, kept)) - len(self.plan.dropped)
        return self.plan

    def _messages(self, segment: _Segment) -> int:
        """How many of the segment's messages begin below the limit; bridges are none."""
        assert segment.summary is not None
        limit = self.size if self.limit is None else self.limit - segment.base
        runs = segment.summary.runs
        own = (runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_LMQ) & (runs["first_position"] < limit)
        old = (f for f in segment.summary.findings if f.code == "commitlog_bridged")
        return int(runs["records"][own].sum()) - sum(f.count for f in old if (f.start or 0) < limit)

    def _lost_with(self, entry: StoreFile) -> dict[str, int]:
        """What goes with a file, or folder, in the log."""
        found = sum(_messages_from(summary, 0) for summary in self.summaries if summary.path == entry.path)
        return {"messages": found, "bytes": entry.size if entry.kind == "file" else 0}

    # ---- which segments --------------------------------------------------------------------------------------------

    def _chosen(self) -> list[_Segment]:
        """One segment per base, the one with most messages, those whose name fits; by base."""
        best: dict[int, _Segment] = {}
        for summary in self.summaries:
            if summary.base_offset % self.size or summary.base_offset < 0:
                if any(e.kind == EXTENT_MESSAGE for e in summary.extents):
                    raise StoreError(
                        f"{summary.path}: holds messages of this log, and its name is no multiple of the segment size"
                        f" {self.size}; which of the two is wrong is not known"
                    )
                continue
            segment = self._segment(summary)
            other = best.get(segment.base)
            if other is None or _weight(segment) > _weight(other):
                best[segment.base] = segment
        return [best[base] for base in sorted(best)]

    def _segment(self, summary: SegmentSummary) -> _Segment:
        base, room = summary.base_offset, self.size
        limit = room if self.limit is None else max(0, min(room, self.limit - base))
        valid: list[tuple[int, int]] = []
        filler = -1
        for extent in summary.extents:
            if extent.kind == EXTENT_MESSAGE and extent.start < limit:
                end = extent.end if extent.end <= limit else self._boundary(summary, extent.start, limit)
                if end > extent.start:
                    valid.append((extent.start, end))
            elif extent.kind == EXTENT_FILLER and valid and valid[-1][1] == extent.start and summary.size == room:
                with self.source.open(summary.path) as file:
                    stored = int.from_bytes(file.read(extent.start, 4), "big", signed=True)
                if stored == room - extent.start:
                    filler = extent.start
        return _Segment(base, summary, valid, filler)

    def _boundary(self, summary: SegmentSummary, start: int, limit: int) -> int:
        """The last boundary between messages at or before `limit`, walking from `start` where it must."""
        with self.source.open(summary.path) as file:
            window = SegmentWindow(file, summary.size, WINDOW_BYTES)
            check = RecordCheck.audit_of(summary.base_offset, self.rules)
            if check.verdict(window, limit, summary.size).kind == VALID:
                return limit
            return whole_messages_end(check, window, start, limit)

    # ---- what is written -------------------------------------------------------------------------------------------

    def _normalise(self, segment: _Segment, whole: Sequence[_Segment]) -> None:
        path = segment.path
        if segment.summary is None:
            neighbour = next(s.summary for s in whole if s.base > segment.base and s.summary is not None)
            entry = self.tree.by_path.get(neighbour.path)
            time = entry.mtime_ns if entry else 0
            self.plan.edits.append(Edit(CREATE, path, 0, self.size, mtime_ns=time, reason="the segment is missing"))
            return
        if segment.summary.path != path:
            self.plan.edits.append(Edit(RENAME, segment.summary.path, to=path, reason="a broker names it"))
        if segment.summary.size != self.size:
            lost = {"bytes": max(0, segment.summary.size - self.size)}
            self.plan.edits.append(Edit(RESIZE, path, 0, self.size, reason="a segment has this size", lost=lost))

    def _fill(self, place: _Place) -> None:
        """Bridge the gaps between the segment's messages, and end it."""
        segment = place.segment
        at = 0
        kept: list[tuple[int, int]] = []
        for start, end in segment.valid:
            start = self._bridged(place, at, start, end)
            if start < end:
                kept.append((start, end))
                at = end
        segment.valid = kept
        if not kept and not place.is_last:
            least = bridges.least_bytes(self.rules)
            at = max(least, least + len(bridges.TOPIC))
            self._bridge(segment, 0, at, self._time_near(place, 0), "the segment holds no message")
        if segment.filler == at and at:
            return
        if at < self.size:
            self._zero(place, at)
        if not place.is_last and at < self.size:
            self._end_segment(place, at)

    def _end_segment(self, place: _Place, at: int) -> None:
        """A bridge, which tells what is missing here, and a filler; where there is no room for the first, the second alone."""
        segment, path = place.segment, place.segment.path
        least = bridges.least_bytes(self.rules) + len(bridges.TOPIC)
        if self.size - at >= least + layout.FRAME_BYTES and segment.valid:
            self._bridge(segment, at, at + least, self._time_near(place, at), "tells that messages are missing after it")
            at += least
        if self.size - at < layout.FRAME_BYTES:
            raise StoreError(f"{path}: {self.size - at} bytes are left after its last message, too few for a filler")
        filler = (self.size - at).to_bytes(4, "big") + layout.MAGIC_BLANK_BYTES
        self.plan.edits.append(Edit(FILL, path, at, at + len(filler), filler, reason="a segment follows"))
        row = {"file": path, "start": at, "end": self.size, "phy_offset": segment.base + at, "kind": "filler"}
        self.plan.bridges.append(row)

    def _zero(self, place: _Place, at: int) -> None:
        segment = place.segment
        if segment.summary is None:
            return
        size = min(segment.summary.size, self.size)
        if at < size:
            with self.source.open(segment.summary.path) as file:
                window = SegmentWindow(file, segment.summary.size, WINDOW_BYTES)
                used = window.last_nonzero_end(at)
            if used > at:
                bytes_lost = min(used, size) - at
                lost = {"messages": _messages_from(segment.summary, at), "bytes": bytes_lost}
                action, reason = (CUT, "the log ends here") if place.is_last else (ZERO, "no valid message follows")
                self.plan.edits.append(Edit(action, segment.path, at, size, reason=reason, lost=lost))
                self.plan.zeroed_bytes += bytes_lost

    def _bridged(self, place: _Place, at: int, start: int, end: int) -> int:
        """Bridge [at, start); where that is too short for a record, the messages behind it go until it is not. The new start."""
        segment, least = place.segment, bridges.least_bytes(self.rules)
        if at == start:
            return start
        while start < end and start - at < least:
            message = self._message(segment, start)
            self.plan.dropped.append(
                {
                    "file": segment.path, "start": start, "end": start + message.total_size, "topic": message.topic,
                    "queue_id": message.queue_id, "queue_offset": message.queue_offset,
                    "reason": f"the {start - at} damaged bytes before it are too few for a bridge",
                }
            )  # fmt: skip
            start += message.total_size
        if start >= end:
            return end
        dropped = sum(row["file"] == segment.path and at <= row["start"] < start for row in self.plan.dropped)
        lost = {"messages": dropped, "bytes": start - at}
        self._bridge(segment, at, start, self._time_near(place, at), "a scan passes the damaged bytes", lost)
        return start

    def _bridge(
        self, segment: _Segment, start: int, end: int, time: int, reason: str, lost: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        path = segment.path
        self.plan.edits.append(Edit(BRIDGE, path, start, end, base=segment.base, store_time=time, reason=reason, lost=lost))
        self.plan.bridges.append(
            {"file": path, "start": start, "end": end, "phy_offset": segment.base + start, "kind": "record", "store_time": time}
        )

    def _time_near(self, place: _Place, position: int) -> int:
        """Store time of the last message before that position, else of the first one behind it."""
        whole, number = place.whole, place.number
        for segment in reversed(whole[: number + 1]):
            before = [r for r in segment.valid if segment is not whole[number] or r[1] <= position]
            if before and segment.summary is not None:
                return self._last_time(segment, before[-1])
        later = next((s, r) for s in whole[number:] for r in s.valid if s is not whole[number] or r[0] >= position)
        return self._message(later[0], later[1][0]).store_time

    def _last_time(self, segment: _Segment, valid: tuple[int, int]) -> int:
        """Store time of the last message that a scan's run ends with in this range."""
        assert segment.summary is not None
        runs = segment.summary.runs
        inside = (runs["walk"] & WALK_AUDIT != 0) & (runs["first_position"] >= valid[0]) & (runs["first_position"] < valid[1])
        times = runs["last_store_time"][inside]
        return int(times.max()) if len(times) else self._message(segment, valid[0]).store_time

    def _message(self, segment: _Segment, position: int) -> Message:
        assert segment.summary is not None
        with self.source.open(segment.summary.path) as file:
            window = SegmentWindow(file, segment.summary.size, WINDOW_BYTES)
            verdict = RecordCheck.audit_of(segment.base, self.rules).verdict(window, position, segment.summary.size)
        if verdict.kind != VALID or verdict.message is None:
            raise StoreError(f"{segment.summary.path}: changed while it was repaired")
        return verdict.message


def _messages_from(summary: SegmentSummary, position: int) -> int:
    """How many valid messages the segment has from that position on."""
    runs = summary.runs
    beyond = (runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_LMQ) & (runs["first_position"] >= position)
    return int(runs["messages"][beyond].sum())


def _weight(segment: _Segment) -> int:
    return sum(end - start for start, end in segment.valid)
