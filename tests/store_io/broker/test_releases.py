"""A release is one row of changes; what the audit calls damage is pinned to one of them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from store_io.base.errors import UsageError
from store_io.broker import releases
from store_io.broker.message_verdict import AUDIT_RULES
from store_io.broker.releases import (
    CHANGES,
    NEWEST_RELEASE,
    ReleaseRules,
    Setting,
    broker_rules,
    known_release,
    parse_known,
    parse_release,
    release_rules,
)


def settings(**values: object) -> dict[str, Setting]:
    return {key: Setting(value, "broker.conf") for key, value in values.items()}


def test_each_row_changes_something_against_the_row_before() -> None:
    names = {one.name for one in fields(ReleaseRules)}
    assert list(CHANGES) == sorted(CHANGES, key=parse_known)
    before = vars(ReleaseRules()).copy()
    for release, changed in CHANGES.items():
        assert set(changed) <= names, release
        for name, value in changed.items():
            assert before[name] != value, f"{release} says {name} again"
        before.update(changed)
        assert vars(release_rules(parse_known(release))) == before
    assert {name for changed in CHANGES.values() for name in changed} == names, "a rule that no release changes"


def test_a_release_between_two_known_ones_takes_the_older_one_s_rules() -> None:
    assert release_rules((5, 1, 9)) == release_rules((5, 1, 4))
    assert broker_rules("4.9.30").knows_v2 is False


@pytest.mark.parametrize(
    ("named", "known"),
    [
        ("5.3.9", "5.3.4"),
        ("5.3.77", "5.3.4"),
        ("4.7.5", "4.7.1"),
        ("5.6.0", NEWEST_RELEASE),
        ("10.0.0", NEWEST_RELEASE),
        ("5.2.0",) * 2,
    ],
)
def test_a_number_that_is_not_known_takes_the_rules_of_the_newest_known_one_below(named: str, known: str) -> None:
    assert known_release(named) == known
    assert release_rules(parse_release(named)) == release_rules(parse_known(known))


@pytest.mark.parametrize("text", ["4.6.0", "4.5.2", "3.2.6", "5.3", "five", "5.5.1-SNAPSHOT", "5.5.1.2", "-5.5.1", ""])
def test_older_releases_and_what_is_no_number_are_refused(text: str) -> None:
    for asked in (parse_release, known_release, broker_rules):
        with pytest.raises(UsageError):
            asked(text)


def test_rules_that_only_some_releases_have() -> None:
    def having(name: str) -> list[str]:
        return [release for release in CHANGES if getattr(broker_rules(release), name)]

    assert having("ignores_misfits") == ["4.9.2"]
    assert having("late_delays") == ["4.9.2", "4.9.3", "4.9.4", "4.9.5", "4.9.6", "4.9.7", "4.9.8"]
    assert having("refused_appends_use_offsets") == ["5.0.0", "5.1.0"]
    assert having("old_property_parser") == ["4.6.1", "4.7.0", "4.7.1", "4.8.0", "4.9.0"]
    assert having("ledger_crash_demands_dup_info") == ["5.2.0"]
    assert having("controller_mode_throws") == ["5.1.2"]
    assert having("checks_sign_first") == having("resets_empty_queues") == ["5.5.1"]
    assert set(having("start_by_record_check")) - set(having("limits_start_search")) == {"5.3.4"}
    assert broker_rules("4.9.5").delays_in_recovery == {} != broker_rules("5.0.0").delays_in_recovery


@pytest.mark.parametrize(
    ("setting", "rule", "since"),
    [
        ("forceVerifyPropCRC", "verify_property_crc", "5.2.0"),
        ("duplicationEnable", "dup_info", "5.0.0"),
        ("enableMultiDispatch", "multi_dispatch", "4.9.3"),
        ("enableLmq", "lmq_offsets", "4.9.3"),
        ("enableControllerMode", "controlled", "5.1.1"),
        ("enableAcceleratedRecovery", "accelerated", "5.5.0"),
        ("checkCommitLogOffsetOnRecover", "checks_phy_offset", "5.5.0"),
    ],
)
def test_a_setting_counts_from_the_release_on_that_knows_it(setting: str, rule: str, since: str) -> None:
    for release in CHANGES:
        given = broker_rules(release, settings(**{setting: True}))
        assert getattr(given, rule) is (parse_known(release) >= parse_known(since)), release
        assert getattr(broker_rules(release), rule) is False


def test_timers_are_read_from_5_0_0_on_unless_a_setting_forbids_it() -> None:
    for release in CHANGES:
        assert broker_rules(release).timers is (parse_known(release) >= (5, 0, 0))
        assert not broker_rules(release, settings(timerWheelEnable=False)).timers


def test_the_index_is_built_unless_a_setting_that_the_release_knows_forbids_it() -> None:
    for release in CHANGES:
        assert broker_rules(release).builds_index
        assert not broker_rules(release, settings(messageIndexEnable=False)).builds_index
        off = broker_rules(release, settings(indexFileWriteEnable=False))
        assert off.builds_index is (parse_known(release) < (5, 4, 0))


def test_start_catches_up_in_4_and_later_only_when_told_to() -> None:
    for release in CHANGES:
        assert broker_rules(release).dispatches_at_start is release.startswith("4.")
        assert broker_rules(release, settings(recheckReputOffsetFromCq=True)).dispatches_at_start


def test_a_newer_release_changes_nothing_that_the_audit_calls_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AUDIT_RULES.release == releases.AUDIT_RELEASE in CHANGES
    monkeypatch.setitem(CHANGES, "9.0.0", {"knows_v2": False, "checks_size_first": False, "inner_batch": False})
    assert release_rules((9, 0, 0)) != release_rules((5, 5, 0))
    assert broker_rules(releases.AUDIT_RELEASE) == AUDIT_RULES
    assert AUDIT_RULES.knows_v2 and AUDIT_RULES.checks_size_first and AUDIT_RULES.check_crc


@pytest.mark.parametrize(
    ("role", "broker_id", "slave"),
    [
        ("ASYNC_MASTER", 0, False),
        ("SYNC_MASTER", 0, False),
        ("SLAVE", 0, True),
        ("ASYNC_MASTER", 1, True),
        ("ASYNC_MASTER", -1, True),
    ],
)
def test_only_the_broker_with_id_0_and_another_role_than_slave_is_a_master(role: str, broker_id: int, slave: bool) -> None:
    assert broker_rules("5.3.3", settings(brokerRole=role, brokerId=broker_id)).is_slave is slave
