"""Says all of one group: its copies, their pairs, what each lacks, the best to start.

For a DLedger group: how far each log reaches by terms and indexes, and which copy proves a quorum (dledger.md 4, 5). For two
replicas in controller mode: what each would do, and lose, if it joined the other as its slave. The slave cuts its log at the
consistent point, which follows from the epochs of both alone, and copies the rest (controller.md 5).
Source: DLedgerLeaderElector.handleVote (a candidate whose last entry has a lower term, or the same term and a lower index, is
rejected), DLedgerEntryPusher.QuorumAckChecker; AutoSwitchHAClient.doTruncate, DefaultMessageStore.truncateFiles, isOffsetAligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import NamedTuple

from schemas.finding_codes import Code
from schemas.replicas import (
    FirstDifference,
    Group,
    GroupCopy,
    Lacked,
    LackedQueue,
    LackedRange,
    LedgerEnd,
    Pair,
    Rejoin,
    Rejoining,
    Relation,
)
from schemas.rows import LOSS, MappedFile, QueueKey
from store_io.audit.audit_store import StoreAudit
from store_io.base.wording import count_text
from store_io.broker.epochs import consistent_point
from store_io.broker.prediction import Prediction
from store_io.kinds.controller.epoch_starts import EpochPlace, EpochStartsTask, look_up
from store_io.replicas.compared_copies import ComparedCopies, Copy
from store_io.replicas.replica_parts import GAPS, LACKING, QueueTotal, ReplicaRange, State, state_name

COPIED = "A damaged node's log is not repaired: empty its store, and let it copy the log from the others."
MAX_RANGES = 1000  # shown of what one copy has and another lacks


def ledger_of(audit: StoreAudit) -> LedgerEnd | None:
    """Return where the copy's DLedger log ends; None without one."""
    ledger = audit.prediction.ledger if audit.prediction is not None else None
    return LedgerEnd(ledger.end_index, ledger.end_term, ledger.committed_index) if ledger is not None else None


def quorum_sentence(copies: Sequence[GroupCopy]) -> str:
    """Say which copies could be elected, and up to which place a quorum is proven. "" if fewer than two have a DLedger log."""
    known = [(copy.store, copy.dledger) for copy in copies if copy.dledger is not None]
    if len(known) < 2:
        return ""
    newest = max((log.end_term, log.end_index) for _, log in known)
    able = " and ".join(store for store, log in known if (log.end_term, log.end_index) == newest)
    sentence = f"By their last entries {able} would win an election: index {newest[1]:,} in term {newest[0]:,}"
    store, proof = max(known, key=lambda each: each[1].committed_index)
    if proof.committed_index < 0:
        return f"{sentence}; no copy proves a quorum. {COPIED}"
    return f"{sentence}; {store} proves a quorum for entries up to {proof.committed_index:,}. {COPIED}"


def rejoins(compared: ComparedCopies, left: int, right: int, same_until: int | None) -> tuple[Rejoin, ...] | None:
    """Return what the first copy does as slave of the second, and the other way round.

    None if one of the two is not known, or a start of one of the copies never ends.
    same_until: the physical offset up to which both hold the same messages; None if that is not known.
    """
    copies = compared.copies[left], compared.copies[right]
    controllers = [copy.audit.prediction.controller if copy.audit.prediction is not None else None for copy in copies]
    if any(c is None or c.elected is None for c in controllers) or any(copy.unreadable for copy in copies):
        return None
    return _rejoin(compared, left, right, same_until), _rejoin(compared, right, left, same_until)


def _rejoin(compared: ComparedCopies, slave: int, master: int, same_until: int | None) -> Rejoin:
    one, other = compared.copies[slave], compared.copies[master]
    ours, theirs = one.audit.prediction, other.audit.prediction
    assert ours is not None and theirs is not None and ours.controller is not None and theirs.controller is not None
    assert theirs.controller.elected is not None
    point = consistent_point(ours.controller.epochs, ours.truncate_at, theirs.controller.elected.kept, theirs.end)
    outcome = _outcome(one, ours, point)
    pieces = [
        piece
        for piece in compared.pieces[slave]
        if outcome == Rejoining.CUTS and point is not None and piece.end > point and piece.states[master] in LACKING
    ]
    return Rejoin(
        one.name,
        other.name,
        point,
        outcome,
        sum(piece.messages for piece in pieces),
        sum(piece.bytes for piece in pieces),
        min((piece.first_store_time for piece in pieces), default=None),
        max((piece.last_store_time for piece in pieces), default=None),
        point is not None and same_until is not None and same_until < min(point, ours.truncate_at, theirs.end),
    )


