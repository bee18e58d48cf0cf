"""Plans the CommitLog of a repaired store. It decides the bytes that stay, the log's end, and the parts that are bridged,
filled, zeroed or removed.

Nothing is written here: the result is a list of edits of a copy. What stays are the audit's message extents: messages that pass
every check. Offsets never move.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.layouts.store_names import BRIDGE_TOPIC, COMMITLOG
from schemas.repair import DroppedMessage, RepairStep
from schemas.rows import EXTENT_FILLER, EXTENT_MESSAGE, WALK_AUDIT, SegmentSummary, StoreFile
from store_io.base.errors import StoreError
from store_io.broker.message_verdict import VALID, Message
from store_io.log.records import bridges
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.segment_walk import whole_messages_end
from store_io.model.queue_runs import message_runs, messages_in
from store_io.repair.log.edits import Edit, LogPlan, filler, message_extents, segment_path, window_of
from store_io.repair.log.lengthen import lengthened
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_plan import BROKER
from store_io.repair.repair_steps import BRIDGE, CREATE, CUT, FILL, REMOVE, RENAME, ZERO
from store_io.repair.repair_work import Work
from store_io.repair.writing.store_writer import StoreWriter
from store_io.source.byte_source import ByteSource

MAX_NEW_SEGMENTS = 10_000
_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass
class _Segment:
    """One segment of the new log.

    summary: None if the copy has no such file.
    valid: the positions of the messages that stay, ascending.
    filler: the position at which a sound one begins; -1: there is none.
    number: its number among the segments of the new log.
    """

    base: int
    summary: SegmentSummary | None = None
    valid: list[tuple[int, int]] = field(default_factory=list)
    filler: int = -1
    number: int = 0

    @property
    def path(self) -> str:
        """Return its path in the new store."""
        return segment_path(self.base)

    @cached_property
    def known_begins(self) -> np.ndarray:
        """Return the begins of messages that the audit's runs name, ascending."""
        assert self.summary is not None
        runs = message_runs(self.summary)
        return np.sort(np.concatenate([runs["first_position"], runs["last_phy_offset"][runs["regular"] == 1] - self.base]))

    @property
    def weight(self) -> int:
        """Return bytes of messages that stay."""
        return sum(end - start for start, end in self.valid)


def plan_log(work: Work, audit: Audited, policy: str) -> LogPlan:
    """Plan the log of the new store under that policy. Raises StoreError if it cannot be made whole."""
    limit = None
    if policy == BROKER:
        assert audit.prediction is not None
        limit = audit.prediction.truncate_at
    return _LogRepair(work, audit, limit).run()


