"""Segments that are put after a log whose end the release would not take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from store_io.repair.log.edits import LogPlan
from store_io.repair.log.pad import would_cut_again
from store_io.repair.repair_audit import Audited


@pytest.mark.parametrize(
    ("reason", "at", "expected"), [("property_crc", 50, True), ("property_crc", 100, False), ("damaged", 50, False)]
)
def test_when_it_is_needed(reason: str, at: int, expected: bool) -> None:
    prediction = SimpleNamespace(starts=True, truncate_at=at, stop_reason=reason)
    audit = cast(Audited, SimpleNamespace(prediction=prediction, complete=True))
    assert would_cut_again(audit, LogPlan(end=100)) is expected
