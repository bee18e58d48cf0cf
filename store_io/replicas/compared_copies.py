"""The copies of one group and what the comparison found: its findings about each copy, and facts for its row of replicas.json.

A copy that only ends earlier, or begins later, has no finding.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from schemas.finding_codes import Code
from schemas.rows import LOSS, QueueKey, SegmentSummary
from store_io.model.log_map import DAMAGED, FILLER, LogMap, log_map
from store_io.outcome.safety import AT_ODDS
from store_io.replicas.replica_parts import LACKING, QueueTotal, ReplicaPart, ReplicaRange, State

if TYPE_CHECKING:
    from store_io.audit.audit_store import StoreAudit
from typing import Any

from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.wording import count_text
from store_io.replicas.replica_parts import GAPS, state_name


@dataclass
class Copy:
    """One copy of the group: what its audit could read of it."""

    audit: StoreAudit
    segments: list[SegmentSummary]  # readable ones, ascending, none over another
    unreadable: tuple[tuple[int, int], ...]
    log: LogMap

    @property
    def name(self) -> str:
        return self.audit.request.name

    @property
    def starts_as_it_is(self) -> bool | None:
        """Say whether the copy may be started: its release starts, and no setting keeps the broker from its messages.

        None if that is not known.
        """
        prediction = self.audit.prediction
        if prediction is None or self.audit.gaps.faults:
            return None
        return prediction.starts and not any(f.code in AT_ODDS and f.weight == LOSS for f in self.audit.findings)

    @property
    def own_loss(self) -> int:
        """Return valid messages of this copy that consumers would not get after a start."""
        loss = self.audit.loss
        return loss.messages if loss is not None and self.starts_as_it_is else 0


def copy_of(audit: StoreAudit) -> Copy:
    """Return an audited store as a copy of its group."""
    readable: list[SegmentSummary] = []
    unreadable = []
    for segment in sorted(audit.segments, key=lambda s: (s.base_offset, s.path)):
        if segment.problem:
            unreadable.append((segment.base_offset, segment.base_offset + segment.size))
        elif segment.size and (not readable or readable[-1].base_offset + readable[-1].size <= segment.base_offset):
            readable.append(segment)
    return Copy(audit, readable, tuple(unreadable), _with_bridges(log_map(readable, audit.rules.segment_bytes), readable))


def _with_bridges(log: LogMap, segments: Sequence[SegmentSummary]) -> LogMap:
    """Mark what a repair has bridged as damage: this copy lacks the messages that another one holds in its place."""
    found = [
        (f.phy_offset or 0, s.base_offset + (f.end or 0))
        for s in segments
        for f in s.findings
        if f.code == Code.COMMITLOG_BRIDGED
    ]
    if not found:
        return log
    lows, highs = np.array(found, np.int64).T
    starts = np.concatenate([log.starts, highs, lows])  # of equal ones the last decides: a bridge may follow another
    kinds = np.concatenate([log.kinds, log.kind_at(highs), np.full(len(lows), DAMAGED, np.int8)])
    order = np.argsort(starts, kind="stable")
    return replace(log, starts=starts[order], kinds=kinds[order])


class ComparedCopies:
    """Copies, and of each segment what was found. Copies are named by their numbers here."""

    def __init__(self, copies: Sequence[Copy], parts: Sequence[ReplicaPart]):
        self.copies, self.parts = copies, sorted(parts, key=lambda part: (part.copy, part.base_offset))
        self.numbers = range(len(copies))
        self.pieces = [self._merged(number) for number in self.numbers]

    def _merged(self, number: int) -> list[ReplicaRange]:
        """Return a copy's pieces in order; those that only a segment's end parts are one."""
        merged: list[ReplicaRange] = []
        log = self.copies[number].log
        for piece in (piece for part in self.parts if part.copy == number for piece in part.pieces):
            last = merged[-1] if merged else None
            if last is not None and last.is_like(piece):
                filler = log.kind_at(np.array([last.end]))[0] == FILLER and log.range_end(last.end) == piece.start
                if filler or last.end == piece.start:
                    last.extend(piece)
                    continue
            merged.append(piece)
        return merged

    def others(self, number: int) -> list[int]:
        """Return all copies but this one."""
        return [other for other in self.numbers if other != number]

    def totals(self, holder: int) -> Iterator[tuple[tuple[int, ...], QueueKey, QueueTotal]]:
        """Yield (states, queue, messages) of what one copy holds and others may not."""
        for part in self.parts:
            if part.copy == holder:
                for (states, key), total in part.totals.items():
                    yield states, key, total

    def counted_before(self, number: int, holder: int, states: Sequence[int]) -> bool:
        """Say whether a copy before `holder`, other than `number`, holds the same messages, so that they are counted already."""
        return any(states[other] == State.EQUAL for other in range(holder) if other != number)

    def lacks(self, number: int) -> int:
        """Return messages that other copies hold and this one does not, each counted once however many hold it."""
        return sum(
            total.messages
            for holder in self.others(number)
            for states, _, total in self.totals(holder)
            if states[number] in LACKING and not self.counted_before(number, holder, states)
        )

    def most(self, number: int, wanted: State) -> int:
        """Return the most messages of one other copy for which this copy has that state."""
        counts = (
            sum(total.messages for states, _, total in self.totals(holder) if states[number] == wanted)
            for holder in self.others(number)
        )
        return max(counts, default=0)

    def piece_at(self, number: int, start: int) -> ReplicaRange | None:
        """Return a copy's piece that holds this physical offset."""
        pieces = self.pieces[number]
        place = bisect_right(pieces, start, key=lambda piece: piece.start) - 1
        return pieces[place] if place >= 0 and start < pieces[place].end else None

    def place(self, number: int, start: int, end: int) -> tuple[str, int, int]:
        """Return (file, start, end) of the first file's part of a physical range. The copy has that file, or would have it."""
        copy = self.copies[number]
        for segment in copy.segments:
            low, high = segment.base_offset, segment.base_offset + segment.size
            if low <= start < high:
                return segment.path, start - low, min(end, high) - low
        size = copy.log.segment_bytes
        base = start - start % size
        following = min((s.base_offset for s in copy.segments if s.base_offset > start), default=end)
        return copy.log.segment_name(start), start - base, min(end, base + size, following) - base


