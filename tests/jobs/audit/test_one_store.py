"""One store of a run: as one task or by rounds, with the same answer; and the steps of a repair in each plan."""

from __future__ import annotations

import json
import pickle
import shutil
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import one_store
from jobs.audit.earlier_runs import Reading
from jobs.audit.one_store import FEW_STORES, with_repair_sections
from jobs.audit.run_audit import run_with
from jobs.cli.options import AuditOptions
from jobs.cli.stores import StoreArgument
from jobs.runtime.session import Session
from jobs.tasks.runner import Runner
from schemas.advice import Cause, Gap
from schemas.rows import FurthestRun
from store_io.audit.audit_store import run_local
from store_io.broker.releases import KNOWN_RELEASES
from store_io.checks.changed_bytes import FirstRead, SeenSegment
from store_io.model.audit_request import AuditRequest
from store_io.repair.repair_plan import read_plan
from store_io.source.byte_source import StoreLocation
from tests.support.answers.fleets import Fleet, HereRunner, audited_fleet
from tests.support.answers.repaired import planned_options, repaired
from tests.support.damage import invert_byte
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.small_repairs import small_store

SIZES = Sizes(segment=1 << 14, slots=10, index_max=40)


def made(folder: Path, number: int) -> StoreArgument:
    """A store of its own log."""
    builder = StoreBuilder("5.3.3", SIZES)
    for each in range(30):
        builder.put(Message(f"T{each % 3}", body=f"{number}-{each}".encode() * 9, keys=f"k{each}", store_time=1000 + each))
    store = builder.write(folder / f"s{number}")
    return StoreArgument(f"s{number}", str(store.root), "5.3.3", store.broker_conf, named=True)


def damaged(store: StoreArgument, file: str, at: int) -> None:
    (path, *_) = sorted((Path(store.path) / file).iterdir())
    invert_byte(path, at, 0x55)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[StoreArgument]:
    """Sound ones, damaged ones, and such as cannot be audited."""
    folder = tmp_path_factory.mktemp("stores")
    found = [made(folder, number) for number in range(FEW_STORES + 2)]
    damaged(found[1], "commitlog", 700)
    damaged(found[2], "consumequeue/T1/0", 25)
    shutil.rmtree(Path(found[3].path) / "index")
    (Path(found[4].path) / "abort").touch()
    (Path(found[5].path) / "config").mkdir()
    (Path(found[5].path) / "config" / "topics.json").write_text("{")
    shutil.rmtree(found[6].path)
    Path(found[6].path).mkdir()
    found[7] = replace(found[7], broker_conf="maxIndexNum=-3")
    found[8] = replace(found[8], path=f"{folder}/not-there")
    return found


@pytest.fixture
def stores(written: list[StoreArgument]) -> list[StoreArgument]:
    """All of them: no test changes one."""
    return [*written]


@pytest.fixture(scope="module")
def rounds(written: list[StoreArgument], tmp_path_factory: pytest.TempPathFactory) -> tuple[Fleet, Path]:
    """What rounds of tasks say of the stores as they are, and the folder of their files."""
    out = tmp_path_factory.mktemp("rounds")
    return audited_fleet(written, out, whole=False), out


