"""Settings of the hours after a start: broker.conf's value, or the default if the release cannot read it."""

from __future__ import annotations

import pytest

from store_io.broker.releases import broker_rules
from store_io.broker.settings.day_settings import DAY_DEFAULTS, day_settings


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        (None, 72),
        ("", 72),
        ("fileReservedTime=48", 48),
        ("fileReservedTime = 87600", 87600),
        ("fileReservedTime=three days", 72),
        ("fileReservedTime=99999999999", 72),  # no 32 bits
        ("filereservedtime=1", 72),
    ],
)
def test_a_value_that_the_release_reads_counts(text: str | None, hours: int) -> None:
    assert day_settings(text, broker_rules("5.3.3")) == {**DAY_DEFAULTS, "fileReservedTime": hours}
