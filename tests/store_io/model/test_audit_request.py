"""What is asked of an audit, and what an earlier run says of a segment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from schemas.rows import EarlierRun, EarlierSegment
from tests.support.handmade.evidence import log_path, request_of

BEFORE = EarlierRun(
    "r0", "5.3.3", {}, {log_path(0): EarlierSegment(1000, 7, "e", True, "r0", datetime(2026, 11, 1, tzinfo=UTC), {})}
)


@pytest.mark.parametrize(
    ("asked", "whole"), [({}, True), ({"level": "quick"}, False), ({"not_after": 5.0}, False), ({"earlier": BEFORE}, False)]
)
def test_whole_is_only_what_nothing_bounds(asked: dict[str, object], whole: bool) -> None:
    assert request_of(**asked).whole is whole and request_of(**asked).quick is ("level" in asked)


def test_what_the_earlier_run_says() -> None:
    request = request_of(earlier=BEFORE)
    assert request.was_damaged(log_path(0)) and request.known(log_path(0)) is BEFORE.segments[log_path(0)]
    assert not request.was_damaged(log_path(1000)) and request.known(log_path(1000)) is None
    assert request_of().known(log_path(0)) is None
