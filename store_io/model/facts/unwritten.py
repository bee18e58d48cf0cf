"""Parts of the CommitLog that are zero although messages follow, and what the queues say lay there.

A copy of a running broker has them: a segment is read before its end is written, and the next one when it has messages. A loss of
power leaves the same where later pages reached the disk first. Both leave pages: zeros from a message's end to the segment's end,
or to the edge of a page. Other zeros are damage like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.finding_codes import Code
from schemas.layouts.commitlog_layout import MIN_SIZE_V1_BYTES
from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, EXTENT_UNWRITTEN, RUN_QUEUE, Extent, Finding, QueueKey, SegmentSummary
from store_io.base.wording import count_text
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.model import log_map as lm
from store_io.model.queue_leftovers import LeftoverResult
from store_io.model.queue_runs import FAR
from store_io.model.queue_views import QueueView

PAGE_BYTES = 4096  # what is written and copied together
LEAST_ZEROS = 64  # before a page's edge: fewer may be a message's own fields
MOST_BEYOND = 16  # zero bytes that may follow the page's edge before the message continues


@dataclass(frozen=True)
class Hole:
    """Zeros from `position` of a segment on, with messages after them.

    next_time: the store time of the first message of the next segment that has one; 0 without one.
    to_end: they reach the segment's end; else messages follow at `end`.
    """

    path: str
    base: int
    position: int
    end: int
    zeros: int
    to_end: bool
    next_time: int = 0

    @property
    def phy_offset(self) -> int:
        """Return the physical offset at which the hole begins."""
        return self.base + self.position


def _holes(segments: Iterable[SegmentSummary]) -> list[Hole]:
    """Return all holes, by physical offset. Trailing zeros of the last segment with data are not holes."""
    found: list[Hole] = []
    later, next_time = False, 0
    for segment in sorted(segments, key=lambda s: s.base_offset, reverse=True):
        message_follows = later
        for extent in reversed(segment.extents):
            to_end = extent.kind == EXTENT_UNWRITTEN and later
            if to_end or extent.kind == EXTENT_DAMAGED and message_follows and _to_a_page(extent):
                zeros = extent.end - extent.start if to_end else extent.zeros
                found.append(
                    Hole(segment.path, segment.base_offset, extent.start, extent.end, zeros, to_end, next_time if to_end else 0)
                )
            message_follows = message_follows or extent.kind == EXTENT_MESSAGE
        later = later or any(extent.kind in (EXTENT_MESSAGE, EXTENT_DAMAGED) for extent in segment.extents)
        next_time = segment.first_store_time or next_time
    return found[::-1]


def _to_a_page(extent: Extent) -> bool:
    """Say whether a damaged range begins with zeros that end at a page's edge."""
    end = extent.start + extent.zeros
    edge = end // PAGE_BYTES * PAGE_BYTES
    return edge - extent.start >= LEAST_ZEROS and end - edge <= MOST_BEYOND


