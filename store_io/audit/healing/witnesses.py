"""Witnesses of a message's place: its ConsumeQueue entry, and the messages before and after it in its queue."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from schemas.layouts import consumequeue_layout
from schemas.rows import RUN_QUEUE, WALK_AUDIT, QueueKey, SegmentSummary
from store_io.broker.message_verdict import Message, tags_code_of
from store_io.broker.releases import BrokerRules
from store_io.log.entries.queue_store import QueueStore, is_used
from store_io.log.scan.segment_runs import TOLERANCE_MS

MOST_OFFSET = 1 << 40  # queue offsets beyond it are none


class Says(Enum):
    """The answer of a witness about a message at its place."""

    YES = "agrees"
    YES_BY_EXT = "agrees, and has its tags code in an ext unit"  # of an entry; the unit is not looked at
    NO = "contradicts"
    NOTHING = "says nothing"


def by_entry(store: QueueStore, rules: BrokerRules, message: Message, phy_offset: int) -> Says:
    """Return the answer of the entry at the message's queue offset.

    The entry agrees if it leads here, with this size and tags code. The tags code is not compared if an ext unit has it.
    """
    key, number = (message.topic, message.queue_id), message.queue_offset
    if not message.in_queue or not 0 <= number < MOST_OFFSET or not store.has(key):
        return Says.NOTHING
    row = store.entries(key).read(number, 1)[0]
    if not bool(is_used(row)):
        return Says.NOTHING
    phy, size, code = (int(row[name]) for name in ("phy_offset", "size", "tags_code"))
    codes = {
        tags_code_of(message.topic, message.properties, message.store_time, t) for t in (rules.delays, rules.delays_in_recovery)
    }
    if (phy, size) != (phy_offset, message.total_size):
        return Says.NO
    if code <= consumequeue_layout.EXT_ADDRESS_MAX:
        return Says.YES_BY_EXT
    return Says.YES if code in codes else Says.NO


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A valid message, by its physical offset and its size. queue_offset: the one that its queue leaves for it."""

    phy_offset: int
    size: int
    queue_offset: int


class LogOrder:
    """The queue offsets and store times of the log's valid messages, before and after a physical offset.

    summaries: of the segments that were read; more of them see more.
    """

    def __init__(self, summaries: Iterable[SegmentSummary]):
        runs: dict[QueueKey, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        times: list[tuple[int, int]] = []
        for summary in summaries:
            rows = summary.runs[summary.runs["walk"] & WALK_AUDIT != 0]
            places = (summary.base_offset + rows["first_position"]).tolist()
            times += zip(places, rows["first_store_time"].tolist(), strict=True)
            names = ("kind", "queue", "queue_offset", "records", "messages", "first_size")
            columns = (rows[name].tolist() for name in names)
            for place, kind, queue, first, count, messages, size in zip(places, *columns, strict=True):
                if kind == RUN_QUEUE:
                    runs[summary.queues[queue]].append((place, first, first + count - 1, messages - count, size))
        self._runs = {key: sorted(found) for key, found in runs.items()}
        self._times = sorted(times)

    def out_of_place(self) -> list[Misplaced]:
        """Return single messages for which the neighbours in their queue leave one other queue offset, by their places.

        Messages beside batches are left out: batches may take several queue offsets.
        """
        found = []
        for rows in self._runs.values():
            for before, own, after in zip(rows, rows[1:], rows[2:], strict=False):
                free = before[2] + 1
                if own[1] == own[2] != free and after[1] == free + 1 and not (before[3] or own[3] or after[3]):
                    found.append(Misplaced(own[0], own[4], free))
        return sorted(found, key=lambda each: each.phy_offset)

    def says(self, message: Message, phy_offset: int) -> Says:
        """YES: the message before it in its queue, or the one after, has the queue offset next to its own. NO: one of them is
        out of order then, or the store time of those beside it in the log."""
        before, after = _beside(self._times, phy_offset)
        time = message.store_time
        if before and time < before[1] - TOLERANCE_MS or after and time > after[1] + TOLERANCE_MS:
            return Says.NO
        if not message.in_queue or message.batch_count != 1:
            return Says.NOTHING
        run, following = _beside(self._runs.get((message.topic, message.queue_id), []), phy_offset)
        number = message.queue_offset
        if run and run[2] >= number or following and following[1] <= number:
            return Says.NO
        return Says.YES if run and run[2] == number - 1 or following and following[1] == number + 1 else Says.NOTHING


_Row = TypeVar("_Row", bound=tuple[int, ...])


def _beside(rows: Sequence[_Row], phy_offset: int) -> tuple[_Row | None, _Row | None]:
    """Return the last row that begins before the physical offset, and the first after it."""
    at = bisect_left(rows, phy_offset, key=lambda row: row[0])
    before = rows[at - 1] if at else None
    while at < len(rows) and rows[at][0] == phy_offset:  # the message itself, as it is now
        at += 1
    return before, rows[at] if at < len(rows) else None
