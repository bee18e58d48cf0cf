"""What the database of a repaired store holds of each queue."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from schemas.layouts.consumequeue_layout import ANSWER_SIZE
from schemas.rows import MATCH_MISSING, RUN_DTYPE, SegmentSummary
from store_io.broker.loading import Tree
from store_io.broker.queues.rocksdb_queue_state import QueueEnd, StoredEnds
from store_io.broker.releases import Setting, broker_rules
from store_io.kinds.rocksdb_queues.rocksdb_queue_plan import ends_without_messages, plan_keyed_queue
from store_io.model.queue_runs import QueueRuns
from store_io.model.queue_views import QueueView
from store_io.repair.derived.queue_places import BridgedRanges
from store_io.repair.derived.queue_plan import NewLog

QUEUE = "topic", 3


@pytest.mark.parametrize(
    ("maximum", "minimum", "start", "ends"),
    [
        (None, None, 4096, None),
        ((100, 6), None, 0, None),  # its messages are gone, and nothing says that others came before them
        ((4000, 6), None, 4096, ((4000, 6), (4096, 7))),  # retention has deleted the last one: the next gets 7
        ((4000, 6), (30, 2), 4096, ((4000, 6), (4096, 7))),
        ((9000, 6), None, 4096, None),
        ((9000, 6), (8000, 4), 4096, ((4095, 3), (4096, 4))),  # the copy's messages from 4 on are lost
        ((9000, 6), (8000, 0), 4096, None),
    ],
)
def test_a_queue_without_a_message_continues_where_retention_has_left_it(
    maximum: tuple[int, int] | None, minimum: tuple[int, int] | None, start: int, ends: object
) -> None:
    maxima = {} if maximum is None else {QUEUE: QueueEnd(*maximum)}
    minima = {} if minimum is None else {QUEUE: QueueEnd(*minimum)}
    assert ends_without_messages(QUEUE, StoredEnds(5, maxima, minima), start) == ends


def test_numbers_of_missing_messages_lead_to_the_next_one_and_those_of_a_batch_are_left() -> None:
    rows = np.zeros(3, RUN_DTYPE)
    rows["queue_offset"], rows["records"] = (2, 3, 9), (1, 1, 2)
    rows["messages"] = (1, 4, 2)  # 3 is a batch up to 6; 7 and 8 are gone
    rows["first_phy_offset"] = rows["last_phy_offset"] = (100, 200, 5000)
    rows["last_phy_offset"][2], rows["first_size"], rows["last_size"] = 5100, 100, 100
    rows["first_store_time"], rows["match"] = (1, 2, 3), MATCH_MISSING
    runs = SimpleNamespace(rows=rows, positions=np.array([100, 200, 5000]), segments=np.array([0, 0, 1]))
    view = QueueView(QUEUE, False, "consumequeue", runs=cast(QueueRuns, runs), keyed=True)
    segments = [SegmentSummary(path=f"commitlog/{base}", base_offset=base, size=4096) for base in (0, 4096)]
    rules = broker_rules("5.4.0", {"mappedFileSizeCommitLog": Setting(4096, "broker.conf")})
    log = NewLog(segments, Tree([]), rules, 0, BridgedRanges([(300, 4096)]), salvage=True)
    plan = plan_keyed_queue(view, log, StoredEnds())
    assert plan is not None and (plan.messages, plan.entries) == (4, 6)
    assert (plan.minimum, plan.maximum) == (QueueEnd(100, 2), QueueEnd(5100, 10))
    (fill,) = plan.fills
    assert (fill.start, fill.end) == (7, 9)
    assert struct.unpack(">qiqq", fill.entry) == (4095, ANSWER_SIZE, 0, 3)
    assert [(part.first, part.end) for part in plan.answered] == [(7, 9)] and not plan.moved and not plan.unserved
