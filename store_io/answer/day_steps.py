"""What to see to before a start, because of what the started broker does by itself in its first day."""

from __future__ import annotations

import math
from collections.abc import Iterator

from schemas.advice import Advice, Step
from schemas.first_day import TimersOfDay
from schemas.outcome import Outcome
from store_io.base.times import iso_time
from store_io.outcome.segments_read import segments_read

_HOUR_MS, _WEEK = 3_600_000, 7 * 24


def segments_that_go(outcome: Outcome) -> tuple[int, int]:
    """Return (segments that the broker deletes within minutes, further ones in the next hour of deleteWhen)."""
    kept = outcome.first_day.retention if outcome.first_day is not None else None
    return (len(kept.at_once), len(kept.in_delete_when)) if kept is not None else (0, 0)


def timers_passed_over(outcome: Outcome) -> int:
    """Return timer messages that a start at this moment never delivers, as their time is too long ago."""
    timers = outcome.first_day.timers if outcome.first_day is not None else None
    return timers.never if timers is not None else 0


def day_conditions(outcome: Outcome) -> Iterator[Advice]:
    """Yield what to see to before the start, what takes most first."""
    day = outcome.first_day
    if day is None:
        return
    at = iso_time(day.moment.at_ms) or ""
    if any(segments_that_go(outcome)):
        yield _keep_segments(outcome, at)
    if day.retention is not None and day.retention.unread:
        most = day.retention.unread[0]
        others = day.retention.unread_more or 0
        others += len(day.retention.unread) - 1
        yield Advice(Step.LET_GROUPS_READ, (most.group, most.topic, most.queue_id, most.messages, others))
    if day.timers is not None and (before := _timers_before(day.timers)) is not None:
        yield Advice(Step.START_BEFORE, (day.timers.never, at, before))
    if day.transactions is not None and day.transactions.moved_at_first_check:
        yield Advice(Step.DECIDE_HALF_MESSAGES, (day.transactions.moved_at_first_check,))
    if day.delays is not None and day.delays.stuck_levels:
        yield Advice(Step.LEVELS_STAND_STILL, (", ".join(map(str, day.delays.stuck_levels)),))


def _timers_before(timers: TimersOfDay) -> str | None:
    """Return the moment after which a start passes over timer messages, "" without one; None if that is at least a week away."""
    before = iso_time(timers.start_before_ms) if timers.start_before_ms is not None else None
    return before or "" if timers.never or timers.at_once and before else None


def _keep_segments(outcome: Outcome, at: str) -> Advice:
    """Return the step that keeps all segments: the hours of fileReservedTime, and whether the disk is why younger ones go."""
    day = outcome.first_day
    assert day is not None and day.retention is not None
    kept = day.retention
    going = {*kept.at_once, *kept.in_delete_when}
    dated = (segment for segment in segments_read(outcome.rows.segments) if segment.path in going and segment.modified_ns)
    oldest = max(0, day.moment.at_ms - min((segment.modified_ns // 1_000_000 for segment in dated), default=day.moment.at_ms))
    hours = math.ceil(oldest / _HOUR_MS) + _WEEK
    hours = hours if hours > kept.reserved_hours else 0
    numbers = len(kept.at_once), len(kept.in_delete_when), kept.messages or 0, kept.timers_lost or 0
    begins = iso_time(kept.next_hour_ms) or "" if kept.next_hour_ms is not None else ""
    when = kept.delete_when, begins, day.moment.timezone
    return Advice(Step.KEEP_SEGMENTS, (at, *numbers, *when, kept.reserved_hours, hours, int(kept.forced)))
