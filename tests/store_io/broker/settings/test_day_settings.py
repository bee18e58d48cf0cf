"""Settings of the hours after a start: broker.conf's value, or the default if the release cannot read it."""

from __future__ import annotations

import pytest

from store_io.broker.releases import broker_rules
from store_io.broker.settings.day_settings import CLEAN, DAY_DEFAULTS, day_settings, named_settings


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


def test_what_is_named_is_what_is_no_default_and_a_property_of_the_jvm_is_known_by_its_line() -> None:
    text = f"fileReservedTime=72\ndeleteWhen=05\nbrokerName=b\n{CLEAN}=0.5\n"
    for release in ("4.9.8", "5.5.1"):
        assert named_settings(text, broker_rules(release)) == {"deleteWhen": "05", CLEAN: "0.5"}
    assert named_settings(None, broker_rules("5.3.3")) == {}
