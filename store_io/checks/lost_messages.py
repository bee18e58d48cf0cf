"""Messages that a ConsumeQueue entry knows and the CommitLog lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rows import EXTENT_DAMAGED, Finding, QueueKey, SegmentSummary
from schemas.severity_cases import Case, severity_in
from store_io.base.wording import count_text
from store_io.broker.releases import BrokerRules
from store_io.kinds.unread.unread_kind import lies_in_unread
from store_io.log.records.framing import framing_of
from store_io.model import log_map as lm
from store_io.model.evidence import Evidence
from store_io.model.facts.live_copy import LiveCopy, live_copy, queues_ahead
from store_io.model.lost_entries import LostAt, lost_places, places_of
from store_io.model.queue_leftovers import LeftoverResult
from store_io.source.byte_source import name_of

MAX_LOST_SIDE_BY_SIDE = 20  # lost messages with a finding each although their bytes touch


def lost_messages(evidence: Evidence) -> list[Finding]:
    """Return the findings on lost messages that leftover entries prove, if both sides could be read."""
    if not evidence.log_whole or not evidence.queues_whole:
        return []
    found = lost_findings(evidence.leftovers.values(), evidence.segments, evidence.log, _live(evidence), evidence.copy.rules)
    return [f for f in found if f.code != Code.SEGMENT_MISSING or not lies_in_unread(evidence, f.phy_offset)]


def flushed_further(evidence: Evidence) -> bool:
    """Say whether the checkpoint knows later flushed messages than the log's last one."""
    last = max((s.last_store_time for s in evidence.segments), default=0)
    return evidence.read_last and evidence.copy.checkpoint.physic_time > last


def _live(evidence: Evidence) -> LiveCopy:
    """Return what shows that the copy was made while the broker ran."""
    copied = evidence.holes.copied_live(evidence.copy.checkpoint.physic_time)
    if evidence.copy.loaded.ledger is None:
        ahead = queues_ahead(evidence.leftovers.values(), evidence.log)
        return live_copy(ahead, evidence.copy.unclean, flushed_further(evidence), copied)
    # DLedger's own files say which entries are missing; headers lie between its messages, so that any two leave a hole
    return LiveCopy(unwritten=copied)


def lost_findings(
    results: Collection[LeftoverResult], segments: Sequence[SegmentSummary], log: lm.LogMap, live: LiveCopy, rules: BrokerRules
) -> list[Finding]:
    """Return messages that an entry knows and the CommitLog lacks: in damaged bytes, in zeros, in missing or never copied
    segments."""
    places = lost_places(results, log, (lm.DAMAGED, lm.UNWRITTEN, lm.BEYOND))
    gone = {log.segment_name(place): at for (kind, place), at in places.items() if kind == lm.BEYOND}
    counted = {of: at for of, at in places.items() if of[0] != lm.BEYOND and not at.all_listed}
    in_log = _InLog(segments, rules, lambda phy: live.later and live.proven and phy >= log.data_end)
    lost: list[_Lost] = []
    reported: set[int] = set()
    for result in results:
        for number, phy, size, kind in result.lost:
            if kind in (lm.MISSING, lm.BEYOND) or phy in reported:
                continue  # the gap between the segments' names has said so; or the segment that follows the last one
            if counted and (kind, int(places_of(log, kind, np.array([phy]))[0])) in counted:
                continue
            segment = in_log.segment_of(phy, phy + size)
            if segment is None:
                continue
            reported.add(phy)
            lost.append(_Lost(segment, phy, phy + size, _severity(live, log, phy), kind, frozenset([result.key]), size, number))
    together = []
    for (kind, _), at in counted.items():
        start, end = at.bounds
        segment = in_log.segment_of(start, end)
        if segment is not None:
            severity = _severity(live, log, start)
            together.append(_Lost(segment, start, end, severity, kind, frozenset(at.keys), at.bytes, None, at.count, at.exact))
    known = {s.path for s in segments}
    missing = _segments_gone({name: at for name, at in sorted(gone.items()) if name not in known}, log, live)
    return [*(one.finding() for one in _folded_lost(lost)), *(one.finding() for one in together), *live.findings(log), *missing]


def _severity(live: LiveCopy, log: lm.LogMap, phy_offset: int) -> str:
    return severity_in(Code.MESSAGE_LOST, Case.LIVE_COPY, bool(live.holes) and phy_offset >= log.data_end)


