"""Timer messages after a start: what is delivered at once, what later, and what never is.

Source: TimerMessageStore.recover, dequeue (5.0.0 to 5.5.1); BrokerController.startProcessorByHa.
"""

from __future__ import annotations

from collections.abc import Collection

from schemas.first_day import StartMoment, TimersOfDay
from store_io.first_day.role import is_master, is_slave
from store_io.kinds.timers.due_timers import DueTimers
from store_io.kinds.timers.timer_kind import TIMERS, start_clock
from store_io.kinds.timers.timer_view import TIMER_QUEUE
from store_io.model.evidence import Evidence


def timers_of_day(evidence: Evidence, moment: StartMoment) -> TimersOfDay | None:
    """Return what a start makes of the timer messages that wait; None if the release knows none, or that is not known.

    A slave takes the time from which slots are read from its master. A broker that stays fenced, or whose service is off,
    delivers none, while slots grow too old.
    """
    if not evidence.copy.rules.knows_timers or is_slave(evidence.copy.rules):
        return None
    if evidence.copy[TIMERS].parts is None:
        return TimersOfDay() if _none_wait(evidence) else None
    due = _due(evidence, moment)
    if due is None:
        return None
    before = due.before
    if not is_master(evidence):
        return TimersOfDay(due.never, due.uncertain, 0, due.at_once + due.later, 0, before)
    return TimersOfDay(due.never, due.uncertain, due.at_once, due.later, due.twice, before)


def timers_lost(
    evidence: Evidence, moment: StartMoment, at_once: Collection[str], in_delete_when: Collection[str], hour_ms: int | None
) -> int | None:
    """Return how many timer messages lie in segments that go before these fall due; None if that is not known.

    at_once: segments that go with the first retention. in_delete_when: further ones, from the moment hour_ms on; None: never.
    """
    rules = evidence.copy.rules
    if not rules.knows_timers:
        return 0
    if is_slave(rules):
        return None
    due = DueTimers() if evidence.copy[TIMERS].parts is None and _none_wait(evidence) else _due(evidence, moment)
    if due is None:
        return None
    begins = {segment.path: segment.base_offset for segment in evidence.segments}
    first, then = ({begins[path] for path in paths if path in begins} for paths in (at_once, in_delete_when))
    rows = due.by_segment.tolist()
    return sum(
        int(count)
        for segment, time, count in rows
        if segment in first or segment in then and hour_ms is not None and time >= hour_ms
    )


def _due(evidence: Evidence, moment: StartMoment) -> DueTimers | None:
    seen, clock = evidence[TIMERS], start_clock(evidence, moment)
    view = seen.in_use or seen.idle
    return view.due(clock, sorted(segment.base_offset for segment in evidence.segments)) if view is not None else None


def _none_wait(evidence: Evidence) -> bool:
    """Say whether the log holds no timer message."""
    return evidence.all_read and evidence.log_whole and not any(TIMER_QUEUE in segment.queues for segment in evidence.segments)
