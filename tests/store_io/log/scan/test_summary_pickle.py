"""Summaries survive their way between processes, small or large, and share the queues that they name."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest

from schemas.rows import RUN_DTYPE, SegmentSummary
from store_io.log.scan.stored_runs import PACKED_FROM, KeyTable


def summary(runs: int) -> SegmentSummary:
    rows = np.zeros(runs, RUN_DTYPE)
    rows["first_phy_offset"] = np.arange(runs) * 1000 + (1 << 40)
    rows["queue"] = np.arange(runs) % 7
    return SegmentSummary("commitlog/0", 0, 1 << 30, runs=rows, queues=[("T", i) for i in range(7)])


@pytest.mark.parametrize("runs", [0, 1, PACKED_FROM - 1, PACKED_FROM, 1000])
def test_every_field_comes_back(runs: int) -> None:
    sent = summary(runs)
    came = pickle.loads(pickle.dumps(sent, protocol=5))
    assert came.runs.dtype == RUN_DTYPE and came.runs.tobytes() == sent.runs.tobytes()
    for field in fields(SegmentSummary):
        if field.name not in ("runs", "index_runs"):
            assert getattr(came, field.name) == getattr(sent, field.name), field.name


def test_many_runs_are_sent_packed() -> None:
    sent = summary(5000)
    assert len(pickle.dumps(sent, protocol=5)) < sent.runs.nbytes / 4


def test_equal_queues_become_one_list_or_at_least_one_key() -> None:
    table, (one, two, three) = KeyTable(), (summary(1) for _ in range(3))
    three.queues = [("T", 0), ("U", 1)]
    for each in (one, two, three):
        table.share(each)
    assert two.queues is one.queues
    assert three.queues == [("T", 0), ("U", 1)] and three.queues[0] is one.queues[0]
