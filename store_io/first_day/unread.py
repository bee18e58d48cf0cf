"""Messages of deleted segments that groups have not consumed, by what the start holds of their offsets."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from schemas.first_day import Unread
from schemas.rows import RUN_UNQUEUED, WALK_AUDIT, QueueKey, SegmentSummary
from store_io.base.ranges import Ranges, union
from store_io.kinds.config.config_kind import CONFIG
from store_io.model.evidence import Evidence

MOST = 20


@dataclass(frozen=True)
class NotConsumed:
    """The queues of groups with most of them, and how many others there are."""

    largest: tuple[Unread, ...] = ()
    more: int = 0


def not_consumed(evidence: Evidence, paths: Collection[str]) -> NotConsumed | None:
    """Return what groups have not consumed of the messages in these segments; None if one of these was not read now.

    Each offset is looked at once, and so is each run of messages.
    """
    segments = [segment for segment in evidence.segments if segment.path in paths]
    if len(segments) < len(paths):
        return None
    tables, prediction = evidence[CONFIG], evidence.prediction
    groups = {name for name, _ in tables.own_groups}
    queues = {(topic, queue_id) for group, topic, queue_id in tables.offsets if group in groups}
    gone = gone_offsets(segments, queues)
    memory = prediction.settled if prediction is not None else None
    count = 0

    def rows() -> Iterator[Unread]:
        nonlocal count
        for (group, topic, queue_id), offset in tables.offsets.items():
            ranges = gone.get((topic, queue_id)) if group in groups else None
            if not ranges:
                continue
            served = memory.queues.get((topic, queue_id)) if memory is not None else None
            first = max(offset, served.min_offset if served is not None else 0)
            messages = sum(max(0, end - max(first, start)) for start, end in ranges)
            if messages:
                count += 1
                yield Unread(group, topic, queue_id, messages)

    largest = heapq.nsmallest(MOST, rows(), key=lambda row: (-row.messages, row.group, row.topic, row.queue_id))
    return NotConsumed(tuple(largest), count - len(largest))


def gone_offsets(segments: Collection[SegmentSummary], queues: Collection[QueueKey]) -> Mapping[QueueKey, Ranges]:
    """Return the queue offsets of the valid messages in these segments, of these queues."""
    found: dict[QueueKey, Ranges] = {}
    for segment in segments:
        numbers = [n for n, key in enumerate(segment.queues) if key in queues]
        if not numbers:
            continue
        runs = segment.runs
        runs = runs[(runs["walk"] & WALK_AUDIT != 0) & (runs["kind"] != RUN_UNQUEUED) & np.isin(runs["queue"], numbers)]
        for number, start, messages in zip(
            runs["queue"].tolist(), runs["queue_offset"].tolist(), runs["messages"].tolist(), strict=True
        ):
            ranges = found.setdefault(segment.queues[number], [])
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], start + messages)
            elif messages > 0:
                ranges.append((start, start + messages))
    return {key: union(ranges) for key, ranges in found.items()}
