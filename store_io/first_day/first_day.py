"""Puts together what a broker does by itself after a start at a named moment."""

from __future__ import annotations

from dataclasses import replace

from schemas.first_day import FirstDay, StartMoment
from store_io.first_day.registration import registers
from store_io.first_day.transactions import transactions
from store_io.model.evidence import Evidence

_HOUR_MS = 3_600_000


def first_day(evidence: Evidence, moment: StartMoment) -> FirstDay | None:
    """Return what the broker does by itself after this start. None: it is after a last message that is not known."""
    if moment.after_stop:
        last = _last_store_time(evidence)
        if last is None:
            return None
        moment = replace(moment, at_ms=last + _HOUR_MS)
    return FirstDay(moment, transactions=transactions(evidence, moment), registers=registers(evidence))


def _last_store_time(evidence: Evidence) -> int | None:
    """Return the store time of the log's last message."""
    found = {s.base_offset: s.last_store_time for s in evidence.segments if s.last_store_time}
    for file in evidence.unread:
        known = evidence.earlier.reused_segment(file.path)
        if known is not None and known.row.get("messages"):
            found[file.start] = known.row["last_store_time_ms"]
    return found[max(found)] if found else None
