"""What else says where a message belongs: its ConsumeQueue entry, and the messages before and after it in its queue."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

import numpy as np

from schemas import consumequeue_layout
from schemas.rows import RUN_QUEUE, WALK_AUDIT, QueueKey, SegmentSummary
from store_io.formats.queue_store import QueueStore, is_used
from store_io.rules.message_verdict import Message, tags_code_of
from store_io.rules.releases import BrokerRules

MOST_OFFSET = 1 << 40  # queue offsets beyond it are none


class Says(Enum):
    """What a witness says of a message at its place."""

    YES = "agrees"
    NO = "contradicts"
    NOTHING = "says nothing"


def by_entry(store: QueueStore, rules: BrokerRules, message: Message, phy_offset: int) -> Says:
    """What the entry at the message's queue offset says: it leads here, with this size and tags code, or elsewhere."""
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
    known = code in codes or code <= consumequeue_layout.EXT_ADDRESS_MAX
    return Says.YES if (phy, size) == (phy_offset, message.total_size) and known else Says.NO


class LogOrder:
    """Which queue offsets the log's valid messages have before and after a physical offset.

    summaries: of the segments that were read; more of them see more.
    """

    def __init__(self, summaries: Iterable[SegmentSummary]):
        runs: dict[QueueKey, list[tuple[int, int, int]]] = defaultdict(list)
        for summary in summaries:
            rows = summary.runs
            own = np.flatnonzero((rows["kind"] == RUN_QUEUE) & (rows["walk"] & WALK_AUDIT != 0))
            for i in own.tolist():
                first, count = int(rows["queue_offset"][i]), int(rows["records"][i])
                key = summary.queues[int(rows["queue"][i])]
                runs[key].append((summary.base_offset + int(rows["first_position"][i]), first, first + count - 1))
        self._runs = {key: sorted(found) for key, found in runs.items()}

    def says(self, message: Message, phy_offset: int) -> Says:
        """YES: the message before it in its queue, or the one after, has the queue offset next to its own, and neither has
        one that is out of order then."""
        runs = self._runs.get((message.topic, message.queue_id), [])
        if not message.in_queue or message.batch_count != 1:
            return Says.NOTHING
        at = bisect_left(runs, (phy_offset,))
        before = runs[at - 1][2] if at else None
        if at < len(runs) and runs[at][0] == phy_offset:  # the message itself, as it is now
            at += 1
        after = runs[at][1] if at < len(runs) else None
        number = message.queue_offset
        if before is not None and before >= number or after is not None and after <= number:
            return Says.NO
        return Says.YES if before == number - 1 or after == number + 1 else Says.NOTHING
