"""Which files in config/ a release reads."""

from __future__ import annotations

import pytest

from store_io.broker.releases import Setting, broker_rules
from store_io.broker.settings.config_rules import CONFIG_FILES, config_files


@pytest.mark.parametrize(
    ("release", "timers", "count"),
    [("4.6.1", True, 5), ("4.8.0", True, 5), ("5.0.0", False, 8), ("5.0.0", True, 10), ("5.3.0", True, 11)],
)
def test_each_release_reads_its_own(release: str, timers: bool, count: int) -> None:
    given = {"timerWheelEnable": Setting(timers, "broker.conf")}
    assert len(config_files(broker_rules(release, given))) == count


def test_light_queues_have_a_table_of_offsets_where_the_release_knows_them() -> None:
    given = {"enableLmq": Setting(True, "broker.conf")}
    for release, name in (("4.9.2", "config/consumerOffset.json"), ("4.9.3", "config/lmqConsumerOffset.json")):
        assert config_files(broker_rules(release, given))[1].path == name


def test_delays_and_timers_are_loaded_after_recovery() -> None:
    assert {file.path for file in CONFIG_FILES if file.late} == {"config/timermetrics", "config/delayOffset.json"}


def test_the_oldest_releases_read_delays_before_the_log() -> None:
    for release, late in (("4.8.0", False), ("4.9.2", True), ("5.5.0", True)):
        (delays,) = (file for file in config_files(broker_rules(release)) if file.path == "config/delayOffset.json")
        assert delays.late == late
