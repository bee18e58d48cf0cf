"""The acts on the copy that make a new log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from store_io.base.errors import StoreError
from store_io.repair.log.edits import Edit, LogPlan, apply_edits
from store_io.repair.repair_steps import REMOVE, Step, Steps
from store_io.repair.repair_work import Work


def test_an_act_that_is_not_in_the_plan_is_not_carried_out() -> None:
    done: list[Any] = []
    edit = Edit(Step(REMOVE, "commitlog/1"), done.append)
    apply_edits(cast(Work, SimpleNamespace(steps=Steps(), writer="writer")), [edit])
    assert done == ["writer"]
    with pytest.raises(StoreError, match="is not in the plan"):
        apply_edits(cast(Work, SimpleNamespace(steps=Steps([]), writer="writer")), [edit])
    assert done == ["writer"]


def test_added_segments_do_not_count_as_the_log_s_own_end() -> None:
    log = LogPlan(end=100)
    log.add_bridge(4096, 8, 20, "segment", store_time=7)
    path = "commitlog/00000000000000004096"
    assert log.bridges == [{"file": path, "start": 8, "end": 20, "phy_offset": 4104, "kind": "segment", "store_time": 7}]
    assert log.own_end == 100
    log.padded_from, log.end = 100, 200
    assert log.own_end == 100
