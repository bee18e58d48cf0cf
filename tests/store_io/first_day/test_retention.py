"""What retention takes of a store: files by the kind of log, messages, and what groups have not consumed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.first_day import Retention, StartMoment, Unread
from store_io.audit.audit_store import run_audit
from store_io.broker.releases import broker_rules
from store_io.broker.settings.day_settings import DAY_DEFAULTS
from store_io.broker.settings.read_settings import read_given
from store_io.first_day import unread
from store_io.first_day.cleaning import Disk, LogSegment
from store_io.first_day.cleaning_rules import cleaning_rules, ledger_cleaning_rules
from store_io.first_day.retention import _Log, _Parts, retention
from store_io.model.audit_request import AuditRequest
from store_io.outcome.plan_writer import audit_plan
from store_io.repair.repair_plan import plan_text
from store_io.source.byte_source import StoreLocation
from tests.support.answers import product
from tests.support.answers.earlier_run import earlier
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

AT = 1_795_879_455_000  # 2026-11-28T15:24:15Z
HOUR = 3_600_000
SIZES = Sizes(segment=2048, queue_file=2000)
BODY = bytes(300)


def store_of(root: Path, messages: int = 24, release: str = "5.3.3", offsets: dict[str, dict[str, int]] | None = None) -> Store:
    builder = StoreBuilder(release, SIZES)
    for number in range(messages):
        builder.put(Message("orders", number % 2, BODY, uniq=f"U{number}"))
    groups = {key.split("@")[1] for key in offsets or {}}
    config = {
        "consumerOffset.json": json.dumps({"offsetTable": offsets or {}}),
        "subscriptionGroup.json": json.dumps({"subscriptionGroupTable": {name: {"groupName": name} for name in groups}}),
    }
    return builder.write(root, config=config)


def age(root: Path, *hours: float) -> list[str]:
    """Give the segments these ages at the first run; the last age is for all others. Returns their paths."""
    files = sorted((root / "commitlog").iterdir())
    for number, path in enumerate(files):
        os.utime(path, ((AT + 60_000 - hours[min(number, len(hours) - 1)] * HOUR) / 1000,) * 2)
    return [f"commitlog/{path.name}" for path in files]


def kept(store: Store, conf: str = "", release: str = "5.3.3", written: int = 0, **moment: object) -> Retention:
    found = product.audit(store.root, release, f"{store.broker_conf}\n{conf}\n")
    assert not found.incomplete
    day = retention(found.audit.evidence, StartMoment(AT, **moment), written)  # type: ignore[arg-type]
    assert day is not None
    return day


def test_what_goes_now_in_the_next_hour_and_with_a_full_disk(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    names = age(tmp_path, 100, 70, 10)
    assert len(names) >= 5
    now = kept(store, "deleteWhen=15")
    assert (now.at_once, now.in_delete_when, now.if_disk_full) == (tuple(names[:1]), tuple(names[1:2]), tuple(names[1:-1]))
    assert (now.reserved_hours, now.delete_when) == (72, "15")
    later = kept(store, "deleteWhen=04\nfileReservedTime=9")
    assert (later.at_once, later.in_delete_when) == ((), tuple(names[:-1]))
    assert later.next_hour_ms == AT - 1_455_000 + 13 * HOUR
    none = kept(store, "cleanFileForciblyEnable=false\nfileReservedTime=1000", disk_used=99.0)
    assert (none.at_once, none.in_delete_when, none.if_disk_full, none.messages) == ((), (), (), 0)
    full = kept(store, disk_used=86.0)
    assert full.at_once == tuple(names[:-1]) and full.if_disk_full == full.in_delete_when == ()


def test_messages_of_the_deleted_segments_are_counted(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    age(tmp_path, 100, 100, 1)
    held = [sum(r.phy_offset // SIZES.segment == n for r in store.records) for n in range(2)]
    assert kept(store, "deleteWhen=15").messages == sum(held)


def test_a_file_made_behind_makes_the_last_one_go_if_that_is_forced(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    names = age(tmp_path, 1)
    assert kept(store, disk_used=86.0, written=1000).at_once == tuple(names)
    assert kept(store, disk_used=86.0, written=0).at_once == tuple(names[:-1])
    assert kept(store, "deleteWhen=15\nfileReservedTime=0", written=1000).at_once == tuple(names[:-1])


def test_a_broker_of_4x_over_90_percent_makes_none(tmp_path: Path) -> None:
    store = store_of(tmp_path, release="4.9.8")
    names = age(tmp_path, 1)
    assert kept(store, release="4.9.8", disk_used=89.0, written=1000).at_once == tuple(names)
    assert kept(store, release="4.9.8", disk_used=91.0, written=1000).at_once == tuple(names[:-1])


def test_spare_files_that_recovery_removes_are_not_in_it(tmp_path: Path) -> None:
    store = store_of(tmp_path, 8)
    spare = tmp_path / "commitlog" / f"{len(os.listdir(tmp_path / 'commitlog')) * SIZES.segment:020}"
    spare.write_bytes(bytes(SIZES.segment))
    (tmp_path / "abort").touch()
    names = age(tmp_path, 100)
    assert kept(store, "deleteWhen=15").at_once == tuple(names[:-2])


def test_several_brokers_on_one_disk_are_not_modelled(tmp_path: Path) -> None:
    store = store_of(tmp_path, 4)
    for conf, known in (("replicasPerDiskPartition=2", False), ("replicasPerDiskPartition=1", True)):
        found = product.audit(store.root, "5.3.3", f"{store.broker_conf}\n{conf}\n")
        assert (retention(found.audit.evidence, StartMoment(AT)) is not None) is known


def test_a_broker_that_does_not_start_deletes_nothing_that_is_known(tmp_path: Path) -> None:
    store = store_of(tmp_path, 4)
    (tmp_path / "commitlog" / "x.swp").write_text("x")
    assert retention(product.audit(store.root, "5.3.3", store.broker_conf).audit.evidence, StartMoment(AT)) is None


# ---- a DLedger log with an older part


def gone_of(
    release: str, old: list[float], ledger: list[float], percent: float | None = None, **settings: object
) -> list[list[str]]:
    """Files that go at once, and in the next hour of deleteWhen."""
    rules = broker_rules(release, read_given("", release))
    day = {**DAY_DEFAULTS, "deleteWhen": "15", **settings}

    def files(part: str, ages: list[float]) -> list[LogSegment]:
        return [LogSegment(f"{part}{n}", 1000, AT + 60_000 - round(hours * HOUR)) for n, hours in enumerate(ages)]

    own, other = cleaning_rules(rules, day), ledger_cleaning_rules(rules, day)
    log = _Log(files("o", old), files("d", ledger), own, other, not rules.at_least("5.0.0"))
    parts = _Parts(log, StartMoment(AT), Disk(percent), False)
    return [parts.soon(), parts.in_hour(AT - 1_455_000 + 24 * HOUR)]


def test_an_older_part_goes_to_its_last_file_up_to_4x_and_then_dledger_deletes() -> None:
    assert gone_of("4.9.8", [100, 100], [100, 100, 1])[0] == ["o0", "o1", "d0", "d1"]
    assert gone_of("4.9.8", [100, 1], [100, 100, 1])[0] == ["o0"]
    assert gone_of("4.9.8", [100, 60], [100, 70, 1]) == [["o0"], ["o1", "d0", "d1"]]


def test_from_5x_on_the_last_old_file_stays_and_dledger_deletes_nothing() -> None:
    assert gone_of("5.4.0", [200, 200], [200, 200]) == [["o0"], []]
    assert gone_of("5.4.0", [200], [200, 200], 99.0) == [[], []]
    assert gone_of("5.4.0", [1, 1], [1, 1], 99.0) == [["o0"], []]


def test_a_dledger_log_alone_has_its_own_rules() -> None:
    for release in ("4.9.8", "5.4.0"):
        assert gone_of(release, [], [200, 72.5, 200]) == [["d0"], ["d1"]]
    assert gone_of("4.8.0", [], [100, 100], 72.0, deleteWhen="3") == [["d0"], []]
    assert gone_of("4.9.8", [], [100, 100], 72.0, deleteWhen="3") == [[], []]


# ---- groups


def test_groups_that_have_not_consumed_what_goes(tmp_path: Path) -> None:
    offsets = {
        "orders@behind": {"0": 1, "1": 2},
        "orders@done": {"0": 12, "1": 12},
        "orders@new": {"0": 0},
        "other@new": {"0": 0},
    }
    store = store_of(tmp_path, offsets=offsets)
    age(tmp_path, 100, 100, 1)
    gone = [r for r in store.records if r.phy_offset < 2 * SIZES.segment]
    found = kept(store, "deleteWhen=15")
    counts = {
        (group, queue): sum(r.queue_id == queue and r.queue_offset >= offset for r in gone)
        for group, queue, offset in (("behind", 0, 1), ("behind", 1, 2), ("new", 0, 0))
    }
    assert {(row.group, row.queue_id): row.messages for row in found.unread} == counts
    assert found.unread[0] == Unread("new", "orders", 0, counts["new", 0]) and found.unread_more == 0


def test_a_group_that_the_table_does_not_hold_is_left_out(tmp_path: Path) -> None:
    store = store_of(tmp_path, offsets={"orders@behind": {"0": 0}})
    age(tmp_path, 100, 100, 1)
    (tmp_path / "config" / "subscriptionGroup.json").write_text('{"subscriptionGroupTable": {}}')
    assert kept(store, "deleteWhen=15").unread == ()


def test_the_largest_ones_are_shown_and_the_rest_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = {f"orders@g{n}": {"0": n % 3, "1": 0} for n in range(15)}
    store = store_of(tmp_path, offsets=offsets)
    age(tmp_path, 100, 100, 1)
    found = kept(store, "deleteWhen=15")
    assert (len(found.unread), found.unread_more) == (20, 10)
    counts = [row.messages for row in found.unread]
    assert counts == sorted(counts, reverse=True)
    monkeypatch.setattr(unread, "MOST", 100)
    every = kept(store, "deleteWhen=15")
    assert every.unread[:20] == found.unread and len(every.unread) == 30


def test_an_offset_is_looked_at_once_however_many_queues_there_are(tmp_path: Path) -> None:
    store = store_of(tmp_path, offsets={"orders@behind": {"0": 1}})
    names = age(tmp_path, 100, 100, 1)
    segments = product.audit(store.root, "5.3.3", store.broker_conf).audit.evidence.segments
    wanted = [segment for segment in segments if segment.path in names[:2]]
    found = unread.gone_offsets(wanted, {("orders", 0), ("none", 0)})
    ends = [r.queue_offset for r in store.records if r.queue_id == 0 and r.phy_offset < 2 * SIZES.segment]
    assert found == {("orders", 0): [(0, max(ends) + 1)]}


@pytest.mark.parametrize("age_hours", [(100, 100, 1), (100, 100, 100, 100, 1)])
def test_segments_that_were_verified_before_count_too(tmp_path: Path, age_hours: tuple[float, ...]) -> None:
    store = store_of(tmp_path, 60, offsets={"orders@behind": {"0": 1, "1": 3}, "orders@done": {"0": 30, "1": 30}})
    names = age(tmp_path, *age_hours)
    location, conf = StoreLocation(str(tmp_path)), f"{store.broker_conf}\ndeleteWhen=15\n"
    request = AuditRequest("s", location, "5.3.3", conf, start=StartMoment(AT))
    before = run_audit(request)
    again = run_audit(replace(request, earlier=earlier(before), reuse=True))
    assert {file.path for file in again.evidence.unread} >= set(names[:3])
    ours, whole = (audit.outcome().first_day for audit in (again, before))
    assert ours is not None and whole is not None and ours.retention is not None and whole.retention is not None
    assert replace(ours.retention, timers_lost=None) == replace(whole.retention, timers_lost=None)
    assert len(ours.retention.unread) == 2 and ours.retention.unread_more == 0
    moved = replace(request, start=StartMoment(AT + HOUR), earlier=earlier(before), reuse=True)  # of its own moment
    day = run_audit(moved).outcome().first_day
    assert day is not None and day.retention is not None and day.retention.at_once == ()


def test_two_audits_of_one_moment_have_equal_plans(tmp_path: Path) -> None:
    store = store_of(tmp_path, offsets={"orders@behind": {"0": 1}})
    age(tmp_path, 100, 70, 1)
    request = AuditRequest("s", StoreLocation(str(tmp_path)), "5.3.3", store.broker_conf, start=StartMoment(AT, disk_used=80.0))
    one, other = (run_audit(request).outcome() for _ in range(2))
    first = audit_plan(one)
    assert plan_text(one) == plan_text(other) and first["first_day"]["as_of"] == "2026-11-28T15:24:15Z"
    later = audit_plan(run_audit(replace(request, start=StartMoment(AT + 1))).outcome())
    assert later["first_day"] != first["first_day"]
    plain = audit_plan(run_audit(replace(request, start=None)).outcome())
    assert {**later, "first_day": None} == {**first, "first_day": None} == plain


def test_an_hour_after_the_last_message(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    request = AuditRequest("s", StoreLocation(str(tmp_path)), "5.3.3", store.broker_conf, start=StartMoment(0, after_stop=True))
    day = run_audit(request).outcome().first_day
    assert day is not None and day.moment.at_ms == store.records[-1].store_time + HOUR
    shutil.rmtree(tmp_path / "commitlog")
    (tmp_path / "commitlog").mkdir()
    assert audit_plan(run_audit(request).outcome())["first_day"] is None


@pytest.mark.parametrize("store_time", [1 << 55, 9_223_372_036_854_775_807])
def test_after_a_last_message_whose_time_no_calendar_holds_no_start_is_known(tmp_path: Path, store_time: int) -> None:
    """No checksum of a message covers its store time."""
    builder = StoreBuilder("5.3.3", SIZES)
    for time in (1_795_000_000_000, store_time):
        builder.put(Message("orders", 0, BODY, store_time=time))
    store = builder.write(tmp_path)
    request = AuditRequest("s", StoreLocation(str(tmp_path)), "5.3.3", store.broker_conf, start=StartMoment(0, after_stop=True))
    outcome = run_audit(request).outcome()
    assert outcome.first_day is None and outcome.exit_code != 3
