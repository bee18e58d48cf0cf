"""The result of one group as a row of replicas.json: its copies, their pairs, what each lacks, and the best one to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from schemas.finding_codes import Code
from schemas.rows import LOSS, QueueKey, Row
from store_io.base.wording import count_text
from store_io.replicas.compared_copies import ComparedCopies
from store_io.replicas.ledger_group import ledger_of, quorum_sentence
from store_io.replicas.rejoin import rejoin_rows
from store_io.replicas.replica_parts import GAPS, LACKING, QueueTotal, ReplicaRange, State, state_name

MAX_RANGES = 1000  # shown of what one copy has and another lacks


class _First(NamedTuple):
    """The first difference of two copies. holder: the copy whose piece it is; away: the other."""

    phy_offset: int
    holder: int
    away: int
    piece: ReplicaRange


def group_row(name: str, compared: ComparedCopies, problems: list[str]) -> Row:
    """All that is said of the group."""
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
    """The copy whose start loses least, and why, in a sentence."""
    able = [row for row in copies if row["loses"] is not None]
    if not able:
        return None, "No copy is known to start: repair one first."
    damage = {c.name: sum(f.severity == LOSS for f in c.audit.findings) for c in compared.copies}
    ranked = sorted(able, key=lambda row: (row["loses"], damage[row["store"]], -row["end"] if row["end"] else 0))
    best = ranked[0]
    reasons = [f"{row['store']} would lose {count_text(row['loses'], 'message')}" for row in ranked]
    reasons += [f"{row['store']} is not known to start" for row in copies if row["loses"] is None]
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
