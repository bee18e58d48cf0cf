"""Runs of a cleaning service: hours, ages, ratios of the disk and batches, each from both sides, by release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from store_io.broker.releases import BrokerRules, broker_rules
from store_io.broker.settings.day_settings import CLEAN, DAY_DEFAULTS, LEDGER_CHECK, LEDGER_CLEAN, WARNING, day_settings
from store_io.broker.settings.read_settings import read_given
from store_io.first_day.cleaning import Cleaning, Disk, LogSegment, next_hour
from store_io.first_day.cleaning_rules import HOUR_MS, CleaningRules, Hours, cleaning_rules, hours_of, ledger_cleaning_rules

AT = 1_795_879_455_000  # 2026-11-28T15:24:15Z
SOON = AT + 60_000
SIZE = 1000


def rules_of(release: str) -> BrokerRules:
    return broker_rules(release, read_given("", release))


def own(release: str = "5.3.3", **settings: Any) -> CleaningRules:
    return cleaning_rules(rules_of(release), {**DAY_DEFAULTS, **settings})


def ledger(release: str = "5.3.3", **settings: Any) -> CleaningRules:
    return ledger_cleaning_rules(rules_of(release), {**DAY_DEFAULTS, **settings})


def log(*ages: float) -> list[LogSegment]:
    """Files of these ages in hours at the first run."""
    return [LogSegment(str(n), SIZE, SOON - round(hours * HOUR_MS)) for n, hours in enumerate(ages)]


def soon(rules: CleaningRules, ages: Sequence[float], percent: float | None = None, size: int | None = None, **more: Any) -> int:
    """How many files go at once."""
    return len(Cleaning(log(*ages), rules, "UTC", Disk(percent, size), **more).soon(SOON)[0])


OLD, YOUNG = [100] * 5, [1] * 5


def test_expired_files_go_in_the_hour_and_at_no_other() -> None:
    assert soon(own(deleteWhen="15"), OLD) == soon(own(deleteWhen="04;15"), OLD) == 4
    assert soon(own(deleteWhen="14"), OLD) == soon(own(deleteWhen="16"), OLD) == soon(own(), OLD) == 0


def test_the_hour_is_that_of_the_zone() -> None:
    cleaning = Cleaning(log(*OLD), own(deleteWhen="23"), "Asia/Shanghai", Disk(None))
    assert len(cleaning.soon(SOON)[0]) == 4
    assert Cleaning(log(*OLD), own(deleteWhen="15"), "Asia/Shanghai", Disk(None)).soon(SOON)[0] == []


def test_a_file_is_expired_to_the_millisecond() -> None:
    assert soon(own(deleteWhen="15"), [72, 71.99, 0]) == 1
    assert soon(own(deleteWhen="15"), [72 - 1 / HOUR_MS, 0]) == 0
    assert soon(own(deleteWhen="15", fileReservedTime=1), [1, 1, 0.5, 0]) == 2


def test_the_first_file_that_is_young_ends_the_scan() -> None:
    assert soon(own(deleteWhen="15"), [100, 1, 100, 100]) == 1
    assert soon(own(deleteWhen="15"), [1, 100, 100, 100]) == 0


def test_the_last_file_stays_unless_another_is_made_behind_it() -> None:
    assert soon(own(deleteWhen="15"), [100]) == 0
    assert soon(own(), YOUNG, 86, made_behind=False) == 4
    assert soon(own(), YOUNG, 86, made_behind=True) == 5
    assert soon(own(deleteWhen="15"), OLD, made_behind=True) == 4  # by its age it stays: it was just written to


@pytest.mark.parametrize(
    ("release", "settings", "percent", "expired", "young"),
    [
        ("5.3.3", {}, 75, 0, 0),
        ("5.3.3", {}, 75.01, 4, 0),  # rounded up to whole percents
        ("5.3.3", {}, 85, 4, 0),
        ("5.3.3", {}, 85.2, 4, 4),
        ("4.9.8", {}, 75.01, 4, 0),
        ("4.9.1", {}, 75, 0, 0),
        ("4.9.1", {}, 75.01, 4, 0),
        ("4.9.2", {"diskMaxUsedSpaceRatio": 80}, 79.5, 0, 0),
        ("4.9.1", {}, 85.2, 4, 4),
        # over 85 % 4.x deletes nothing as long as diskMaxUsedSpaceRatio is higher, 5.x does
        ("4.9.8", {"diskMaxUsedSpaceRatio": 95}, 88, 0, 0),
        ("5.0.0", {"diskMaxUsedSpaceRatio": 95}, 88, 4, 4),
        ("5.0.0", {"diskMaxUsedSpaceRatio": 95}, 85, 0, 0),
        ("5.0.0", {"diskMaxUsedSpaceRatio": 95, "cleanFileForciblyEnable": False}, 88, 4, 0),
        # clamps
        ("5.3.3", {"diskMaxUsedSpaceRatio": 99, "diskSpaceCleanForciblyRatio": 99}, 86, 4, 4),
        ("4.9.8", {"diskMaxUsedSpaceRatio": 99}, 95, 0, 0),
        ("4.9.8", {"diskMaxUsedSpaceRatio": 99}, 96, 4, 4),
        ("4.9.8", {"diskMaxUsedSpaceRatio": 5}, 10, 0, 0),
        ("4.9.8", {"diskMaxUsedSpaceRatio": 5}, 11, 4, 0),
        ("5.3.3", {"diskSpaceCleanForciblyRatio": 50}, 51, 4, 4),
        ("5.3.3", {"diskSpaceCleanForciblyRatio": 20}, 30, 0, 0),
        ("5.3.3", {"diskSpaceCleanForciblyRatio": 20}, 31, 4, 4),
        ("5.3.3", {"diskSpaceWarningLevelRatio": 60}, 61, 4, 4),
        ("5.3.3", {}, None, 0, 0),
    ],
)
def test_the_disk_decides(release: str, settings: dict[str, Any], percent: float | None, expired: int, young: int) -> None:
    rules = own(release, **settings)
    assert (soon(rules, OLD, percent), soon(rules, YOUNG, percent)) == (expired, young)


def test_the_hour_of_4x_is_forced_by_a_full_disk_whatever_the_ratio_that_it_tolerates() -> None:
    quiet = {"diskMaxUsedSpaceRatio": 95}
    assert soon(own("4.9.8", deleteWhen="15", **quiet), YOUNG, 88) == 4
    assert soon(own("4.9.8", deleteWhen="15", **quiet), YOUNG, 85) == 0


def test_settings_of_a_release_that_does_not_read_them() -> None:
    conf = "diskSpaceCleanForciblyRatio=50\ndeleteFileBatchMax=3\n"
    assert day_settings(conf, rules_of("4.9.8"))["diskSpaceCleanForciblyRatio"] == 85
    assert day_settings(conf, rules_of("5.0.0"))["deleteFileBatchMax"] == 3
    assert day_settings(conf, rules_of("4.9.8"))["deleteFileBatchMax"] == 10


def test_forced_runs_end_once_the_disk_is_below() -> None:
    # 30 files of one percent each: ten of a run
    young = [1] * 31
    assert soon(own(), young, 88, 100 * SIZE) == 10
    assert soon(own(), young, 96, 100 * SIZE) == 20
    assert soon(own(deleteFileBatchMax=1), young, 88, 100 * SIZE) == 3
    assert soon(own(deleteFileBatchMax=0), young, 88, 100 * SIZE) == 3
    assert soon(own(), young, 88) == 30  # without a size nothing is known to become free


def test_a_full_disk_costs_expired_files_beyond_the_forced_ones() -> None:
    assert soon(own(), [100] * 20, 80, 100 * SIZE) == 10  # over 75 %, and then not
    assert soon(own(), [100] * 4 + [1] * 16, 80, 100 * SIZE) == 4


def test_runs_end_with_the_hour() -> None:
    rules = own(deleteWhen="15")
    late = AT + 35 * 60_000  # 15:59:15: runs at 0, 10, ... 40 seconds
    files = [LogSegment(str(n), SIZE, 0) for n in range(100)]
    assert len(Cleaning(files, rules, "UTC", Disk(None)).soon(late)[0]) == 50
    assert Cleaning(files, rules, "UTC", Disk(None)).soon(late + 50_000)[0] == []
    assert (
        len(Cleaning([LogSegment(str(n), SIZE, 0) for n in range(9999)], rules, "UTC", Disk(None)).in_hour(AT - 1_455_000)[:])
        == 3600
    )


def test_files_that_expire_within_the_hour_go_then() -> None:
    begin = AT - 1_455_000  # 15:00:00
    files = [
        LogSegment(str(n), SIZE, begin + minutes * 60_000 - 72 * HOUR_MS) for n, minutes in enumerate((-5, 20, 59, 60, 10, 0))
    ]
    assert Cleaning(files, own(deleteWhen="15"), "UTC", Disk(None)).in_hour(begin) == ["0", "1", "2"]


def test_hours_as_java_reads_them() -> None:
    assert hours_of("04") == Hours(frozenset({4}))
    assert hours_of("4;15;") == Hours(frozenset({4, 15}))
    assert hours_of(";") == Hours(frozenset())
    assert hours_of("") == Hours(frozenset(), broken=True)
    assert hours_of("15;x;4") == Hours(frozenset({15}), broken=True)
    assert hours_of("15; 4").broken and hours_of("25") == Hours(frozenset({25}))


def test_an_hour_that_is_no_number_ends_each_run_before_it_deletes() -> None:
    assert soon(own(deleteWhen="x"), OLD, 88) == 0
    assert soon(own(deleteWhen="15;x"), OLD) == 4
    assert soon(own(deleteWhen="14;x"), OLD, 88) == 0
    assert soon(own(deleteWhen="14"), OLD, 88) == 4


def test_the_next_hour() -> None:
    assert next_hour(AT, hours_of("15"), "UTC") == AT - 1_455_000 + 24 * HOUR_MS
    assert next_hour(AT, hours_of("16;4"), "UTC") == AT - 1_455_000 + HOUR_MS
    assert next_hour(AT, hours_of("4"), "Asia/Shanghai") == AT - 1_455_000 + 5 * HOUR_MS
    assert next_hour(AT, hours_of("0"), "Asia/Kolkata") == AT - 1_455_000 + HOUR_MS * 7 // 2  # 20:54 there
    assert next_hour(AT, hours_of("24"), "UTC") is None and next_hour(AT, hours_of(""), "UTC") is None
    # 2026-03-29: clocks of Berlin have no hour 2
    spring = 1_774_742_400_000
    assert next_hour(spring, hours_of("2"), "Europe/Berlin") == spring + 24 * HOUR_MS
    assert next_hour(spring, hours_of("3"), "Europe/Berlin") == spring + HOUR_MS


# ---- DLedger


def test_dledger_keeps_an_hour_more() -> None:
    assert soon(ledger(deleteWhen="15"), [73.5, 73, 72.9, 1]) == 2
    assert soon(own(deleteWhen="15"), [73.5, 73, 72.9, 1]) == 3
    assert ledger(fileReservedTime=-5).reserved_ms == ledger(fileReservedTime=0).reserved_ms == HOUR_MS
    assert (ledger().first_ms, own().first_ms) == (0, 60_000)


@pytest.mark.parametrize(
    ("release", "settings", "percent", "expired", "young"),
    [
        ("4.9.3", {}, 69.9, 0, 0),
        ("4.9.3", {}, 70, 4, 0),  # as a float 0.70 is less
        ("4.9.3", {"diskMaxUsedSpaceRatio": 95}, 72, 4, 0),
        ("4.9.3", {}, 85, 4, 0),
        ("4.9.3", {}, 85.2, 4, 4),
        ("4.9.4", {}, 72, 0, 0),
        ("4.9.4", {}, 75, 0, 0),
        ("4.9.4", {}, 75.01, 4, 0),
        ("5.3.3", {"diskMaxUsedSpaceRatio": 95}, 88, 0, 0),
        ("5.3.3", {"diskMaxUsedSpaceRatio": 80}, 88, 4, 4),
        ("5.3.3", {"cleanFileForciblyEnable": False}, 88, 4, 0),
    ],
)
def test_the_disk_of_dledger_decides(release: str, settings: dict[str, Any], percent: float, expired: int, young: int) -> None:
    rules = ledger(release, **settings)
    assert (soon(rules, OLD, percent), soon(rules, YOUNG, percent)) == (expired, young)
    assert rules.batch == 10 and not math.isinf(own().forced_above)


def test_ratios_of_the_jvm_win_and_are_held_to_the_bounds_of_their_release() -> None:
    assert own("4.9.8", **{CLEAN: "0.2"}).forced_above == 0.2 and own(**{CLEAN: "0.2"}).forced_above == 0.30
    assert own("4.9.8", **{CLEAN: "0.95"}).forced_above == 0.90 and own(**{CLEAN: "0.95"}).forced_above == 0.85
    both: dict[str, Any] = {CLEAN: "0.6", "diskSpaceCleanForciblyRatio": 70}
    assert own(**both).forced_above == 0.6
    for text in ("6e-1", "0.6d", " 0x1.3333333333333p-1 ", ".6F"):  # as Double.parseDouble reads them
        assert own(**{CLEAN: text}).forced_above == 0.6
    assert own(**{CLEAN: "NaN"}).forced_above == 0.90  # that of the warning, which forces as well
    assert math.isinf(own(**{CLEAN: "NaN", WARNING: "NaN"}).forced_above) and math.isinf(
        ledger(**{LEDGER_CLEAN: "NaN"}).forced_above
    )
    assert own("4.9.8", **{CLEAN: "Infinity"}).forced_above == 0.90 and own(**{CLEAN: "-Infinity"}).forced_above == 0.30
    assert own(**{CLEAN: "none"}).forced_above == 0.85 and own(**{WARNING: "0.5"}).full_above == 0.5
    assert ledger("4.9.3", **{LEDGER_CHECK: "0.5"}).expired_above == 0.5
    assert ledger("4.9.4", **{LEDGER_CHECK: "0.5"}).expired_above == 0.75
    assert ledger(**{LEDGER_CLEAN: "0.4"}).forced_above == 0.50


def test_a_disk_forces_above_the_ratio_alone() -> None:
    rules = own(diskSpaceCleanForciblyRatio=60)
    assert rules.forces(60.1) and not rules.forces(60) and not rules.forces(None)
    assert not own(cleanFileForciblyEnable=False).forces(100)
