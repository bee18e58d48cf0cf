"""after-start as it is typed, on stores that a broker is said to have run on: what it may change by itself, and what not."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import entry
from jobs.commands import after_start as command
from schemas.first_day import StartMoment
from store_io.audit.audit_store import run_local
from store_io.first_day.after_start import edges_of, read_ends, state_of
from store_io.model.audit_request import AuditRequest
from store_io.repair.repair_plan import plan_text
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.answers.repaired import content
from tests.support.damage import invert_byte
from tests.support.stores import dledger_stores, rocksdb_stores
from tests.support.stores.builders import Message, StoreBuilder

RELEASE = "5.3.3"
SEGMENT = 4096


def builder(messages: int = 60) -> StoreBuilder:
    built = StoreBuilder(RELEASE)
    for number in range(messages):
        built.put(Message(f"Topic{number % 2}", 0, bytes([number]) * 150, keys=f"k{number}"))
    return built


def plan_of(root: Path, conf: str, release: str = RELEASE, **more: Any) -> dict[str, Any]:
    """The plan that a repair leaves beside its new store."""
    location = StoreLocation(str(root))
    start = StartMoment(time.time_ns() // 1_000_000, disk_used=50.0)
    outcome = run_local(AuditRequest("store", location, release, conf, start=start))
    plan: dict[str, Any] = json.loads(plan_text(outcome))
    state = state_of(read_ends(plan["broker"]), [row["file"] for row in plan["inputs"]])
    return {**plan, "edges": [edge._asdict() for edge in edges_of(open_source(location), state)], **more}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with store/ and its plan.json."""
    folder = tmp_path_factory.mktemp("made")
    store = builder().write(folder / "store")
    (folder / "plan.json").write_text(json.dumps(plan_of(store.root, store.broker_conf)))
    return folder


@pytest.fixture
def started(made: Path, tmp_path: Path) -> Path:
    """The same, in which a broker runs and has written nothing yet."""
    shutil.copytree(made, tmp_path / "made")
    (tmp_path / "made" / "store" / "abort").touch()
    return tmp_path / "made"


def asked(folder: Path, *words: str) -> int:
    return entry.main(["after-start", str(folder / "store"), "--plan", str(folder / "plan.json"), *words])


def grow(folder: Path, messages: int = 10) -> None:
    """Append, as the broker does, to its own store: new bytes behind the old ends alone."""
    shutil.rmtree(folder / "store")
    builder(60 + messages).write(folder / "store", clean=False)


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "store" / "commitlog").iterdir())


def flip(path: Path, at: int) -> None:
    invert_byte(path, at, 1)


def day(
    as_of: str = "2026-01-01T05:00:00Z", disk_used: float | None = 50.0, hours: int = 72, **parts: list[str]
) -> dict[str, Any]:
    """The first day of a plan, by which these segments go."""
    lists = {"at_once": [], "in_delete_when": [], "if_disk_full": [], **parts}
    return {"as_of": as_of, "timezone": "UTC", "disk_used": disk_used, "retention": {"reserved_hours": hours, **lists}}


def retained(folder: Path, count: int, said: int) -> None:
    """Retention deletes some segments; the plan has said how many, or nothing."""
    plan = json.loads((folder / "plan.json").read_text())
    names = [f"commitlog/{path.name}" for path in segments(folder)]
    plan["first_day"] = day(at_once=names[:1], in_delete_when=names[1:said])
    (folder / "plan.json").write_text(json.dumps(plan))
    for path in segments(folder)[:count]:
        path.unlink()


