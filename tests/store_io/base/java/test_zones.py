"""Names of time zones, as JVMs of Java 17 and 25 took them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from store_io.base.java.zones import local_time, zone
from tests import ROOT

SUMMER, WINTER = (datetime(2026, month, 15, 12, tzinfo=UTC) for month in (7, 1))


@pytest.mark.parametrize(
    ("name", "summer", "winter"),
    [
        ("UTC", 0, 0),
        ("Asia/Shanghai", 480, 480),
        ("Europe/Berlin", 120, 60),
        ("Etc/GMT+8", -480, -480),  # the sign is POSIX's
        ("GMT+8", 480, 480),
        ("GMT-0330", -210, -210),
        ("GMT+05:30", 330, 330),
        ("GMT+830", 510, 510),
        ("GMT+23:59", 1439, 1439),
        ("GMT-0", 0, 0),
        ("CST", -300, -360),  # Chicago's
        ("CTT", 480, 480),
        ("PST", -420, -480),
        ("EST", -300, -300),
        ("IST", 330, 330),
        ("BST", 360, 360),  # Dhaka's
    ],
)
def test_a_name_means_what_a_jvm_takes_it_for(name: str, summer: int, winter: int) -> None:
    found = zone(name)
    assert found is not None
    for at, minutes in ((SUMMER, summer), (WINTER, winter)):
        offset = at.astimezone(found).utcoffset()
        assert offset is not None and offset.total_seconds() == minutes * 60
        assert local_time(int(at.timestamp() * 1000), name).utcoffset() == offset


@pytest.mark.parametrize(
    "name",
    ["UTC+8", "GMT8", "GMT+", "GMT+24", "GMT+860", "GMT+8:5", "gmt+8", "+08:00", "Z", "ROC", "Factory", "right/UTC",
     "posix/Asia/Shanghai", "localtime", "", "../UTC", "/etc/localtime", "Asia", "Nowhere/No", "A\0B", "x" * 5000],
)  # fmt: skip
def test_a_name_that_no_jvm_knows_is_no_zone(name: str) -> None:
    assert zone(name) is None and local_time(0, name).utcoffset() == UTC.utcoffset(None)


def test_zones_are_known_where_the_system_has_none() -> None:
    """As in a container without /usr/share/zoneinfo."""
    code = "from store_io.base.java import zones; print([n for n in ('Asia/Shanghai', *zones._SHORT) if zones.zone(n) is None])"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONTZPATH": ""}, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
