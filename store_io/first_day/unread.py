"""Messages of deleted segments that groups have not consumed, by what the start holds of their offsets."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schemas.first_day import Unread
from schemas.layouts.consumequeue_layout import ENTRY_BYTES
from schemas.rows import RUN_UNQUEUED, WALK_AUDIT, MappedFile, QueueKey, SegmentSummary
from store_io.base.java.java_compat import MAX_LONG
from store_io.base.ranges import Ranges, union
from store_io.broker.queues.queue_state import DiskEntries
from store_io.kinds.config.config_kind import CONFIG
from store_io.model.evidence import Evidence

MOST = 20
_MOST_QUEUES = 4096  # that are looked at by their entries


@dataclass(frozen=True)
class NotConsumed:
    """The queues of groups with most of them, and how many others there are."""

    largest: tuple[Unread, ...] = ()
    more: int = 0


def not_consumed(evidence: Evidence, paths: Collection[str]) -> NotConsumed | None:
    """Return what groups have not consumed of the messages in these segments, the log's first ones; None if that is not known.

    Each offset is looked at once, and so is each run of messages.
    """
    tables, prediction = evidence[CONFIG], evidence.prediction
    groups = {name for name, _ in tables.own_groups}
    lowest: dict[QueueKey, int] = {}
    for (group, topic, queue_id), offset in tables.offsets.items():
        if group in groups:
            lowest[topic, queue_id] = min(offset, lowest.get((topic, queue_id), offset))
    segments = [segment for segment in evidence.segments if segment.path in paths]
    all_read = len(segments) == len(paths)
    gone = gone_offsets(segments, lowest) if all_read else gone_entries(evidence, paths, lowest)
    if gone is None:
        return None
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


def gone_entries(evidence: Evidence, paths: Collection[str], lowest: Mapping[QueueKey, int]) -> Mapping[QueueKey, Ranges] | None:
    """Return the same by the queues' entries, as segments that were verified before are not read again. None: not known.

    lowest: the lowest offset of a group in each queue; queues that all groups have consumed are left out.
    """
    prediction, queues = evidence.prediction, evidence.copy.queues_in_files
    if prediction is None or prediction.after_load is None or not queues.serves:
        return None
    kept = [file.file.start for file in prediction.after_load.log if file.file.path not in paths]
    before = min(kept, default=MAX_LONG)
    behind = {}
    for key, offset in lowest.items():
        state = prediction.after_load.queues.get(key)
        if state is not None and offset < state.max_offset:
            behind[key] = state.min_offset, state.max_offset
    if len(behind) > _MOST_QUEUES or any(topic in evidence.copy.batch_topics for topic, _ in behind):
        return None
    found: dict[QueueKey, Ranges] = {}
    for key, (first, last) in behind.items():
        files = queues.served.files.get(key, ())
        end = _first_from(evidence.copy.queue_entries, files, (first, last), before)
        if end > first:
            found[key] = [(first, end)]
    return found


def _first_from(entries: DiskEntries, files: Sequence[MappedFile], bounds: tuple[int, int], before: int) -> int:
    """Return the first of a queue's entries, between these bounds, that leads to this physical offset or beyond."""
    low, high = bounds
    while low < high:
        middle = (low + high) // 2
        place = middle * ENTRY_BYTES
        file = next((f for f in files if f.start <= place < f.start + f.size), None)
        rows = entries(file.path, (place - file.start) // ENTRY_BYTES, 1) if file is not None else None
        if rows is not None and len(rows) and rows["phy_offset"][0] >= before:
            high = middle
        else:
            low = middle + 1
    return low