class ReplicaFindings:
    """Makes the findings of all copies. To be made before any of them is added to an audit."""

    def __init__(self, compared: ComparedCopies):
        self.compared, self.copies = compared, compared.copies
        self._contradicted = [{f.phy_offset for f in c.audit.findings if f.code == Code.MESSAGE_DISPUTED} for c in self.copies]

    def of(self, number: int) -> list[Finding]:
        """Return the findings of one copy."""
        compared = self.compared
        found = [
            self._held_elsewhere(number, holder, piece)
            for holder in compared.others(number)
            for piece in compared.pieces[holder]
            if piece.states[number] in GAPS and not compared.counted_before(number, holder, piece.states)
        ]
        for piece in compared.pieces[number]:
            if State.DISPUTED in piece.states:
                found += self._disputed(number, piece)
            if State.OTHER in piece.states:
                found.append(self._diverged(number, piece))
        return found

    def _finding(self, code: Code, number: int, piece: ReplicaRange, span: tuple[int, int], **more: Any) -> Finding:
        """Return a finding on a stretch of the compared copy.

        span: of physical offsets.
        """
        path, start, end = self.compared.place(number, *span)
        return Finding(
            code, path, start, end, phy_offset=piece.start, topic=piece.topic, queue_id=piece.queue_id,
            queue_offset=piece.queue_offset, count=piece.messages, **more,
        )  # fmt: skip

    def _names(self, piece: ReplicaRange, state: State) -> str:
        return ", ".join(copy.name for copy, found in zip(self.copies, piece.states, strict=True) if found == state)

    def _held_elsewhere(self, number: int, holder: int, piece: ReplicaRange) -> Finding:
        name = self.copies[holder].name
        return self._finding(
            Code.REPLICA_HOLDS, number, piece, (piece.start, piece.end),
            expected=f"{count_text(piece.messages, 'message')}, as in {name}", actual=state_name(piece.states[number]),
            message=f"{name} holds {count_text(piece.messages, 'valid message')} from physical offset {piece.start:,} to"
            f" {piece.end:,}; this copy has none there",
        )  # fmt: skip

    def _disputed(self, number: int, piece: ReplicaRange) -> Iterator[Finding]:
        """Yield the finding on a message in two forms.

        The damaged form is the one with another fault, else the one that fewer copies have.
        """
        against = [other for other, state in enumerate(piece.states) if state == State.DISPUTED]
        theirs = {other: self.compared.piece_at(other, piece.start) for other in against}
        others_doubtful = [self._doubtful(other, piece.start, found) for other, found in theirs.items()]
        mine = piece.states.count(State.EQUAL)
        most = max((found.states.count(State.EQUAL) for found in theirs.values() if found is not None), default=0)
        doubtful = self._doubtful(number, piece.start, piece)
        why = ""
        if doubtful and not all(others_doubtful):
            why = doubtful
        elif all(others_doubtful) and not doubtful or mine > most and not doubtful:
            return  # the others are the damaged ones: they have the finding
        elif most > mine:
            why = "most copies have it"
        difference = piece.differences.get(against[0])
        start, end = (difference.start, difference.end) if difference else (piece.start, piece.end)
        if piece.messages > 1:
            start, end = piece.start, piece.end
        field = difference.field if difference else "content"
        text = f"{self._names(piece, State.DISPUTED)} holds this message with another {field}"
        yield self._finding(
            Code.REPLICA_DISPUTES, number, piece, (start, end),
            severity=severity_in(Code.REPLICA_DISPUTES, Case.AGAINST_THIS_COPY, bool(why)),
            message=f"{text}, {why}" if why else f"{text}: which copy is right is not known",
        )  # fmt: skip

    def _doubtful(self, number: int, start: int, piece: ReplicaRange | None) -> str:
        """Return in words a further fault of a message that a copy holds, or nothing."""
        if piece is not None and piece.malformed:
            return "and the properties here do not have the form that a broker writes"
        if start in self._contradicted[number]:
            return "and its queue or index entries here contradict it"
        return ""

    def _diverged(self, number: int, piece: ReplicaRange) -> Finding:
        what = f"{count_text(piece.messages, 'message')} that {self._names(piece, State.OTHER)} does not hold"
        span = (piece.start, piece.end)
        return self._finding(Code.REPLICA_DIVERGED, number, piece, span, message=f"{what}; it holds other valid messages there")
