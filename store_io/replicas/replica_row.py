"""Makes a row of replicas.json from one group: its copies, their pairs, what each lacks, the best to start.

For a DLedger group: how far each log reaches by terms and indexes, and which copy proves a quorum (dledger.md 4, 5). For two
replicas in controller mode: what each would do, and lose, if it joined the other as its slave. The slave cuts its log at the
consistent point, which follows from the epochs of both alone, and copies the rest (controller.md 5).
Source: DLedgerLeaderElector.handleVote (a candidate whose last entry has a lower term, or the same term and a lower index, is
rejected), DLedgerEntryPusher.QuorumAckChecker; AutoSwitchHAClient.doTruncate, DefaultMessageStore.truncateFiles, isOffsetAligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from schemas.finding_codes import Code
from schemas.rows import LOSS, MappedFile, QueueKey, Row
from store_io.audit.audit_store import StoreAudit
from store_io.base.wording import count_text
from store_io.broker.epochs import consistent_point
from store_io.broker.prediction import Prediction
from store_io.kinds.controller.epoch_starts import EpochPlace, EpochStartsTask, look_up
from store_io.replicas.compared_copies import ComparedCopies, Copy
from store_io.replicas.replica_parts import GAPS, LACKING, QueueTotal, ReplicaRange, State, state_name

COPIED = "A damaged node's log is not repaired: empty its store, and let it copy the log from the others."
COPIES, CUTS, REFUSED, KEEPS = "copies", "cuts", "refused", "keeps_its_log"
MAX_RANGES = 1000  # shown of what one copy has and another lacks


def ledger_of(audit: StoreAudit) -> Row | None:
    """Return the copy's last entry and what its checkpoint calls committed, as a start reads them. None without a DLedger log."""
    ledger = audit.prediction.ledger if audit.prediction is not None else None
    return {name: ledger[name] for name in ("end_index", "end_term", "committed_index")} if ledger is not None else None


def quorum_sentence(copies: Sequence[Row]) -> str:
    """Say which copies could be elected, and up to which place a quorum is proven. "" if fewer than two have a DLedger log."""
    known = [row for row in copies if row["dledger"] is not None]
    if len(known) < 2:
        return ""

    def last(row: Row) -> tuple[int, int]:
        return row["dledger"]["end_term"], row["dledger"]["end_index"]

    newest = max(map(last, known))
    able = [row["store"] for row in known if last(row) == newest]
    sentence = f"By their last entries {' and '.join(able)} would win an election: index {newest[1]:,} in term {newest[0]:,}"
    proof = max(known, key=lambda row: row["dledger"]["committed_index"])
    committed = proof["dledger"]["committed_index"]
    if committed < 0:
        return f"{sentence}; no copy proves a quorum. {COPIED}"
    return f"{sentence}; {proof['store']} proves a quorum for entries up to {committed:,}. {COPIED}"


def rejoin_rows(compared: ComparedCopies, left: int, right: int, same_until: int | None) -> list[Row] | None:
    """Return two rows: the first copy as slave of the second, and the other way round.

    None if one of the two is not known, or a start of one of the copies never ends.
    same_until: the physical offset up to which both hold the same messages; None if that is not known.
    """
    copies = compared.copies[left], compared.copies[right]
    controllers = [copy.audit.prediction.controller if copy.audit.prediction is not None else None for copy in copies]
    if any(c is None or c.elected is None for c in controllers) or any(copy.unreadable for copy in copies):
        return None
    return [_row(compared, left, right, same_until), _row(compared, right, left, same_until)]


