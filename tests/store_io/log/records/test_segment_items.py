"""What a decoded row is to its queue."""

from __future__ import annotations

import numpy as np

from schemas import commitlog_layout as layout
from schemas.rows import RUN_QUEUE, RUN_UNQUEUED
from store_io.log.records import bridges
from store_io.log.records import segment_items as items
from store_io.log.records.message_columns import HAS_KEYS, HAS_TAGS, ROW_DTYPE


def test_kinds_and_flags_of_rows() -> None:
    rows = np.zeros(5, ROW_DTYPE)
    rows["sys_flag"] = [0, layout.SYS_PREPARED, layout.SYS_COMMIT, layout.SYS_ROLLBACK, 0]
    rows["topic_ref"] = [0, 0, 0, 0, 1]
    rows["flags"] = [HAS_TAGS, 0, HAS_KEYS, 0, 0]
    kinds = np.zeros(5, np.uint8)
    met = items.row_kinds(rows, 5, np.array([False, True]), kinds)
    assert kinds.tolist() == [RUN_QUEUE, RUN_UNQUEUED, RUN_QUEUE, RUN_UNQUEUED, items.KIND_BATCH]
    assert met == HAS_TAGS | HAS_KEYS | items.BATCH_ROWS
    rows["store_host"][3] = 9
    assert items.row_kinds(rows, 3, np.array([False, True]), kinds) == HAS_TAGS | HAS_KEYS
    assert items.row_kinds(rows, 4, np.array([False, True]), kinds) & items.HOST_CHANGES
    rows["flag"][2] = bridges.FLAG
    assert not items.row_kinds(rows, 2, np.array([False, True]), kinds) & items.BRIDGE_FLAGS
    assert items.row_kinds(rows, 3, np.array([False, True]), kinds) & items.BRIDGE_FLAGS
    assert items.row_kinds(rows, 0, np.array([False]), kinds) == 0


def test_an_array_grows_by_doubling_and_keeps_what_it_has() -> None:
    array = np.arange(4)
    assert items.grown(array, 4, -1) is array
    assert items.grown(array, 5, -1).tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    assert len(items.grown(array, 100, 0)) == 100
    assert items.grown(np.zeros((1, 3), np.int64), 2, 7).tolist() == [[0, 0, 0], [7, 7, 7]]
