"""Delayed messages as runs: what ends one, and which message of several with one number counts."""

from __future__ import annotations

import numpy as np

from store_io.kinds.delays.delay_runs import HAS_BODY, NO_BODY, DelayRecords, runs_of
from store_io.log.records.message_columns import Columns

DUE = 1_700_000_000_000
Row = tuple[int, int, int, int]  # queue, number, time, what


def runs(rows: list[Row]) -> list[tuple[int, ...]]:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return [tuple(run) for run in runs_of(*columns).tolist()]


def test_a_run_ends_with_its_second_its_queue_its_numbers_and_its_kind() -> None:
    assert runs([(2, 5, DUE, 0), (2, 6, DUE + 999, 0)]) == [(2, 5, 2, DUE, 0)]
    assert runs([(2, 5, DUE, 0), (2, 6, DUE + 1000, 0)]) == [(2, 5, 1, DUE, 0), (2, 6, 1, DUE + 1000, 0)]
    assert runs([(2, 5, DUE, 0), (3, 6, DUE, 0)]) == [(2, 5, 1, DUE, 0), (3, 6, 1, DUE, 0)]
    assert runs([(2, 5, DUE, 0), (2, 7, DUE, 0)]) == [(2, 5, 1, DUE, 0), (2, 7, 1, DUE, 0)]
    assert runs([(2, 5, DUE, HAS_BODY), (2, 6, DUE, NO_BODY)]) == [(2, 5, 1, DUE, HAS_BODY), (2, 6, 1, DUE, NO_BODY)]
    assert runs([(3, 9, DUE, 0), (2, 6, DUE, 0), (2, 5, DUE, 0)]) == [(2, 5, 2, DUE, 0), (3, 9, 1, DUE, 0)]
    assert runs([(2, 5, DUE, 0), (2, 5, DUE + 5000, 1)]) == [(2, 5, 1, DUE + 5000, 1)]
    assert len(runs_of(*(np.zeros(0, np.int64) for _ in range(4)))) == 0


def test_queues_that_are_met_later_are_known_by_then() -> None:
    columns = Columns(8)
    columns.count = 4
    columns.rows["topic_ref"][:4], columns.rows["queue_offset"][:4] = [0, 1, 1, 0], [7, 7, 8, 8]
    columns.rows["tags_code"], columns.rows["body_len"] = DUE, 5
    records = DelayRecords({2: 8}, 99)
    records.add(columns, [("orders", 2), ("other", 2)], None)  # type: ignore[arg-type]
    assert len(records.found()) == 0
    columns.rows["topic_ref"][:4] = [0, 2, 2, 3]
    keys = [("orders", 2), ("other", 2), ("SCHEDULE_TOPIC_XXXX", 2), ("SCHEDULE_TOPIC_XXXX", 0)]
    records.add(columns, keys, None)  # type: ignore[arg-type]
    found = records.found()
    assert [tuple(run) for run in found.tolist()] == [(0, 8, 1, DUE, HAS_BODY), (2, 8, 1, DUE, HAS_BODY)]  # 7 was delivered