def _row(compared: ComparedCopies, slave: int, master: int, same_until: int | None) -> Row:
    one, other = compared.copies[slave], compared.copies[master]
    ours, theirs = one.audit.prediction, other.audit.prediction
    assert ours is not None and theirs is not None and ours.controller is not None and theirs.controller is not None
    assert theirs.controller.elected is not None
    point = consistent_point(ours.controller.epochs, ours.truncate_at, theirs.controller.elected.kept, theirs.end)
    outcome = _outcome(one, ours, point)
    pieces = [
        piece
        for piece in compared.pieces[slave]
        if outcome == CUTS and point is not None and piece.end > point and piece.states[master] in LACKING
    ]
    return {
        "slave": one.name,
        "master": other.name,
        "consistent_point": point,
        "outcome": outcome,
        "messages": sum(piece.messages for piece in pieces),
        "bytes": sum(piece.bytes for piece in pieces),
        "first_store_time": min((piece.first_store_time for piece in pieces), default=None),
        "last_store_time": max((piece.last_store_time for piece in pieces), default=None),
        "differs_before": point is not None and same_until is not None and same_until < min(point, ours.truncate_at, theirs.end),
    }


def _outcome(copy: Copy, prediction: Prediction, point: int | None) -> str:
    assert prediction.controller is not None
    if not prediction.controller.epochs:
        return KEEPS if prediction.truncate_at > 0 else COPIES
    if point is None:
        return REFUSED
    if point >= prediction.truncate_at:
        return COPIES
    return CUTS if _between_records(copy, point) else REFUSED


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


def group_row(name: str, compared: ComparedCopies, problems: list[str]) -> Row:
    """Return all that is said of the group."""
    copies = [_copy_row(compared, number) for number in compared.numbers]
    best, why = _best(compared, copies)
    quorum = quorum_sentence(copies)
    why = f"{why} {quorum}" if quorum else why
    return {
        "group": name,
        "best": best,
        "why": why,
        "copies": copies,
        "pairs": [_pair_row(compared, left, right) for left in compared.numbers for right in compared.numbers if left < right],
        "lacks": [row for number in compared.numbers for row in _lack_rows(compared, number)],
        "problems": problems,
    }


def _copy_row(compared: ComparedCopies, number: int) -> Row:
    copy = compared.copies[number]
    lacks = compared.lacks(number)
    return {
        "store": copy.name,
        "location": copy.audit.request.location.root,
        "complete": not copy.audit.gaps.faults,
        "starts": copy.starts_as_it_is,
        "start": copy.log.start if copy.segments else None,
        "end": copy.log.data_end if copy.segments else None,
        "messages": sum(e.message_count for s in copy.segments for e in s.extents),
        "lacks": lacks,
        "cut": copy.own_loss if copy.starts_as_it_is else None,
        "loses": lacks + copy.own_loss if copy.starts_as_it_is else None,
        "before_its_start": compared.most(number, State.EXPIRED),
        "disputed": compared.most(number, State.DISPUTED),
        "undecided": sum(f.count for f in copy.audit.findings if f.code == Code.REPLICA_DISPUTES and f.severity != LOSS),
        "not_compared": compared.most(number, State.UNKNOWN),
        "dledger": ledger_of(copy.audit),
    }


def _best(compared: ComparedCopies, copies: Sequence[Row]) -> tuple[str | None, str]:
    """Return the copy whose start loses least, and why, in a sentence."""
    able = [row for row in copies if row["loses"] is not None]
    if not able:
        return None, "No copy is known to start: repair one first."
    damage = {c.name: sum(f.severity == LOSS for f in c.audit.findings) for c in compared.copies}
    ranked = sorted(able, key=lambda row: (row["loses"], damage[row["store"]], -row["end"] if row["end"] else 0))
    best = ranked[0]
    reasons = [f"{row['store']} would lose {count_text(row['loses'], 'message')}" for row in ranked]
    reasons += [
        f"{row['store']} is {'not known to start' if row['starts'] is None else 'not to be started as it is'}"
        for row in copies
        if row["loses"] is None
    ]
    if len(ranked) > 1 and ranked[1]["loses"] == best["loses"]:
        reasons.append("among equal copies the one with less damage comes first, then the one with the longer log")
    return best["store"], "; ".join(reasons) + "."


