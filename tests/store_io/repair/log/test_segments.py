"""What a repair asks of one segment."""

from __future__ import annotations

import numpy as np

from schemas.rows import (
    EXTENT_DAMAGED,
    EXTENT_MESSAGE,
    RUN_DTYPE,
    RUN_LMQ,
    RUN_QUEUE,
    WALK_AUDIT,
    WALK_BROKER,
    Extent,
    SegmentSummary,
)
from store_io.repair.log.segments import filler, message_extents, message_runs, runs_from, segment_path


def test_each_message_is_in_one_run() -> None:
    runs = np.zeros(4, RUN_DTYPE)
    runs["walk"] = [WALK_AUDIT, WALK_AUDIT | WALK_BROKER, WALK_BROKER, WALK_AUDIT]
    runs["kind"] = [RUN_QUEUE, RUN_QUEUE, RUN_QUEUE, RUN_LMQ]
    runs["first_position"] = [0, 100, 200, 100]
    summary = SegmentSummary(segment_path(0), 0, 4096, runs=runs)
    assert message_runs(summary)["first_position"].tolist() == [0, 100]
    assert runs_from(summary, 100)["first_position"].tolist() == [100] and not len(runs_from(summary, 101))


def test_names_fillers_and_messages() -> None:
    assert segment_path(4096) == "commitlog/00000000000000004096"
    assert filler(258) == b"\0\0\1\2\xcb\xd4\x31\x94"
    extents = [Extent(EXTENT_MESSAGE, 0, 10, 1), Extent(EXTENT_DAMAGED, 10, 20, 0)]
    assert message_extents(SegmentSummary("commitlog/0", 0, 20, extents=extents)) == extents[:1]