def _outcome(copy: Copy, prediction: Prediction, point: int | None) -> Rejoining:
    assert prediction.controller is not None
    if not prediction.controller.epochs:
        return Rejoining.KEEPS if prediction.truncate_at > 0 else Rejoining.COPIES
    if point is None:
        return Rejoining.REFUSED
    if point >= prediction.truncate_at:
        return Rejoining.COPIES
    return Rejoining.CUTS if _between_records(copy, point) else Rejoining.REFUSED


def _between_records(copy: Copy, point: int) -> bool:
    """Say whether a record or a filler that can be read begins there in this copy. A copy without a file there counts, too."""
    segment = next((s for s in copy.segments if s.base_offset <= point < s.base_offset + s.size), None)
    if segment is None:
        return True
    place = EpochPlace(point, MappedFile(segment.path, segment.base_offset, segment.size))
    request = copy.audit.request
    return not look_up(EpochStartsTask(request.store, request.location, copy.audit.rules, (place,))).no_record


class _First(NamedTuple):
    """The first difference of two copies. holder: the copy whose piece it is; away: the other."""

    phy_offset: int
    holder: int
    away: int
    piece: ReplicaRange


def group_of(name: str, compared: ComparedCopies, problems: Sequence[str]) -> Group:
    """Return all that is said of the group, but for its tables of config/."""
    numbers = compared.numbers
    copies = [_copy(compared, number) for number in numbers]
    best, why = _best(compared, copies)
    quorum = quorum_sentence(copies)
    return Group(
        name,
        best,
        f"{why} {quorum}" if quorum else why,
        tuple(copies),
        tuple(_pair(compared, left, right) for left in numbers for right in numbers if left < right),
        tuple(lacked for number in numbers for lacked in _lacked(compared, number)),
        tuple(problems),
    )


def _copy(compared: ComparedCopies, number: int) -> GroupCopy:
    copy = compared.copies[number]
    lacks = compared.lacks(number)
    return GroupCopy(
        store=copy.name,
        location=copy.audit.request.location.root,
        complete=not copy.audit.gaps.faults,
        starts=copy.starts_as_it_is,
        start=copy.log.start if copy.segments else None,
        end=copy.log.data_end if copy.segments else None,
        messages=sum(e.message_count for s in copy.segments for e in s.extents),
        lacks=lacks,
        cut=copy.own_loss if copy.starts_as_it_is else None,
        loses=lacks + copy.own_loss if copy.starts_as_it_is else None,
        before_its_start=compared.most(number, State.EXPIRED),
        disputed=compared.most(number, State.DISPUTED),
        undecided=sum(f.count for f in copy.audit.findings if f.code == Code.REPLICA_DISPUTES and f.severity != LOSS),
        not_compared=compared.most(number, State.UNKNOWN),
        dledger=ledger_of(copy.audit),
    )


def _best(compared: ComparedCopies, copies: Sequence[GroupCopy]) -> tuple[str | None, str]:
    """Return the copy whose start loses least, and why, in a sentence."""
    able = [(copy.loses, copy) for copy in copies if copy.loses is not None]
    if not able:
        return None, "No copy is known to start: repair one first."
    damage = {c.name: sum(f.severity == LOSS for f in c.audit.findings) for c in compared.copies}
    ranked = sorted(able, key=lambda each: (each[0], damage[each[1].store], -each[1].end if each[1].end else 0))
    reasons = [f"{copy.store} would lose {count_text(loses, 'message')}" for loses, copy in ranked]
    reasons += [
        f"{copy.store} is {'not known to start' if copy.starts is None else 'not to be started as it is'}"
        for copy in copies
        if copy.loses is None
    ]
    if len(ranked) > 1 and ranked[1][0] == ranked[0][0]:
        reasons.append("among equal copies the one with less damage comes first, then the one with the longer log")
    return ranked[0][1].store, "; ".join(reasons) + "."