class _InLog:
    """Knows in which segment a lost message lay. said: whether another finding counts what lay at a physical offset."""

    def __init__(self, segments: Sequence[SegmentSummary], rules: BrokerRules, said: Callable[[int], bool]):
        self._rules, self._said, self._segments = rules, said, segments
        self._by_name = {name_of(s.path): s for s in segments}
        self._damaged: dict[str, set[tuple[int, int]]] = {}  # of segments that were asked for
        self._holding = cache(self._search)

    def segment_of(self, start: int, end: int) -> SegmentSummary | None:
        """Return the segment of these physical offsets. None without one, and if another finding is about them."""
        if self._said(start):
            return None
        segment = self._by_name.get(f"{start - start % self._rules.segment_bytes:020d}") or self._holding(start)
        if segment is None:
            return None
        if segment.path not in self._damaged:
            self._damaged[segment.path] = {(e.start, e.end) for e in segment.extents if e.kind == EXTENT_DAMAGED}
        low, high = start - segment.base_offset, end - segment.base_offset
        header = framing_of(self._rules, segment.path).header_bytes
        of_this_message = {(low, high), (low - header, high)} & self._damaged[segment.path]
        return segment if not of_this_message else None

    def _search(self, phy: int) -> SegmentSummary | None:
        return next((s for s in self._segments if s.base_offset <= phy < s.base_offset + s.size), None)


def _segments_gone(places: Mapping[str, LostAt], log: lm.LogMap, live: LiveCopy) -> Iterator[Finding]:
    """Yield segments after the last one, with the messages of each to which entries lead."""
    for name, at in places.items():
        phy_offset = int(name_of(name))
        yield Finding(
            Code.SEGMENT_MISSING,
            name,
            severity=severity_in(Code.SEGMENT_MISSING, Case.LIVE_COPY, bool(live.holes)),
            phy_offset=phy_offset,
            expected="a segment",
            actual="no file",
            message="a copy of a running broker: queues and log differ in time"
            if live.holes
            else f"queue entries lead to {at.text} of this segment",
            next=Advice(Step.SEEK_LOG_END) if phy_offset >= log.end and not live.holes else None,
            count=at.count,
        )


@dataclass(frozen=True)
class _Lost:
    """Messages that lay at physical offsets [start, end) of a segment, as entries of these queues say.

    number: the queue offset of a single one.
    exact: whether there are no more than `count`.
    """

    segment: SegmentSummary
    start: int
    end: int
    severity: str
    kind: int
    keys: frozenset[QueueKey]
    bytes: int
    number: int | None
    count: int = 1
    exact: bool = True

    def finding(self) -> Finding:
        """Return the finding on them."""
        topic, queue_id = next(iter(self.keys)) if len(self.keys) == 1 else (None, None)
        known = f"{'' if self.exact else 'at least '}{count_text(self.count, 'message')}"
        where = "a ConsumeQueue has" if len(self.keys) == 1 else f"{len(self.keys)} ConsumeQueues have"
        return Finding(
            Code.MESSAGE_LOST,
            self.segment.path,
            self.start - self.segment.base_offset,
            self.end - self.segment.base_offset,
            self.severity,
            self.start,
            topic,
            queue_id,
            self.number,
            f"{known} ({self.bytes:,} bytes) that {where}",
            "zeros" if self.kind == lm.UNWRITTEN else "damaged bytes",
            count=self.count,
        )


def _folded_lost(lost: list[_Lost]) -> Iterator[_Lost]:
    """Yield each message, but many side by side as one, as in a page of zeros."""
    lost.sort(key=lambda m: (m.segment.base_offset, m.segment.path, m.start))
    groups: list[list[_Lost]] = []
    for message in lost:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and (last.segment.path, last.severity, last.kind) == (message.segment.path, message.severity, message.kind)
            and message.start <= last.end
        ):
            groups[-1].append(message)
        else:
            groups.append([message])
    for group in groups:
        if len(group) <= MAX_LOST_SIDE_BY_SIDE:
            yield from group
            continue
        keys, end = frozenset[QueueKey]().union(*(one.keys for one in group)), max(one.end for one in group)
        yield replace(group[0], end=end, keys=keys, bytes=sum(one.bytes for one in group), number=None, count=len(group))
