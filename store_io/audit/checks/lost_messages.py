"""Messages that a ConsumeQueue entry knows and the CommitLog lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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
    results: Iterable[LeftoverResult], segments: Sequence[SegmentSummary], log: lm.LogMap, live: LiveCopy, rules: BrokerRules
) -> list[Finding]:
    """Return messages that an entry knows and the CommitLog lacks: in damaged bytes, in zeros, in missing or never copied
    segments."""
    by_name = {name_of(s.path): s for s in segments}
    damaged: dict[str, set[tuple[int, int]]] = {}  # of segments that were asked for
    beyond: dict[str, set[int]] = defaultdict(set)  # by segment after the last one, the messages to which entries lead
    reported: set[int] = set()
    lost: list[_LostMessage] = []

    @cache
    def holding(phy: int) -> SegmentSummary | None:
        return next((s for s in segments if s.base_offset <= phy < s.base_offset + s.size), None)

    for result in results:
        for number, phy, size, kind in result.lost:
            if kind == lm.MISSING:
                continue  # the gap between the segments' names has said so
            if kind == lm.BEYOND:
                beyond[log.segment_name(phy)].add(phy)
                continue
            if live.later and live.proven and phy >= log.data_end:
                continue  # the finding on the whole copy counts all of these
            segment = by_name.get(f"{phy - phy % rules.segment_bytes:020d}") or holding(phy)
            if segment is None or phy in reported:
                continue
            reported.add(phy)
            start = phy - segment.base_offset
            if segment.path not in damaged:
                damaged[segment.path] = {(e.start, e.end) for e in segment.extents if e.kind == EXTENT_DAMAGED}
            header = framing_of(rules, segment.path).header_bytes
            if {(start, start + size), (start - header, start + size)} & damaged[segment.path]:
                continue  # the scan has found this very message damaged
            severity = severity_in(Code.MESSAGE_LOST, Case.LIVE_COPY, bool(live.holes) and phy >= log.data_end)
            lost.append(_LostMessage(segment, start, start + size, severity, kind, result.key, number, size))
    gone = {name: len(messages) for name, messages in sorted(beyond.items()) if all(s.path != name for s in segments)}
    return [*_folded_lost(lost), *live.findings(log), *_segments_gone(gone, log, live)]


def _segments_gone(counts: Mapping[str, int], log: lm.LogMap, live: LiveCopy) -> Iterator[Finding]:
    """Yield segments after the last one. counts: the messages of each to which entries lead."""
    for name, count in counts.items():
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
            else f"queue entries lead to {count_text(count, 'message')} of this segment",
            next=Advice(Step.SEEK_LOG_END) if phy_offset >= log.end and not live.holes else None,
            count=count,
        )


@dataclass(frozen=True)
class _LostMessage:
    """Bytes [start, end) of a segment in which a message lay, as an entry of this queue says."""

    segment: SegmentSummary
    start: int
    end: int
    severity: str
    kind: int
    key: QueueKey
    number: int
    size: int


def _folded_lost(lost: list[_LostMessage]) -> list[Finding]:
    """Return a finding per message, but one for many side by side, as in a page of zeros."""
    lost.sort(key=lambda m: (m.segment.base_offset, m.segment.path, m.start))
    groups: list[list[_LostMessage]] = []
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
    found = []
    for group in groups:
        for part in [group] if len(group) > MAX_LOST_SIDE_BY_SIDE else [[message] for message in group]:
            first, keys = part[0], {message.key for message in part}
            key = first.key if len(keys) == 1 else (None, None)
            sizes = sum(message.size for message in part)
            known = count_text(len(part), "message")
            where = "a ConsumeQueue has" if len(keys) == 1 else f"{len(keys)} ConsumeQueues have"
            found.append(
                Finding(
                    Code.MESSAGE_LOST,
                    first.segment.path,
                    first.start,
                    max(message.end for message in part),
                    first.severity,
                    first.segment.base_offset + first.start,
                    key[0],
                    key[1],
                    first.number if len(part) == 1 else None,
                    f"{known} ({sizes:,} bytes) that {where}",
                    "zeros" if first.kind == lm.UNWRITTEN else "damaged bytes",
                    count=len(part),
                )
            )
    return found
