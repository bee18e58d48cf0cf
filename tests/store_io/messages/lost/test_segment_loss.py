"""Which rows of a segment a start takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.layouts.commitlog_layout import SYS_PREPARED, SYS_ROLLBACK
from store_io.log.records.message_columns import ROW_DTYPE
from store_io.messages.lost.segment_loss import CUT, KEPT, NO_LOSS, UNDELIVERED, UNREACHABLE, SegmentLoss

KEYS = [("T", 0), ("T", 1)]
RUNS = {("T", 0): np.array([[100, 200], [400, 400]])}


def kinds(loss: SegmentLoss, *rows: dict[str, Any]) -> list[int]:
    found = np.zeros(len(rows), ROW_DTYPE)
    for row, values in zip(found, rows, strict=True):
        for name, value in values.items():
            row[name] = value
    return loss.of_rows(found, KEYS).tolist()


def at(position: int, ref: int = 0, flag: int = 0) -> dict[str, int]:
    return {"position": position, "phy_offset": 10_000 + position, "topic_ref": ref, "sys_flag": flag}


def test_nothing_is_taken_where_nothing_is_said() -> None:
    assert kinds(NO_LOSS, at(0), at(1)) == [KEPT, KEPT] and not NO_LOSS
    assert kinds(NO_LOSS) == []


def test_all_at_and_after_the_cut_goes() -> None:
    assert kinds(SegmentLoss(100), at(99), at(100), at(101, 1)) == [KEPT, CUT, CUT]
    assert SegmentLoss(0)


def test_runs_without_an_entry_are_unreachable_from_their_first_to_their_last_message() -> None:
    places = [at(n) for n in (99, 100, 200, 201, 399, 400, 401)]
    assert kinds(SegmentLoss(unreached=RUNS), *places) == [KEPT, UNREACHABLE, UNREACHABLE, KEPT, KEPT, UNREACHABLE, KEPT]


def test_neither_another_queues_message_nor_one_that_never_has_an_entry() -> None:
    assert kinds(SegmentLoss(unreached=RUNS), at(150, 1), at(150, 0, SYS_PREPARED), at(150, 0, SYS_ROLLBACK)) == [KEPT] * 3


def test_the_cut_counts_before_all_and_a_missing_entry_before_a_timer() -> None:
    loss = SegmentLoss(400, RUNS, np.array([10_150, 10_300, 10_400]))
    assert kinds(loss, at(150), at(300), at(400)) == [UNREACHABLE, UNDELIVERED, CUT]
