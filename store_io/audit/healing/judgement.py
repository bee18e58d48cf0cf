"""Decides which found changes are made: one alone fits, nothing contradicts it, something proves it, the risk is low."""

from __future__ import annotations

import math
from dataclasses import replace

from schemas.layouts.commitlog_layout import FRAME_BYTES
from store_io.audit.healing.changes import Candidate, Found, Healing
from store_io.audit.healing.heal_task import HealTask
from store_io.audit.healing.witnesses import LogOrder, Says
from store_io.base.wording import count_text

_IN_ORDER = "the messages beside it in its queue have the queue offsets next to its own"
_OUT_OF_ORDER = "the messages beside it contradict its queue offset or its store time"
_LEAST_SHOWN = 1e-9


def judged(task: HealTask, found: Found, order: LogOrder, most_risk: float) -> Healing:
    """Decide on one record.

    order: by all segments that were read.
    """
    place = found.place
    base, end = task.base_offset, place.end
    if not found.candidates:
        return Healing(task.path, place.start, end, base + place.start, why_not=found.why)
    candidates = [_with_order(candidate, order, base) for candidate in found.candidates]
    likely = [c for c in candidates if not c.against] or candidates
    best = min(likely, key=lambda c: c.risk)
    others = tuple(c.change for c in likely if c is not best)
    message = best.message
    return Healing(
        task.path,
        best.start,
        best.start + (FRAME_BYTES if place.filler else best.size),
        base + best.start if message is None else base + message.position,
        best.change,
        best.risk,
        _reason(best),
        _why_not(best, len(others), most_risk),
        None if message is None else message.topic,
        None if message is None else message.queue_id,
        None if message is None else message.queue_offset,
        others,
    )


def _with_order(candidate: Candidate, order: LogOrder, base: int) -> Candidate:
    """Return the candidate with what the messages beside it say."""
    message = candidate.message
    says = order.says(message, base + message.position) if message is not None else Says.NOTHING
    if says is Says.NO:
        return replace(candidate, against=(*candidate.against, _OUT_OF_ORDER))
    if says is Says.NOTHING:
        return candidate
    return replace(candidate, agrees=(*candidate.agrees, _IN_ORDER), bits=candidate.bits + candidate.by_order, located=True)


def _why_not(candidate: Candidate, others: int, most_risk: float) -> str:
    if others:
        return f"{count_text(others + 1, 'single change')} would make it whole, and which is right is not known"
    if candidate.against:
        return "; ".join(candidate.against)
    if not candidate.whole and not candidate.located:
        return "neither a ConsumeQueue entry nor a neighbour in its queue shows that the rest of the record is right"
    if candidate.risk >= most_risk:
        return f"the risk, {risk_text(candidate.risk)}, is not below {risk_text(most_risk)}"
    return ""


def _reason(candidate: Candidate) -> str:
    change = candidate.change
    if candidate.message is None:
        return "; ".join(candidate.agrees)
    first = "every check accepts the record with it" if not candidate.proven else _by_checksum(change.field)
    return "; ".join((first, *candidate.agrees))


def _by_checksum(field: str) -> str:
    what = "body" if field == "BODY" else "record"
    return f"the {what}'s checksum fits with it, and every other check"


def risk_text(risk: float) -> str:
    """Return a risk for people: one in so many, with one digit that counts."""
    if risk < _LEAST_SHOWN:
        return f"below 1 in {1 / _LEAST_SHOWN:,.0f}"
    number = 1 / risk
    unit = 10 ** int(math.log10(number))
    return f"1 in {round(number / unit) * unit:,}"
