"""Findings of the comparison about one copy. A copy that only ends earlier, or begins later, has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas.finding_codes import Code
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.base.wording import count_text
from store_io.replicas.compared_copies import ComparedCopies
from store_io.replicas.replica_parts import GAPS, ReplicaRange, State, state_name


class ReplicaFindings:
    """Makes the findings of all copies. To be made before any of them is added to an audit."""

    def __init__(self, compared: ComparedCopies):
        self.compared, self.copies = compared, compared.copies
        self._contradicted = [{f.phy_offset for f in c.audit.findings if f.code == Code.MESSAGE_DISPUTED} for c in self.copies]

    def of(self, number: int) -> list[Finding]:
        """The findings of one copy."""
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
