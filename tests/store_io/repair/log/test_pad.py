"""Segments that are put after a log whose end the release would not take."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from store_io.repair.log.edits import LogPlan
from store_io.repair.log.pad import pad, would_cut_again
from store_io.repair.repair_audit import Audited
from tests.support.stores.builders import walk
from tests.support.stores.small_repairs import SIZES, copied, small_store


def test_a_start_is_led_to_the_added_segment(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, audit):
        assert audit.prediction is not None and audit.prediction.truncate_at is not None
        end = audit.prediction.truncate_at
        log = LogPlan(end=end, messages=60)
        pad(work, audit, log)
        base = end - end % SIZES.segment + SIZES.segment
        (record,) = walk(work.source.read_small(f"commitlog/{base:020d}"), base)
        assert (record.topic, log.end) == ("STORE_AUDIT_BRIDGE", base + record.size)
        assert log.own_end == end  # what is counted as lost lies after it
        entry = work.source.read_small("consumequeue/STORE_AUDIT_BRIDGE/0/" + "0" * 20)[:20]
        assert struct.unpack(">qiq", entry) == (base, record.size, 0)
        assert [step.action for step in work.steps.done] == ["fill", "add_segment", "rebuild_queue", "write_checkpoint"]


@pytest.mark.parametrize(
    ("reason", "at", "expected"), [("property_crc", 50, True), ("property_crc", 100, False), ("damaged", 50, False)]
)
def test_when_it_is_needed(reason: str, at: int, expected: bool) -> None:
    prediction = SimpleNamespace(starts=True, truncate_at=at, stop_reason=reason)
    audit = cast(Audited, SimpleNamespace(prediction=prediction, complete=True))
    assert would_cut_again(audit, LogPlan(end=100)) is expected