def _pair(compared: ComparedCopies, left: int, right: int) -> Pair:
    one, other = compared.copies[left], compared.copies[right]
    low, high = max(one.log.start, other.log.start), min(one.log.data_end, other.log.data_end)
    relation = _relation(compared, left, right)
    first = min(_differences(compared, left, right), key=lambda found: found.phy_offset, default=None)
    same_until = None if relation == Relation.UNKNOWN or low >= high else first.phy_offset if first else high
    return Pair(
        one.name,
        other.name,
        relation,
        low if low < high else None,
        high if low < high else None,
        same_until,
        _first_difference(compared, first) if first is not None else None,
        rejoins(compared, left, right, same_until),
    )


def _relation(compared: ComparedCopies, left: int, right: int) -> Relation:
    one, other = compared.copies[left], compared.copies[right]
    seen = {states[right] for states, _, _ in compared.totals(left)} | {states[left] for states, _, _ in compared.totals(right)}
    empty = not one.segments or not other.segments
    incomplete = one.audit.gaps.faults or other.audit.gaps.faults
    if State.UNKNOWN in seen or one.unreadable or other.unreadable or empty and incomplete:
        return Relation.UNKNOWN
    if empty:
        return Relation.APART if one.segments or other.segments else Relation.EQUAL
    if State.OTHER in seen:
        return Relation.DIVERGED
    if State.DISPUTED in seen:
        return Relation.DISPUTED
    if seen & set(GAPS):
        return Relation.DAMAGED
    one_end, other_end = one.log.data_end, other.log.data_end
    if min(one_end, other_end) <= max(one.log.start, other.log.start) and one_end != other_end:
        return Relation.APART
    return Relation.BEHIND if State.BEYOND in seen else Relation.EQUAL


def _differences(compared: ComparedCopies, left: int, right: int) -> Iterator[_First]:
    for holder, away in ((left, right), (right, left)):
        for piece in compared.pieces[holder]:
            if piece.states[away] not in (State.EQUAL, State.EXPIRED, State.BEYOND, State.UNKNOWN):
                difference = piece.differences.get(away)
                yield _First(difference.start if difference is not None else piece.start, holder, away, piece)


def _first_difference(compared: ComparedCopies, first: _First) -> FirstDifference:
    piece, difference = first.piece, first.piece.differences.get(first.away)
    return FirstDifference(
        first.phy_offset,
        piece.start,
        piece.size,
        difference.field if difference is not None else None,
        piece.topic,
        piece.queue_id,
        piece.queue_offset,
        compared.copies[first.holder].name,
        compared.copies[first.away].name,
        state_name(piece.states[first.away]),
    )


def _lacked(compared: ComparedCopies, number: int) -> Iterator[Lacked]:
    """Yield for each other copy the messages that this copy lacks or has otherwise, by queue and as ranges."""
    for holder in compared.others(number):
        queues: dict[QueueKey, QueueTotal] = {}
        for states, key, total in compared.totals(holder):
            if states[number] in LACKING:
                queues.setdefault(key, QueueTotal()).add(total)
        pieces = [p for p in compared.pieces[holder] if p.states[number] in (*LACKING, State.DISPUTED)]
        if not queues and not pieces:
            continue
        dropped = sum(part.pieces_dropped for part in compared.parts if part.copy == holder)
        yield Lacked(
            compared.copies[number].name,
            compared.copies[holder].name,
            sum(total.messages for total in queues.values()),
            sum(total.bytes for total in queues.values()),
            tuple(LackedQueue(*key, *astuple(total)) for key, total in sorted(queues.items())),
            tuple(
                LackedRange(
                    p.start, p.end, state_name(p.states[number]), p.messages, p.bytes, p.first_store_time, p.last_store_time
                )
                for p in pieces[:MAX_RANGES]
            ),
            max(0, len(pieces) - MAX_RANGES) + dropped,
        )
