"""Which segments may be gone by now, by a plan and the broker's own settings."""

from __future__ import annotations

import pytest

from store_io.broker.releases import broker_rules
from store_io.broker.settings.day_settings import DAY_DEFAULTS
from store_io.first_day.after_start import Leaving
from store_io.first_day.cleaning_rules import HOUR_MS, cleaning_rules

AT_HALF_PAST_FOUR = 4 * HOUR_MS + HOUR_MS // 2
LEAVING = Leaving(frozenset(), frozenset({"commitlog/0"}), frozenset(), AT_HALF_PAST_FOUR, "UTC", 72, True)


@pytest.mark.parametrize(
    ("hour", "later_ms", "gone"),
    [("04", 0, True), ("05", 0, False), ("05", HOUR_MS // 2, True), ("03", 20 * HOUR_MS, False), ("03", 23 * HOUR_MS, True)],
)
def test_the_hour_of_the_start_itself_counts(hour: str, later_ms: int, gone: bool) -> None:
    rules = cleaning_rules(broker_rules("5.3.3"), {**DAY_DEFAULTS, "deleteWhen": hour})
    assert LEAVING.by_now(AT_HALF_PAST_FOUR + later_ms, None, rules, 72) == (LEAVING.in_delete_when if gone else frozenset())
