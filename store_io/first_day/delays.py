"""Messages of delay levels after a start: what is delivered at once, what later, and which message a level tries without end.

Source: ScheduleMessageService.start, executeOnTimeup, correctDeliverTimestamp (4.6.1 to 5.5.1); what refuses an empty body is
HookUtils.checkBeforePutMessage (5.0.0 on).
"""

from __future__ import annotations

import numpy as np

from schemas.first_day import DelaysOfDay, StartMoment
from store_io.base.ranges import Ranges
from store_io.broker.releases import BrokerRules
from store_io.first_day.role import is_master
from store_io.kinds.delays.delay_kind import DELAYS, Delays, LevelQueue, stops_at_gaps
from store_io.kinds.delays.delay_runs import ELSEWHERE, NO_BODY
from store_io.model.evidence import Evidence


def delays_of_day(evidence: Evidence, moment: StartMoment) -> DelaysOfDay | None:
    """Return what a start makes of the messages of delay levels; None if that is not known. A slave delivers none."""
    rules, delays = evidence.copy.rules, evidence[DELAYS]
    if delays is None or not evidence.log_whole:
        return None
    now = moment.at_ms if is_master(evidence) else None
    found = [delays_of_level(queue, delays, rules, now) for queue in delays.levels]
    return DelaysOfDay(
        at_once=sum(level.at_once for level in found),
        later=sum(level.later for level in found),
        left_out=sum(level.left_out for level in found),
        stuck_levels=tuple(number for level in found for number in level.stuck_levels),
    )


def delays_of_level(queue: LevelQueue, delays: Delays, rules: BrokerRules, now: int | None) -> DelaysOfDay:
    """Go through one level in the order of its queue, up to the first message that is not due. now: None if nobody delivers."""
    own, messages, entries = queue.level - 1, delays.messages, delays.entries
    messages, entries = messages[messages["queue"] == own], entries[entries["queue"] == own]
    edges = _edges(queue, messages, entries)
    if len(edges) < 2:
        return DelaysOfDay()
    at, count = edges[:-1], np.diff(edges)
    message, there = _run_at(messages, at)
    entry, stored = _run_at(entries, at)
    put, in_load = _within(queue.put, at), _within(queue.put_in_load, at)
    stored &= ~put
    asks = put | stored & (entry["what"] == ELSEWHERE)
    due = np.where(asks, np.where(there, message["due"], 0), entry["due"])
    if not rules.delays_in_recovery:  # its entries have the hash of the tags there, which is long past as a time
        due[in_load] = 0
    there &= put | stored
    waits = there | stored  # else there is no entry, and nothing comes of it
    if now is None:
        return DelaysOfDay(later=int(count[waits].sum()))
    empty = there & (message["what"] == NO_BODY)
    ready = (due <= now) | (due > now + rules.delays[queue.level])
    stops = np.flatnonzero(waits & ~ready)
    stop = int(stops[0]) if len(stops) else len(at)
    standing = _standing(waits[:stop], empty[:stop], rules)
    end = stop if standing is None else standing
    left_out = waits & (~there | empty & _leaves_empty_out(rules))
    before = np.arange(len(at)) < end
    return DelaysOfDay(
        at_once=int(count[before & waits & ~left_out].sum()),
        later=int(count[~before & waits].sum()),
        left_out=int(count[before & left_out].sum()),
        stuck_levels=() if standing is None else (queue.level,),
    )


def _standing(waits: np.ndarray, empty: np.ndarray, rules: BrokerRules) -> int | None:
    """Return the place of the message that the broker tries without end; None if there is none. All are due."""
    if stops_at_gaps(rules) and len(waits) and not waits[0]:
        return 0
    if not rules.at_least("5.3.3"):
        return None
    found = np.flatnonzero(empty)
    return int(found[0]) if len(found) else None


def _leaves_empty_out(rules: BrokerRules) -> bool:
    """Say whether the release passes over a message without a body."""
    return rules.at_least("5.0.0") and not rules.at_least("5.3.3")


def _edges(queue: LevelQueue, *runs: np.ndarray) -> np.ndarray:
    """Return the numbers at which anything changes, from the first to the end of what is read."""
    bounds = [np.array([number for each in (queue.put, queue.put_in_load) for pair in each for number in pair], np.int64)]
    bounds += [np.concatenate([own["first"], own["first"] + own["count"]]) for own in runs]
    inner = np.concatenate(bounds)
    inner = inner[(inner > queue.first) & (inner < queue.end)]
    found: np.ndarray = np.unique(np.concatenate([inner, [queue.first, max(queue.first, queue.end)]]))
    return found


def _run_at(runs: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each number, the run that it may lie in, and whether it does."""
    if not len(runs):
        return np.zeros(len(numbers), runs.dtype), np.zeros(len(numbers), bool)
    place = np.searchsorted(runs["first"], numbers, "right") - 1
    found = runs[np.maximum(place, 0)]
    return found, (place >= 0) & (numbers < found["first"] + found["count"])


def _within(ranges: Ranges, numbers: np.ndarray) -> np.ndarray:
    """Say which numbers lie in one of these ranges."""
    bounds = np.array([number for pair in ranges for number in pair], np.int64)
    found: np.ndarray = np.searchsorted(bounds, numbers, "right") % 2 == 1
    return found