class _LogRepair:
    """The repair of a CommitLog.

    limit: physical offset at which the log ends at the latest; None: all that is valid stays.
    """

    def __init__(self, work: Work, audit: Audited, limit: int | None):
        self.rules, self.tree, self.summaries, self.limit = work.rules, audit.tree, audit.segments, limit
        self.source: ByteSource = work.source
        self.size = work.rules.segment_bytes
        self.least = bridges.least_bytes(work.rules)
        self.plan = LogPlan()
        self.whole: list[_Segment] = []

    def run(self) -> LogPlan:
        kept = self._chosen()
        while kept and not kept[-1].valid:
            kept.pop()
        while kept and not kept[0].valid:
            kept.pop(0)
        self._remove_others({s.summary.path for s in kept if s.summary is not None})
        if not kept:
            return self.plan
        self.whole = self._without_gaps(kept)
        for segment in self.whole:
            self._normalise(segment)
            self._fill(segment)
        last = [s for s in self.whole if s.valid][-1]
        self.plan.start, self.plan.end = kept[0].base, last.base + last.valid[-1][1]
        self.plan.messages = sum(map(self._messages, kept)) - len(self.plan.dropped)
        return self.plan

    def _edit(self, step: RepairStep, act: Callable[[StoreWriter], None]) -> None:
        self.plan.edits.append(Edit(step, act))

    def _messages(self, segment: _Segment) -> int:
        """Return how many of the segment's messages begin below the limit; bridges are none."""
        assert segment.summary is not None
        limit = self.size if self.limit is None else self.limit - segment.base
        runs = message_runs(segment.summary)
        old = (f for f in segment.summary.findings if f.code == Code.COMMITLOG_BRIDGED)
        return int(runs["records"][runs["first_position"] < limit].sum()) - sum(f.count for f in old if (f.start or 0) < limit)

    # ---- which segments --------------------------------------------------------------------------------------------

    def _chosen(self) -> list[_Segment]:
        """Return one segment per base, the one with most messages, those whose name and length fit; by base. `unblock` has given
        those that hold a message the length."""
        best: dict[int, _Segment] = {}
        for summary in self.summaries:
            if summary.size != self.size:
                continue
            if summary.base_offset % self.size or summary.base_offset < 0:
                if message_extents(summary):
                    raise StoreError(
                        f"{summary.path}: holds messages of this log, and its name is no multiple of the segment size"
                        f" {self.size}; which of the two is wrong is not known"
                    )
                continue
            segment = self._segment(summary)
            other = best.get(segment.base)
            if other is None or segment.weight > other.weight:
                best[segment.base] = segment
        return [best[base] for base in sorted(best)]

    def _segment(self, summary: SegmentSummary) -> _Segment:
        room = self.size
        segment = _Segment(summary.base_offset, summary)
        limit = room if self.limit is None else max(0, min(room, self.limit - segment.base))
        for extent in summary.extents:
            if extent.kind == EXTENT_MESSAGE and extent.start < limit:
                end = extent.end if extent.end <= limit else self._boundary(summary, extent.start, limit)
                if end > extent.start:
                    segment.valid.append((extent.start, end))
            elif extent.kind == EXTENT_FILLER and segment.valid and segment.valid[-1][1] == extent.start:
                with self.source.open(summary.path) as file:
                    stored = int.from_bytes(file.read(extent.start, 4), "big", signed=True)
                if stored == room - extent.start:
                    segment.filler = extent.start
        return segment

    def _boundary(self, summary: SegmentSummary, start: int, limit: int) -> int:
        """Return the last boundary between messages at or before `limit`, walking from `start` if it must."""
        with window_of(self.source, summary.path) as window:
            check = RecordCheck.audit_of(summary.base_offset, self.rules, summary.path)
            if check.verdict(window, limit, summary.size).kind == VALID:
                return limit
            return whole_messages_end(check, window, start, limit)

    def _remove_others(self, kept: set[str]) -> None:
        """Remove all other files and folders of the log."""
        for entry in self.tree.all:
            top = entry.path.partition("/")[0].partition("[")[0]
            if top == COMMITLOG and entry.path != COMMITLOG and entry.path not in kept:
                self._remove(entry)

    def _remove(self, entry: StoreFile) -> None:
        messages = sum(messages_in(message_runs(s)) for s in self.summaries if s.path == entry.path)
        lost = {"messages": messages, "bytes": entry.size if entry.kind == "file" else 0}
        step = RepairStep(REMOVE, entry.path, reason="no segment of the new log", lost=lost)
        self._edit(step, lambda writer: writer.remove(entry.path))

    def _without_gaps(self, kept: list[_Segment]) -> list[_Segment]:
        """Return the segments with those that are missing between them."""
        first, last = kept[0].base, kept[-1].base
        missing = (last - first) // self.size + 1 - len(kept)
        if missing > MAX_NEW_SEGMENTS:
            raise StoreError(
                f"{COMMITLOG}: {missing} segments are missing between {segment_path(first)} and"
                f" {segment_path(last)}; one of these names is wrong"
            )
        by_base = {s.base: s for s in kept}
        whole = [by_base.get(base) or _Segment(base) for base in range(first, last + 1, self.size)]
        for number, segment in enumerate(whole):
            segment.number = number
        return whole

    # ---- what is written -------------------------------------------------------------------------------------------

    def _normalise(self, segment: _Segment) -> None:
        """Give the segment its file, with its name."""
        path, summary, size = segment.path, segment.summary, self.size
        if summary is None:
            neighbour = next(s.summary for s in self.whole[segment.number :] if s.summary is not None)
            entry = self.tree.by_path.get(neighbour.path)
            self._edit(
                RepairStep(CREATE, path, 0, size, "the segment is missing"),
                lambda writer: _create(writer, path, size, entry.mtime_ns if entry else 0),
            )
            return
        if summary.path != path:
            step = RepairStep(RENAME, summary.path, reason=f"a broker names it {path}")
            self._edit(step, lambda writer: writer.move(summary.path, path))

    def _fill(self, segment: _Segment) -> None:
        """Bridge the gaps between the segment's messages, and end it."""
        at, is_last = 0, segment.number == len(self.whole) - 1
        kept: list[tuple[int, int]] = []
        for start, end in segment.valid:
            if not (kept and self._lengthened(segment, kept[-1][0], at, start)):
                start = self._bridged(segment, at, start, end)
            if start < end:
                kept.append((start, end))
                at = end
        segment.valid = kept
        if not kept and not is_last:
            at = self.least + len(BRIDGE_TOPIC)
            self._bridge(segment, 0, at, "the segment holds no message")
        if segment.filler == at and at:
            return
        if at < self.size:
            self._zero(segment, at, (CUT, "the log ends here") if is_last else (ZERO, "no valid message follows"))
        if not is_last and at < self.size:
            self._end_segment(segment, at)

    def _end_segment(self, segment: _Segment, at: int) -> None:
        """End a segment by a bridge, which marks that messages after it are missing, and a filler.

        If there is no room for both, the filler alone.
        """
        path = segment.path
        least = self.least + len(BRIDGE_TOPIC)
        if self.size - at >= least + layout.FRAME_BYTES and segment.valid:
            self._bridge(segment, at, at + least, "marks that messages after it are missing")
            at += least
        if self.size - at < layout.FRAME_BYTES:
            raise StoreError(f"{path}: {self.size - at} bytes are left after its last message, too few for a filler")
        data = filler(self.size - at)
        self._edit(RepairStep(FILL, path, at, self.size, "a segment follows"), lambda writer: writer.write(path, at, data))
        self.plan.add_bridge(segment.base, at, self.size, "filler")

    def _zero(self, segment: _Segment, at: int, why: tuple[str, str]) -> None:
        path, summary = segment.path, segment.summary
        if summary is None or at >= self.size:
            return
        with window_of(self.source, summary.path) as window:
            used = window.last_nonzero_end(at)
        if used > at:
            bytes_lost, size = used - at, self.size
            lost = {"messages": messages_in(message_runs(summary, at)), "bytes": bytes_lost}
            self._edit(RepairStep(why[0], path, at, size, why[1], lost=lost), lambda writer: writer.zero(path, at, size))
            self.plan.zeroed_bytes += bytes_lost

    def _bridged(self, segment: _Segment, at: int, start: int, end: int) -> int:
        """Bridge [at, start). If that is too short for a record, following messages are dropped until one fits.

        Returns the new start.
        """
        if at == start:
            return start
        while start < end and start - at < self.least:
            message = self._message(segment, start)
            self.plan.dropped.append(
                DroppedMessage(
                    segment.path, start, start + message.total_size, message.topic, message.queue_id, message.queue_offset, True,
                    segment.base + start, f"the {start - at} damaged bytes before it are too few for a bridge",
                )
            )  # fmt: skip
            start += message.total_size
        if start >= end:
            return end
        rows = takewhile(lambda row: row.file == segment.path and row.start >= at, reversed(self.plan.dropped))
        dropped = sum(1 for _ in rows)
        self._bridge(segment, at, start, "a scan passes the damaged bytes", {"messages": dropped, "bytes": start - at})
        return start

    def _lengthened(self, segment: _Segment, low: int, at: int, start: int) -> bool:
        """Have the record that ends at `at` take in bytes [at, start), if they are too few for a bridge. Return whether it does.

        low: the begin of a message not after that record.
        """
        if not 0 < start - at < self.least:
            return False
        assert segment.summary is not None
        path = segment.path
        with window_of(self.source, segment.summary.path) as window:
            check = RecordCheck.audit_of(segment.base, self.rules, segment.summary.path)
            place, record = self._known_before(segment, low, at), None
            while place < at:
                verdict = check.verdict(window, place, segment.summary.size)
                if verdict.kind != VALID or verdict.message is None:
                    return False
                record, place = verdict.message, place + verdict.size
        if record is None or place != at:
            return False
        first, properties = record.position, record.properties_position if record.properties_length > 0 else at
        with self.source.open(segment.summary.path) as file:
            data = file.read(first, at - first)
        longer = lengthened(data, properties - first, start - at)
        if longer is None:
            return False

        def write(writer: StoreWriter) -> None:
            writer.write(path, first, longer[:4])
            writer.write(path, properties - 2, longer[properties - 2 - first :])

        lost = {"messages": 0, "bytes": start - at}
        self._edit(RepairStep(BRIDGE, path, at, start, "too few for a record: the one before takes them in", lost=lost), write)
        self.plan.add_bridge(segment.base, at, start, "property", store_time=record.store_time)
        return True

    def _known_before(self, segment: _Segment, low: int, at: int) -> int:
        """Return the begin of a message in [low, at) that the audit's runs name, as near to the end as they do."""
        places = segment.known_begins
        count = int(np.searchsorted(places, at))
        return max(low, int(places[count - 1])) if count else low

    def _bridge(self, segment: _Segment, start: int, end: int, reason: str, lost: Mapping[str, int] = _NOTHING) -> None:
        base, path, time = segment.base, segment.path, self._time_near(segment, start)

        def write(writer: StoreWriter) -> None:
            writer.zero(path, start, end)
            for bridge in bridges.bridges(base, start, end, time, self.rules):
                for at, part in bridge.parts():
                    writer.write(path, at, part)

        self._edit(RepairStep(BRIDGE, path, start, end, reason, lost=lost), write)
        self.plan.add_bridge(base, start, end, "record", store_time=time)
        self.plan.added.update({(topic, 0): count for topic, count in bridges.topics(start, end, self.rules).items()})

    def _time_near(self, segment: _Segment, position: int) -> int:
        """Store time of the last message before that position, else of the first one after it."""
        for number in range(segment.number, -1, -1):
            other = self.whole[number]
            count = len(other.valid) if other is not segment else bisect_right(other.valid, position, key=lambda r: r[1])
            if count and other.summary is not None:
                return self._last_time(other, other.valid[count - 1])
        later = self.whole[segment.number :]
        other, start = next((s, r[0]) for s in later for r in s.valid if s is not segment or r[0] >= position)
        return self._message(other, start).store_time

    def _last_time(self, segment: _Segment, valid: tuple[int, int]) -> int:
        """Store time of the last message that a scan's run ends with in this range."""
        assert segment.summary is not None
        runs = segment.summary.runs
        inside = (runs["walk"] & WALK_AUDIT != 0) & (runs["first_position"] >= valid[0]) & (runs["first_position"] < valid[1])
        times = runs["last_store_time"][inside]
        return int(times.max()) if len(times) else self._message(segment, valid[0]).store_time

    def _message(self, segment: _Segment, position: int) -> Message:
        assert segment.summary is not None
        with window_of(self.source, segment.summary.path) as window:
            verdict = RecordCheck.audit_of(segment.base, self.rules, segment.summary.path).verdict(
                window, position, segment.summary.size
            )
        if verdict.kind != VALID or verdict.message is None:
            raise StoreError(f"{segment.summary.path}: changed while it was repaired")
        return verdict.message


def _create(writer: StoreWriter, path: str, size: int, mtime_ns: int) -> None:
    writer.create(path, size)
    if mtime_ns > 0:
        writer.set_time(path, mtime_ns)