def _messages_in(
    found: Sequence[Hole], views: Mapping[QueueKey, QueueView], results: Iterable[LeftoverResult], log: lm.LogMap
) -> list[int]:
    """Return the least number of messages that lay in each hole.

    These are the queue offsets that are missing between a queue's messages before and after the hole, and after a queue's last
    message those whose entries lead there. A gap over several holes counts for the first one. LMQ queues lead to messages of
    other queues, which are counted there.
    """
    counts = np.zeros(len(found), np.int64)
    starts = np.array([hole.phy_offset for hole in found], np.int64)
    ends = np.array([hole.base + hole.end for hole in found], np.int64)
    broken = log.starts[np.isin(log.kinds, (lm.DAMAGED, lm.MISSING, lm.UNWRITTEN, lm.UNREAD))]
    last: dict[QueueKey, int] = {}  # the physical offset of its last run
    for key, view in views.items():
        rows, positions = view.runs.rows, view.runs.positions
        own = np.flatnonzero(rows["kind"] == RUN_QUEUE)
        own = own[np.argsort(positions[own], kind="stable")]
        if not len(own):
            continue
        rows, positions = rows[own], positions[own]
        last[key] = int(positions[-1])
        of_many = view.batch or view.keyed  # an entry leads to all messages of its record
        firsts, steps = rows["queue_offset"], rows["messages" if of_many else "records"]
        near = (np.abs(firsts[1:]) < FAR) & (np.abs(firsts[:-1]) < FAR)
        missing = np.where(near, firsts[1:] - firsts[:-1] - steps[:-1], 0)
        first, past = np.searchsorted(starts, positions[:-1]), np.searchsorted(starts, positions[1:])
        other = np.searchsorted(broken, positions[1:]) - np.searchsorted(broken, positions[:-1]) - (past - first)
        for i in np.flatnonzero((missing > 0) & (past > first) & (other == 0)).tolist():
            room = int((ends[first[i] : past[i]] - starts[first[i] : past[i]]).sum()) // (1 if of_many else MIN_SIZE_V1_BYTES)
            if missing[i] <= room:  # no more than fit there: else the queue offsets themselves are damaged
                counts[first[i]] += missing[i]
    for result in results:
        if result.key[0].startswith(LMQ_PREFIX):
            continue
        entries = {(number, phy) for number, phy, _, _ in result.lost if phy > last.get(result.key, -1)}
        for _, phy in entries:
            place = int(np.searchsorted(starts, phy, side="right")) - 1
            if place >= 0 and phy < ends[place]:
                counts[place] += 1
        for more in result.lost_more:
            place = int(np.searchsorted(starts, more.start, side="right")) - 1
            if more.start > last.get(result.key, -1) and place >= 0 and more.end <= ends[place]:
                counts[place] += more.count
    return [int(count) for count in counts]


@dataclass(frozen=True)
class Unwritten:
    """The holes of a store, and how many messages lay in each at least."""

    holes: Sequence[Hole]
    counts: Sequence[int]

    def findings(self) -> list[Finding]:
        """Return one per segment whose end is zero; zeros elsewhere are damage, which the scan has found."""
        return [
            Finding(
                Code.SEGMENT_UNWRITTEN,
                hole.path,
                hole.position,
                min(hole.position + 8, hole.end),
                phy_offset=hole.phy_offset,
                expected="a message or a filler: later segments hold messages",
                actual="zeros up to the segment's end",
                message=f"{count_text(hole.zeros, 'byte')} of zeros{_lay(count)}",
            )
            for hole, count in zip(self.holes, self.counts, strict=True)
            if hole.to_end
        ]

    def copied_live(self, flushed_until: int) -> Finding | None:
        """Return the finding on holes that show a copy of a running broker.

        flushed_until: the checkpoint's store time of flushed messages.

        A broker flushes in physical order, and flushed messages outlast a loss of power: a hole before a message that was flushed
        is the copying's.
        """
        shown = [(hole, count) for hole, count in zip(self.holes, self.counts, strict=True) if hole.position]
        if not shown:  # a segment without a single message was not being written when it was copied
            return None
        first, zeros = shown[0][0], sum(hole.zeros for hole, _ in shown)
        power = "" if all(0 < hole.next_time <= flushed_until for hole, _ in shown) else ", or its machine lost power"
        where = "" if len(shown) == 1 else f" in {len(shown):,} places"
        return Finding(
            Code.LIVE_COPY,
            first.path,
            first.position,
            min(first.position + 8, first.end),
            phy_offset=first.phy_offset,
            expected="a message or a filler",
            actual="zeros",
            message=f"probably copied while the broker ran{power}: {count_text(zeros, 'byte')} of the CommitLog are"
            f" zero{where}, although messages follow{_lay(sum(count for _, count in shown))}",
        )


def _lay(count: int) -> str:
    return f"; at least {count_text(count, 'message')} lay there" if count else ""


def unwritten(
    segments: Iterable[SegmentSummary],
    views: Mapping[QueueKey, QueueView],
    results: Mapping[QueueKey, LeftoverResult],
    log: lm.LogMap,
) -> Unwritten:
    """Return the holes of these segments, and the messages that queues show in them."""
    found = _holes(segments)
    return Unwritten(found, _messages_in(found, views, results.values(), log) if found else [])
