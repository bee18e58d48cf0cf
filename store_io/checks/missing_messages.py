"""Counts the messages that a copy shows and does not hold: damaged ones, and those of segments that are missing or empty.

A message has one place in its own queue, so places are counted: those to which entries lead that find no message, those that the
log itself skips where bytes are damaged or missing, and in a copy without a message all that queues and tables of offsets show.
LMQ queues lead to messages of other queues. What leaves a part of it unknown makes the number "at least" so many.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts.commitlog_layout import SCHEDULE_TOPIC
from schemas.losses import Missing
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, LOSS, RUN_QUEUE, Finding, QueueKey
from store_io.base.ranges import Ranges
from store_io.base.wording import count_text
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.model.evidence import Evidence
from store_io.model.log_map import broken_between
from store_io.model.queue_leftovers import LeftoverResult
from store_io.model.queue_views import QueueView

LEAST_RECORD = 91  # bytes of a message without body, properties and topic
_LOST_CODES = (Code.SEGMENT_MISSING, Code.MESSAGE_LOST, Code.COMMITLOG_DAMAGED, Code.COMMITLOG_EMPTIED)


def missing_messages(evidence: Evidence, findings: Iterable[Finding]) -> Missing | None:
    """Return how many messages are missing; None if no finding says that any are gone, or nothing says how many."""
    lost = [f for f in findings if f.severity == LOSS and f.code in _LOST_CODES]
    if not lost or not evidence.log_whole or evidence.unread:
        return None
    if any(extent.kind in (EXTENT_MESSAGE, EXTENT_DAMAGED) for segment in evidence.segments for extent in segment.extents):
        gaps = {key: _skipped(evidence, view) for key, view in evidence.views.items()}
        number = places_missing(evidence.leftovers, {key: ranges for key, ranges in gaps.items() if ranges})
        more = not evidence.queues_whole or any(not _explained(evidence, finding) for finding in lost)
    else:
        return of_an_empty_log(evidence)
    return Missing(number, more) if number else None


def missing_text(missing: Missing | None) -> str:
    """ "12 messages" or "at least 12 messages"; "" if the number is not known."""
    if missing is None:
        return ""
    return f"{'at least ' if missing.at_least else ''}{count_text(missing.messages, 'message')}"


# ---- places in queues ------------------------------------------------------------------------------------------------------


def places_missing(
    leftovers: Mapping[QueueKey, LeftoverResult],
    ranges: Mapping[QueueKey, Ranges],
    is_there: Callable[[int], bool] = lambda phy_offset: False,
) -> int:
    """Return how many messages are missing: those to which entries lead in vain, and those at these queue offsets.

    is_there: whether the message with a physical offset, to which an entry leads, lies elsewhere in the copy.
    A message is counted once: by its physical offset, which several queues can lead to, and by its place in its own queue.
    """
    phy_offsets: set[int] = set()
    by_queue: dict[QueueKey, _Queue] = defaultdict(_Queue)
    for key, own in ranges.items():
        by_queue[key].ranges = own
    for key, result in leftovers.items():
        phy_offsets.update(phy for _, phy, _, _ in result.lost if not is_there(phy))
        by_queue[key].known.update(number for number, _, _, _ in result.lost)
        by_queue[key].more = sum(result.lost_count.values()) - len(result.lost)
    queues = (queue for (topic, _), queue in by_queue.items() if not topic.startswith(LMQ_PREFIX))
    return len(phy_offsets) + sum(max(queue.more, queue.positions()) for queue in queues)


@dataclass
class _Queue:
    """Positions of a queue whose messages are missing.

    known: those that entries lead to, which are counted by their physical offsets; more: how many other entries there are.
    ranges: other positions.
    """

    known: set[int] = field(default_factory=set)
    more: int = 0
    ranges: Ranges = field(default_factory=list)

    def positions(self) -> int:
        """Return how many the ranges add."""
        known = sorted(self.known)
        return sum(end - first - (bisect_left(known, end) - bisect_left(known, first)) for first, end in self.ranges)


def _skipped(evidence: Evidence, view: QueueView) -> Ranges:
    """Return the queue offsets that a queue's messages skip along the log, over bytes that are damaged or missing.

    They are no more than have room there, as a damaged header names any offset.
    """
    rows, positions = view.runs.rows, view.runs.positions
    if view.batch or view.lmq or not len(rows):
        return []
    own = np.flatnonzero(rows["kind"] == RUN_QUEUE)
    own = own[np.argsort(positions[own], kind="stable")]
    steps = "messages" if evidence.copy.rules.numbers_inner_messages else "records"
    ends = rows["queue_offset"][own] + rows[steps][own]
    firsts, places = rows["queue_offset"][own], positions[own]
    until = np.where(
        rows["regular"][own] == 0, places + rows["first_size"][own], rows["last_phy_offset"][own] + rows["last_size"][own]
    )
    found: Ranges = []
    for i in np.flatnonzero(firsts[1:] > ends[:-1]).tolist():
        first, end, before, after = int(ends[i]), int(firsts[i + 1]), int(until[i]), int(places[i + 1])
        if (end - first) * LEAST_RECORD <= after - before and broken_between(evidence.log, before, after):
            found.append((first, end))
    return found


def _explained(evidence: Evidence, finding: Finding) -> bool:
    """Say whether entries lead to the place of this finding, at which messages are gone."""
    start = finding.phy_offset
    if finding.code not in (Code.SEGMENT_MISSING, Code.COMMITLOG_DAMAGED) or start is None:
        return True
    size = evidence.copy.rules.segment_bytes if finding.end is None else finding.end - (finding.start or 0)
    return any(
        any(phy < start + size and start < phy + length for _, phy, length, _ in result.lost)
        or any(more.start < start + size and start < more.end for more in result.lost_more)
        for result in evidence.leftovers.values()
    )


# ---- a log without a message -------------------------------------------------------------------------------------------------


def of_an_empty_log(evidence: Evidence) -> Missing | None:
    """Count the messages that queues and tables of offsets show, for a log without a message; None if they show no number."""
    number, more = 0, not evidence.queues_whole
    ends = _offsets(evidence)
    for key, queue in evidence.queues.items():
        if not key[0].startswith(LMQ_PREFIX):
            shown = queue.entries
            beyond = max(0, ends.pop(key, 0) - queue.used_end)
            number, more = number + shown + beyond, more or beyond > 0
    messages = number + sum(ends.values())
    return Missing(messages, more or bool(ends) or not number) if messages else None


def _offsets(evidence: Evidence) -> dict[QueueKey, int]:
    """Return the greatest offset of each queue in the tables of config/: so many messages it had at least."""
    copy, found = evidence.copy, dict[QueueKey, int]()
    for (_, topic, queue_id), offset in copy.offsets.items():
        if offset > 0 and not topic.startswith(LMQ_PREFIX):
            found[topic, queue_id] = max(offset, found.get((topic, queue_id), 0))
    for level, offset in copy.delay_offsets.items():
        if offset > 0:
            found[SCHEDULE_TOPIC, level - 1] = max(offset, found.get((SCHEDULE_TOPIC, level - 1), 0))
    return found
