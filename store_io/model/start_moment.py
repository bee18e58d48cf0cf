"""The moment of the start that is meant, once the copy was read."""

from __future__ import annotations

from dataclasses import replace

from schemas.first_day import StartMoment
from store_io.base.times import LAST_TIME_MS
from store_io.model.evidence import Evidence

_HOUR_MS = 3_600_000


def start_moment(evidence: Evidence, asked: StartMoment | None) -> StartMoment | None:
    """Return the start with its moment. None: none is asked for, or the last message has no time that a calendar holds."""
    if asked is None or not asked.after_stop:
        return asked
    last = _last_store_time(evidence)
    known = last is not None and 0 <= last <= LAST_TIME_MS - _HOUR_MS  # no checksum holds a store time: it may be damaged
    return replace(asked, at_ms=last + _HOUR_MS) if known and last is not None else None


def _last_store_time(evidence: Evidence) -> int | None:
    """Return the store time of the log's last message."""
    found = {s.base_offset: s.last_store_time for s in evidence.segments if s.last_store_time}
    for file in evidence.unread:
        known = evidence.earlier.reused_segment(file.path)
        if known is not None and known.row.get("messages"):
            found[file.start] = known.row["last_store_time_ms"]
    return found[max(found)] if found else None