def texts(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def plain(fleet: Fleet) -> list[Any]:
    return [{**vars(outcome), "cost": replace(outcome.cost, seconds=0, task_seconds=0)} for outcome in fleet.outcomes]


def assert_equal_either_way(
    stores: list[StoreArgument], folder: Path, known: tuple[Fleet, Path] | None = None, **more: Any
) -> HereRunner:
    """known: what rounds say of these stores, if that was worked out before."""
    runner = HereRunner()
    whole = audited_fleet(stores, folder / "whole", runner, **more)
    rounds, out = known or (audited_fleet(stores, folder / "rounds", whole=False, **more), folder / "rounds")
    assert plain(whole) == plain(rounds) and (whole.problems, whole.copies) == (rounds.problems, rounds.copies)
    assert texts(folder / "whole") == texts(out)
    return runner


def test_one_task_says_what_rounds_say(stores: list[StoreArgument], rounds: tuple[Fleet, Path], tmp_path: Path) -> None:
    runner = assert_equal_either_way(stores, tmp_path, rounds)
    assert runner.ran == {"StoreTask": len(stores)}, "nothing else is run for stores that one task can audit"


@pytest.mark.parametrize("level", ["quick", "full"])
def test_at_every_level_and_for_every_release(level: str, stores: list[StoreArgument], tmp_path: Path) -> None:
    compared = [replace(store, releases=tuple(KNOWN_RELEASES[-3:])) for store in stores]
    assert_equal_either_way(compared, tmp_path, reading=Reading(level))


class _Past:
    """What earlier runs saw of the stores. asked: how often for the segments that they saw."""

    problem, asked = "", 0

    def of(self, store: StoreArgument) -> FurthestRun:
        return FurthestRun("before", "2026-01-01 00:00", 900, 1 << 13 if store.name == "s0" else 10, store.path)

    def begins(self, *_: Any) -> dict[str, int | None]:
        self.asked += 1
        return {}

    def seen(self, store: StoreArgument) -> dict[str, SeenSegment]:
        """Of one store other bytes of its first segment."""
        first = Path(store.path) / f"commitlog/{0:020}"
        if store.name != "s1" or not first.exists():
            return {}
        time = first.stat().st_mtime_ns
        return {f"commitlog/{0:020}": SeenSegment(time, "before", False, 1000, FirstRead("before", "before"))}


def test_what_an_earlier_run_saw_counts(stores: list[StoreArgument], tmp_path: Path) -> None:
    past, seen = Future[Any](), _Past()
    past.set_result(seen)
    unnamed = [replace(store, named=store.name != "s0") for store in stores]
    runner = assert_equal_either_way(unnamed, tmp_path, reading=Reading(past=past))
    found = [json.loads(line) for line in (tmp_path / "whole" / "s1" / "findings.jsonl").read_text().splitlines()]
    assert [one["expected"] for one in found if one["code"] == "segment_changed"] == ["before"]
    assert runner.ran["SegmentTask"] == 1 and seen.asked == 2, "the first store is for the driver: it asks for rows of tables"


@pytest.mark.parametrize("compare", [False, True])
def test_copies_of_one_log_are_found_among_them(compare: bool, stores: list[StoreArgument], tmp_path: Path) -> None:
    shutil.copytree(stores[0].path, tmp_path / "copy")
    stores[-1] = replace(stores[-1], path=f"{tmp_path}/copy")
    runner = assert_equal_either_way(stores, tmp_path, compare=compare)
    assert runner.ran["StoreTask"] == len(stores) and runner.ran["SegmentTask"] == 2 * compare
    groups = [replace(store, replica_group="g" if number < 2 else None) for number, store in enumerate(stores)]
    assert assert_equal_either_way(groups, tmp_path / "named").ran["StoreTask"] == len(stores) - 2


def test_what_is_large_is_for_the_driver(
    stores: list[StoreArgument], rounds: tuple[Fleet, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_store, "_TEXT_CHARACTERS", 100)  # its files are not rendered by the task
    assert set(assert_equal_either_way(stores, tmp_path / "texts", rounds).ran) == {"StoreTask"}
    monkeypatch.setattr(one_store, "MOST_FILES", 3)
    assert assert_equal_either_way(stores, tmp_path / "files", rounds).ran["SegmentTask"] > 0
    monkeypatch.undo()
    monkeypatch.setattr(one_store, "MOST_BYTES", 1 << 10)
    ran = assert_equal_either_way(stores, tmp_path / "bytes", rounds).ran
    assert ran["SegmentTask"] > 0 and ran["RenderTask"] == len(stores), "the driver judges, tasks render"
    few = HereRunner()
    audited_fleet(stores[: FEW_STORES - 1], tmp_path / "few", few)
    assert "StoreTask" not in few.ran


def test_a_task_that_is_lost_makes_its_store_one_for_the_driver(
    stores: list[StoreArgument], rounds: tuple[Fleet, Path], tmp_path: Path
) -> None:
    calls = [0]

    def lost(run: Any) -> bytes:
        calls[0] += 1
        return pickle.dumps("its process was lost", protocol=5) if calls[0] == 1 else run()

    runner = HereRunner(lost)
    found = audited_fleet(stores, tmp_path / "lost", runner)
    assert plain(found) == plain(rounds[0])
    assert runner.ran["StoreTask"] == len(stores) and runner.ran["SegmentTask"] == 1


def test_each_store_gets_its_own(spark_session: Session, tmp_path: Path) -> None:
    (case,) = corpus_tools.cases("g19-514")
    hurt = case.unpack(tmp_path)
    (tmp_path / "small").mkdir()
    whole, conf = small_store(tmp_path / "small")
    stores = (
        StoreArgument("whole", str(whole), "5.3.3", conf),
        StoreArgument("hurt", str(hurt), case.release, case.broker_conf),
        StoreArgument("none", str(tmp_path / "none"), "5.3.3"),
    )
    assert run_with(spark_session, AuditOptions(stores, str(tmp_path / "out"))) == 20
    plans = {s.name: json.loads((tmp_path / "out" / s.name / "plan.json").read_text()) for s in stores}
    assert plans["whole"]["repair"] is None and plans["none"]["repair"] is None
    plan = read_plan(json.dumps(plans["hurt"]).encode())
    for policy in ("broker", "salvage"):
        report = repaired(hurt, tmp_path / policy, plan, policy, **planned_options(plan, policy)).report
        assert report.steps == plan.repair[policy].steps and report.steps_from == "plan"


def test_a_task_that_failed_is_a_sentence_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = corpus_tools.cases("g19-514")
    root = case.unpack(tmp_path)
    outcome = run_local(AuditRequest("s", StoreLocation(str(root)), case.release, case.broker_conf))
    monkeypatch.setattr(Runner, "_run", lambda self, tasks, *_: [Gap(Cause.TASK_WITHOUT_RESULT) for _ in tasks])
    (failed,) = with_repair_sections(Runner.__new__(Runner), [StoreArgument("s", str(root))], [outcome], Reading())
    assert [one.refused for one in failed.repairs or ()] == ["a task gave no result"] * 2