def _pair_row(compared: ComparedCopies, left: int, right: int) -> Row:
    one, other = compared.copies[left], compared.copies[right]
    low, high = max(one.log.start, other.log.start), min(one.log.data_end, other.log.data_end)
    relation = _relation(compared, left, right)
    first = min(_differences(compared, left, right), key=lambda found: found.phy_offset, default=None)
    same_until = None if relation == "unknown" or low >= high else first.phy_offset if first else high
    return {
        "left": one.name,
        "right": other.name,
        "relation": relation,
        "common_start": low if low < high else None,
        "common_end": high if low < high else None,
        "same_until": same_until,
        "first_difference": _first_row(compared, first) if first is not None else None,
        "rejoin": rejoin_rows(compared, left, right, same_until),
    }


def _relation(compared: ComparedCopies, left: int, right: int) -> str:
    one, other = compared.copies[left], compared.copies[right]
    seen = {states[right] for states, _, _ in compared.totals(left)} | {states[left] for states, _, _ in compared.totals(right)}
    empty = not one.segments or not other.segments
    incomplete = one.audit.gaps.faults or other.audit.gaps.faults
    if State.UNKNOWN in seen or one.unreadable or other.unreadable or empty and incomplete:
        return "unknown"
    if empty:
        return "apart" if one.segments or other.segments else "equal"
    if State.OTHER in seen:
        return "diverged"
    if State.DISPUTED in seen:
        return "disputed"
    if seen & set(GAPS):
        return "damaged"
    one_end, other_end = one.log.data_end, other.log.data_end
    if min(one_end, other_end) <= max(one.log.start, other.log.start) and one_end != other_end:
        return "apart"
    return "behind" if State.BEYOND in seen else "equal"


def _differences(compared: ComparedCopies, left: int, right: int) -> Iterator[_First]:
    for holder, away in ((left, right), (right, left)):
        for piece in compared.pieces[holder]:
            if piece.states[away] not in (State.EQUAL, State.EXPIRED, State.BEYOND, State.UNKNOWN):
                difference = piece.differences.get(away)
                yield _First(difference.start if difference is not None else piece.start, holder, away, piece)


def _first_row(compared: ComparedCopies, first: _First) -> Row:
    piece = first.piece
    difference = piece.differences.get(first.away)
    return {
        "phy_offset": first.phy_offset,
        "message": piece.start,
        "size": piece.size,
        "field": difference.field if difference is not None else None,
        "topic": piece.topic,
        "queue_id": piece.queue_id,
        "queue_offset": piece.queue_offset,
        "holder": compared.copies[first.holder].name,
        "other": compared.copies[first.away].name,
        "other_has": state_name(piece.states[first.away]),
    }


def _lack_rows(compared: ComparedCopies, number: int) -> Iterator[Row]:
    """Yield a row per other copy: the messages that this copy lacks or has otherwise, by queue and as ranges."""
    for holder in compared.others(number):
        queues: dict[QueueKey, QueueTotal] = {}
        for states, key, total in compared.totals(holder):
            if states[number] in LACKING:
                queues.setdefault(key, QueueTotal()).add(total)
        pieces = [p for p in compared.pieces[holder] if p.states[number] in (*LACKING, State.DISPUTED)]
        if not queues and not pieces:
            continue
        dropped = sum(part.pieces_dropped for part in compared.parts if part.copy == holder)
        yield {
            "store": compared.copies[number].name,
            "holder": compared.copies[holder].name,
            "messages": sum(total.messages for total in queues.values()),
            "bytes": sum(total.bytes for total in queues.values()),
            "by_queue": [{"topic": key[0], "queue_id": key[1], **asdict(total)} for key, total in sorted(queues.items())],
            "ranges": [
                {
                    "start": p.start,
                    "end": p.end,
                    "other_has": state_name(p.states[number]),
                    "messages": p.messages,
                    "bytes": p.bytes,
                    "first_store_time": p.first_store_time,
                    "last_store_time": p.last_store_time,
                }
                for p in pieces[:MAX_RANGES]
            ],
            "ranges_dropped": max(0, len(pieces) - MAX_RANGES) + dropped,
        }
