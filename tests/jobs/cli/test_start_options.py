"""When and on which disk a broker is started, as command lines and fleet files say it."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from jobs.cli.options import from_word, parse, to_word
from jobs.cli.start_options import AskedStart, asked_start, machine_zone
from schemas.first_day import StartMoment
from store_io.base.errors import UsageError
from store_io.base.java.zones import local_time, zone
from tests.jobs.cli.conftest import audit

AT = 1_795_879_455_000
START = ("--start-at", "2026-11-28T15:24:15Z", "--timezone", "Asia/Shanghai", "--disk-used", "87.5", "--disk-size", "262144000")


def test_a_moment_and_a_disk_reach_the_store(tmp_path: Path) -> None:
    asked = audit(tmp_path / "s", "--out", tmp_path / "o", *START)
    assert asked.stores[0].start == AskedStart(AT, False, "Asia/Shanghai", 87.5, 262144000)
    assert from_word(to_word(asked)) == asked
    assert asked.stores[0].start.moment(5_000_000) == StartMoment(AT, "Asia/Shanghai", 87.5, 262144000, decided=True, now_ms=5)
    zoned = audit(tmp_path / "s", "--out", tmp_path / "o", "--start-at", "2026-11-28T23:24:15+08:00").stores[0].start
    assert zoned.at_ms == AT


def test_without_options_the_start_is_now_and_nobody_has_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    start = audit(tmp_path / "s", "--out", tmp_path / "o").stores[0].start
    assert start.moment(7_000_000) == StartMoment(7, "Europe/Berlin", now_ms=7)
    assert start.moment(7_000_000, decided=True).decided


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--start-at", "2026-11-28T15:24:15", "must say its zone"),
        ("--start-at", "2026-11-28", "must say its zone"),
        ("--start-at", "tomorrow", "must be a time with its zone"),
        ("--start-at", "stop", "must be a time with its zone"),
        ("--start-at", "1969-11-28T15:24:15Z", "from 1970 to 2261"),
        ("--start-at", "9999-12-31T23:59:59Z", "from 1970 to 2261"),
        ("--timezone", "Asia/Shangai", "no JVM knows a time zone of this name"),
        ("--timezone", "UTC+8", "one is Asia/Shanghai, UTC, or GMT"),
        ("--timezone", "", "needs a value"),
        ("--timezone", "../zone", "a time zone of this name"),
        ("--disk-used", "101", "from 0 to 100"),
        ("--disk-used", "-1", "from 0 to 100"),
        ("--disk-used", "100.01", "from 0 to 100"),
        ("--disk-used", "nan", "from 0 to 100"),
        ("--disk-size", "0", "whole number of bytes"),
        ("--disk-size", "1G", "whole number of bytes"),
    ],
)
@pytest.mark.parametrize("command", ["audit", "rescue", "repair"])
def test_what_is_no_start_is_a_usage_error(command: str, option: str, value: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as problem:
        parse([command, "s", f"{option}={value}"])
    assert option in str(problem.value)


def test_a_row_of_a_fleet_has_its_own_start(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    rows = (
        "",
        'start_at = "stop"\ntimezone = "Asia/Shanghai"',
        "start_at = 2026-11-28T15:24:15Z\ndisk_used = 43.6\ndisk_size = 1000",
        'start_at = "2026-11-28T15:24:15Z"\ndisk_used = 43',
    )
    fleet.write_text("".join(f'[[store]]\npath = "p{n}"\n{row}\n' for n, row in enumerate(rows)))
    stores = audit("--fleet", fleet, "--out", tmp_path / "o", "--timezone", "UTC", "--disk-used", "5").stores
    assert [store.start for store in stores] == [
        AskedStart(None, False, "UTC", 5.0),
        AskedStart(None, True, "Asia/Shanghai", 5.0),
        AskedStart(AT, False, "UTC", 43.6, 1000),
        AskedStart(AT, False, "UTC", 43.0),
    ]
    assert stores[1].start.moment(7) == StartMoment(0, "Asia/Shanghai", 5.0, None, decided=True, after_stop=True)


@pytest.mark.parametrize(
    "row",
    [
        'start_at = "2026-11-28T15:24:15"',
        "start_at = 2026-11-28T15:24:15",
        "start_at = 5",
        'timezone = "Nowhere/No"',
        "timezone = 5",
        "disk_used = 101",
        "disk_used = true",
        "disk_used = -0.5",
        "disk_size = 1.5",
    ],
)
def test_a_bad_start_in_a_fleet_file_is_a_usage_error(row: str, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(f'[[store]]\npath = "a"\n[[store]]\npath = "b"\n{row}\n')
    with pytest.raises(UsageError, match=f"store 2 of the fleet file: {row.split()[0]} "):
        audit("--fleet", fleet, "--out", tmp_path / "o")


def test_the_words_of_a_start_mean_the_same_start() -> None:
    assert asked_start(parse(["rescue", "s", *START]).options).words() == START
    later = AskedStart(AT + 250).words()
    assert later == ("--start-at", "2026-11-28T15:24:15.250Z")
    assert asked_start(parse(["repair", "s", *later]).options) == AskedStart(AT + 250)
    assert AskedStart().words() == ()


def test_this_machine_has_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in (("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo")):
        monkeypatch.setenv("TZ", name)
        assert machine_zone() == found
    monkeypatch.setenv("TZ", "No/Zone")
    monkeypatch.setattr(os.path, "realpath", lambda _: "/usr/share/zoneinfo/America/Lima")
    assert machine_zone() == "America/Lima"
    monkeypatch.setattr(os.path, "realpath", lambda _: "/etc/localtime")
    assert machine_zone() == "UTC"


def test_clocks_of_a_zone_show_its_own_hour() -> None:
    assert local_time(AT, "UTC").hour == 15 and local_time(AT, "Asia/Shanghai").hour == 23
    assert zone("Asia/Shanghai") is not None and zone("Asia") is None and zone("\0") is None


def test_an_option_without_a_value_of_its_kind_names_itself() -> None:
    with pytest.raises(ArgumentTypeError):
        from jobs.cli.start_options import start_time

        start_time("")