@pytest.mark.parametrize("words", [(), ("--full",)])
def test_a_store_as_it_was_is_as_predicted_and_only_read(
    started: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = content(started)
    assert asked(started, *words) == 0
    said = capsys.readouterr().out
    assert said.startswith("As predicted: 60 of 60 predicted queue entries are there, and nothing came or went.\n")
    assert ("Bytes between them were not read; --full reads them" in said) is (not words)
    assert content(started) == before


@pytest.mark.parametrize("words", [(), ("--full",)])
@pytest.mark.parametrize("messages", [1, 60])  # in the last segment alone; in further segments, queue and index files, too
def test_a_store_that_grew_is_as_predicted_and_grown(
    started: Path, messages: int, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    grow(started, messages)
    assert asked(started, *words) == 10
    said = capsys.readouterr().out
    assert said.startswith("As predicted, and grown or aged: 60 of 60 predicted queue entries are there; the log grew by ")
    assert f"Topic0: {-(-messages // 2)} new entr" in said


def cut_whole(folder: Path) -> None:
    segments(folder)[-1].unlink()


def cut_zeros(folder: Path) -> None:
    path = segments(folder)[-1]
    data = path.read_bytes()
    used = len(data.rstrip(b"\0"))
    path.write_bytes(data[: used - 100].ljust(len(data), b"\0"))


def cut_and_written_over(folder: Path) -> None:
    """As after a recovery that ended early and new messages: what was there follows them."""
    path = segments(folder)[2]
    old = path.read_bytes()
    other = StoreBuilder(RELEASE, first_offset=2 * SEGMENT)
    other.put(Message("Other", 0, b"new", queue_offset=0))
    new = bytes(other.segments[2 * SEGMENT])
    path.write_bytes(new + old[len(new) :])


def first_bytes(folder: Path) -> None:
    flip(segments(folder)[0], 20)


def shorter(folder: Path) -> None:
    os.truncate(segments(folder)[1], SEGMENT - 1)


def queue_end(folder: Path) -> None:
    for path in sorted((folder / "store" / "consumequeue" / "Topic1" / "0").iterdir()):
        path.write_bytes(bytes(path.stat().st_size))


def queue_gone(folder: Path) -> None:
    shutil.rmtree(folder / "store" / "consumequeue" / "Topic0")


def index_gone(folder: Path) -> None:
    sorted((folder / "store" / "index").iterdir())[0].unlink()


@pytest.mark.parametrize("grown", [False, True])
def test_a_filler_behind_the_end_is_no_difference(tmp_path: Path, grown: bool) -> None:
    """A broker that was copied while it ran had just closed its last segment."""
    built = builder()
    built.roll()
    store = built.write(tmp_path / "store")
    (tmp_path / "plan.json").write_text(json.dumps(plan_of(store.root, store.broker_conf)))
    if grown:
        shutil.rmtree(store.root)
        built.put(Message("Topic0", 0, b"new"))
        built.write(tmp_path / "store", clean=False)
    assert asked(tmp_path, "--full") == (10 if grown else 0)


HARMS = cut_whole, cut_zeros, cut_and_written_over, first_bytes, shorter, queue_end, queue_gone, index_gone


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("grown", [False, True])
def test_what_is_cut_missing_or_changed_differs(
    started: Path, harm: Callable[[Path], None], grown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if grown and harm not in (cut_whole, cut_zeros):
        grow(started)
    harm(started)
    assert asked(started) == 20
    said = capsys.readouterr().out
    assert said.startswith("It differs from the plan in ") and "\n  Differs    " in said


def test_bytes_between_the_edges_are_compared_by_full_alone(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((started / "plan.json").read_text())
    plan["edges"] = [row for row in plan["edges"] if row["end"] < SEGMENT] or plan["edges"][-1:]
    (started / "plan.json").write_text(json.dumps(plan))
    grow(started)
    flip(segments(started)[0], 2000)
    assert asked(started) == 10
    assert asked(started, "--full", "--format", "json") == 20
    found = json.loads(capsys.readouterr().out.partition("--full reads them\n")[2])
    assert [(row["kind"], row["file"]) for row in found["differences"]] == [("bytes", f"commitlog/{0:020d}")]
    assert found["exit_code"] == 20 and found["different"] == 1 and found["bytes_between_read"] is True


def test_segments_that_retention_was_to_delete_are_explained_and_no_others(
    started: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    retained(started, 2, said=2)
    assert asked(started) == 10
    assert "retention has deleted 2 segments, as predicted" in capsys.readouterr().out
    segments(started)[0].unlink()
    assert asked(started) == 20
    assert f"commitlog/{2 * SEGMENT:020d}: is missing" in capsys.readouterr().out


HOURS = {"in the hour before": (-1, 20), "when the hour has begun": (0, 10)}


@pytest.mark.parametrize(("since", "code"), HOURS.values(), ids=HOURS)
def test_what_goes_in_the_hour_of_delete_when_is_there_until_then(
    started: Path, since: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = segments(started)
    plan = json.loads((started / "plan.json").read_text())
    plan["first_day"] = day(in_delete_when=[f"commitlog/{first.name}"])
    (started / "plan.json").write_text(json.dumps(plan))
    first.unlink()
    hour_ms = 1_767_326_400_000  # 2026-01-02T04:00:00Z
    monkeypatch.setattr(command, "time", SimpleNamespace(time_ns=lambda: (hour_ms + since) * 1_000_000))
    monkeypatch.setattr(command, "_disk_used", lambda *_: 75.0)
    assert asked(started) == code
    monkeypatch.setattr(command, "_disk_used", lambda *_: 76.0)  # expired segments go at any hour
    assert asked(started) == 10


@pytest.mark.parametrize(("planned", "now", "code"), [(50.0, 85.0, 20), (50.0, 86.0, 10), (50.0, None, 10), (None, 85.0, 10)])
def test_what_goes_if_the_disk_is_full_is_there_while_it_is_not(
    started: Path, planned: float | None, now: float | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = segments(started)
    plan = json.loads((started / "plan.json").read_text())
    plan["first_day"] = day(disk_used=planned, if_disk_full=[f"commitlog/{first.name}"])
    (started / "plan.json").write_text(json.dumps(plan))
    first.unlink()
    # the disk as it was with the segment
    monkeypatch.setattr(command, "_disk_used", lambda _, freed: now if freed == SEGMENT else 0.0)
    assert asked(started) == code


LIMITS = {
    "diskSpaceCleanForciblyRatio=60": (10, "5.3.3"),
    "diskSpaceCleanForciblyRatio=70": (20, "5.3.3"),
    "cleanFileForciblyEnable=false\ndiskSpaceCleanForciblyRatio=60": (20, "5.3.3"),
    "rocketmq.broker.diskSpaceCleanForciblyRatio=0.6": (10, "4.9.8"),
    "diskSpaceCleanForciblyRatio=60 ": (20, "4.9.8"),  # no name of that release
    "fileReservedTime=1\ndiskMaxUsedSpaceRatio=60": (10, "5.3.3"),  # further segments are expired
    "fileReservedTime=72\ndiskMaxUsedSpaceRatio=60": (20, "5.3.3"),
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("conf", "code", "release"), [(conf, *rest) for conf, rest in LIMITS.items()])
def test_the_limits_are_those_of_the_plan_or_of_the_broker_conf_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: str, code: int, release: str, named: bool
) -> None:
    built = StoreBuilder(release)
    for number in range(60):
        built.put(Message("Topic", 0, bytes([number]) * 150))
    store = built.write(tmp_path / "store")
    plan = plan_of(store.root, store.broker_conf + ("" if named else conf), release)
    first, *_ = segments(tmp_path)
    assert ("settings" in plan["first_day"]) is (not named and conf[-1] != " ")
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "broker.conf").write_text(conf)
    monkeypatch.setattr(command, "_disk_used", lambda *_: 65.0)
    first.unlink()
    assert asked(tmp_path, *(["--broker-conf", str(tmp_path / "broker.conf")] if named else [])) == code


def test_the_disk_is_that_of_the_log(tmp_path: Path) -> None:
    used = command._disk_used(StoreLocation(str(tmp_path)), 0)
    assert used is not None and command._disk_used(StoreLocation(str(tmp_path)), 1 << 60) == 100.0
    elsewhere = StoreLocation("s3://bucket/store", (("commitlog", (str(tmp_path),)),))
    assert command._disk_used(elsewhere, 0) == pytest.approx(used, abs=1)
    assert command._disk_used(StoreLocation("s3://bucket/store"), 0) is None


def test_a_gap_is_not_what_retention_leaves(started: Path) -> None:
    retained(started, 0, said=3)
    segments(started)[1].unlink()
    assert asked(started) == 20


def test_without_a_word_on_retention_a_missing_segment_differs(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((started / "plan.json").read_text())
    plan["first_day"] = None
    (started / "plan.json").write_text(json.dumps(plan))
    segments(started)[0].unlink()
    assert asked(started) == 20
    assert "the plan does not say what retention deletes" in capsys.readouterr().out


def test_differences_are_named_up_to_a_bound_and_counted(started: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((started / "plan.json").read_text())
    rows = plan["broker"]["after_dispatch"]["queues"]
    rows += [{"topic": f"Gone{number}", "queue_id": 0, "min_offset": 0, "max_offset": 1} for number in range(130)]
    (started / "plan.json").write_text(json.dumps(plan))
    assert asked(started) == 20
    said = capsys.readouterr().out
    assert said.startswith("It differs from the plan in 130 places") and "\n             and 30 more places\n" in said
    assert said.count("\n  Differs ") == 100


def test_the_plan_of_a_new_store_has_its_first_day_also_if_nothing_was_to_repair(made: Path, tmp_path: Path) -> None:
    words = ["repair", str(made / "store"), "--plan", str(made / "plan.json"), "--to", str(tmp_path / "new")]
    assert entry.main(words) == 0
    plan = json.loads((tmp_path / "new.plan.json").read_text())
    assert plan["first_day"]["retention"] is not None and plan["edges"]
    (tmp_path / "new" / "abort").touch()
    assert entry.main(["after-start", str(tmp_path / "new"), "--plan", str(tmp_path / "new.plan.json"), "--full"]) == 0


@pytest.mark.parametrize("link", [False, True])
def test_special_files_and_links_that_leave_the_store_are_not_opened(
    started: Path, tmp_path: Path, link: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path = segments(started)[0]
    path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside") if link else os.mkfifo(path)
    assert asked(started) in (3, 20)
    assert path.name in "".join(capsys.readouterr())


def test_a_database_and_a_ledger_of_a_broker_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keyed, ledger = tmp_path / "keyed", tmp_path / "ledger"
    store = rocksdb_stores.keyed_store(keyed / "store")
    (keyed / "plan.json").write_text(json.dumps(plan_of(store.root, store.broker_conf)))
    made = dledger_stores.build(ledger / "store")
    (ledger / "plan.json").write_text(json.dumps(plan_of(made.root, made.broker_conf)))
    for folder in (keyed, ledger):
        (folder / "store" / "abort").touch()
        before = content(folder)
        assert asked(folder, "--full") == 0, capsys.readouterr()
        assert content(folder) == before
    flip(made.data(), 30)
    assert asked(ledger) == 20


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"edges": [{"file": "../outside", "start": 0, "end": 1, "digest": ""}]}, 2),
        ({"edges": [{"file": "commitlog/0", "start": 5, "end": 5, "digest": ""}]}, 2),
        ({"edges": [{"file": "commitlog/0", "start": 0, "end": 1 << 40, "digest": ""}]}, 0),  # of a file that it does not list
        ({"edges": 5}, 2),
        ({"first_day": {"retention": {"at_once": "all"}}}, 2),
        ({"first_day": {"retention": {"at_once": ["/etc"], "in_delete_when": [], "if_disk_full": []}}}, 2),
        ({"first_day": []}, 2),
        ({"first_day": day() | {"as_of": "today"}}, 2),
        ({"first_day": day("9999-12-31T23:00:00Z")}, 2),
        ({"first_day": day() | {"timezone": None}}, 2),
        ({"first_day": day() | {"settings": {"fileReservedTime": "72"}}}, 2),
        ({"first_day": day() | {"settings": {"fileSize": 72}}}, 2),
        ({"first_day": day() | {"settings": []}}, 2),
        ({"first_day": day() | {"settings": {"fileReservedTime": 48}}}, 0),
        ({"schema_version": 2}, 2),
        ({"complete": False}, 3),
        ({"first_day": None, "edges": []}, 0),
        ({"first_day": {"retention": None}}, 0),
    ],
)
def test_a_plan_is_text_from_anywhere(started: Path, change: dict[str, Any], code: int) -> None:
    plan = json.loads((started / "plan.json").read_text())
    (started / "plan.json").write_text(json.dumps({**plan, **change}))
    assert asked(started) == code


@pytest.mark.parametrize(
    "change",
    [
        {"after_dispatch": None},
        {"after_dispatch": {"commitlog": [{"file": "x", "wrote": 1}], "queues": []}},
        {"after_dispatch": {"commitlog": [{"file": "0" * 20, "wrote": -1}], "queues": []}},
        {"after_dispatch": {"commitlog": 1, "queues": []}},
        {"after_dispatch": {"commitlog": [], "queues": [{"topic": 1}]}},
        {"after_dispatch": {"commitlog": [], "queues": "queues"}},
        {"dledger": 1},
        {"starts": False},
    ],
)
def test_what_a_plan_says_of_the_start_is_checked(started: Path, change: dict[str, Any]) -> None:
    plan = json.loads((started / "plan.json").read_text())
    plan["broker"] |= change
    (started / "plan.json").write_text(json.dumps(plan))
    assert asked(started) == 2


def test_a_folder_that_is_no_store_and_a_missing_plan(started: Path, tmp_path: Path) -> None:
    assert entry.main(["after-start", str(started / "store")]) == 2
    (tmp_path / "empty").mkdir()
    assert entry.main(["after-start", str(tmp_path / "empty"), "--plan", str(started / "plan.json")]) == 3
