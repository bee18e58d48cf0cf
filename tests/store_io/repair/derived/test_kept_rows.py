"""What a scan keeps for a rebuild: the new store is the same with it as without it, and nothing depends on it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store_io.base.tasks import Task
from store_io.log.scan.segment_scan import SegmentTask
from store_io.repair import repair_store
from store_io.repair.derived.kept_rows import KeepingTask
from store_io.repair.derived.rebuild_tasks import BuildTask
from store_io.repair.repair_plan import RepairPlan
from store_io.repair.repair_store import repair, work_out
from store_io.repair.repair_work import RepairRequest
from store_io.repair.writing.store_writer import StoreFileWriter, WriteFailed
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import content, plan_of, plan_with_steps, planned_options, run_tasks
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.small_repairs import SIZES


def repaired(
    root: Path, plan: RepairPlan, target: Path, policy: str = "broker", dry: bool = False, **more: Any
) -> tuple[list[Task], dict[str, Any]]:
    """(the tasks that a repair has run, its report)."""
    ran: list[Task] = []

    def run(tasks: Sequence[Task], describe: str) -> list[Any]:
        ran.extend(tasks)
        return run_tasks(tasks, describe)

    request = RepairRequest("store", StoreLocation(str(root)), str(target), plan, policy, **more)
    done = work_out(request, run, str(target.parent)) if dry else repair(request, run)
    assert done.exit_code == 0, done.report.problems
    return ran, done.report


def kept_of(ran: Sequence[Task]) -> list[bool]:
    """By task of a rebuild, whether it had what a scan has kept."""
    return [task.kept is not None for task in ran if isinstance(task, BuildTask)]


@pytest.mark.parametrize(
    ("name", "policy"), [("g79-498-reput", "broker"), ("g78-514-batch-lmq", "salvage"), ("g85-533-queue-offsets", "broker")]
)
def test_a_rebuild_makes_the_same_of_it_as_of_the_segments(
    name: str, policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(c for c in corpus_tools.cases() if c.name == name)
    root = case.unpack(tmp_path)
    plan = plan_of(root, case.release, case.broker_conf)
    ran, report = repaired(root, plan, tmp_path / "kept", policy)
    assert kept_of(ran) and all(kept_of(ran))
    dry, said = repaired(root, plan, tmp_path / "dry", policy, dry=True)
    assert kept_of(dry) == kept_of(ran) and said.steps == report.steps
    assert not list(tmp_path.glob(".*")), "nothing of it stays"
    monkeypatch.setattr(repair_store, "ROOM_TO_KEEP", 1 << 60)
    ran, other = repaired(root, plan, tmp_path / "scanned", policy)
    assert not any(isinstance(task, KeepingTask) for task in ran) and not any(kept_of(ran)), "there is too little room"
    assert content(tmp_path / "kept") == content(tmp_path / "scanned")
    assert report.steps == other.steps and report.queues == other.queues and report.index == other.index


@pytest.mark.parametrize("write", [0, 1, 2])
def test_a_disk_that_is_full_ends_the_keeping_and_not_the_repair(
    write: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(c for c in corpus_tools.cases() if c.name == "g85-533-queue-offsets")
    root = case.unpack(tmp_path)
    plan, real, writes = plan_of(root, case.release, case.broker_conf), StoreFileWriter.write, 0

    def put(self: StoreFileWriter, position: int, data: Any) -> None:
        nonlocal writes
        if "/rows/" in self.path:
            if writes == write:
                raise WriteFailed("no space left")
            writes += 1
        real(self, position, data)

    monkeypatch.setattr(StoreFileWriter, "write", put)
    ran, _ = repaired(root, plan, tmp_path / "full")
    assert writes == write and not all(kept_of(ran))
    monkeypatch.undo()
    repaired(root, plan, tmp_path / "whole")
    assert content(tmp_path / "full") == content(tmp_path / "whole")


def test_no_more_is_kept_than_the_segment_has(tmp_path: Path) -> None:
    """Each key of a message is an entry: a copy of a few bytes may ask for very many."""
    builder = StoreBuilder("5.3.3", replace(SIZES, segment=1 << 16))
    for number in range(100):
        builder.put(Message("TopicA", 0, b"", uniq=f"{number:032X}", keys="a " * 250))
    store = builder.write(tmp_path / "store")
    shutil.rmtree(store.root / "index")
    ran, _ = repaired(store.root, plan_of(store.root, "5.3.3", store.broker_conf), tmp_path / "new")
    assert any(isinstance(task, KeepingTask) for task in ran) and kept_of(ran) and not any(kept_of(ran))


def test_an_audit_that_a_change_of_the_log_follows_keeps_nothing(tmp_path: Path) -> None:
    case = next(c for c in corpus_tools.cases() if c.name == "g79-498-reput")
    root = case.unpack(tmp_path)
    plan = plan_with_steps(root, case.release, case.broker_conf, "broker")
    assert RepairRequest("store", StoreLocation(str(root)), "", plan).edits_log
    ran, _ = repaired(root, plan, tmp_path / "new", **planned_options(plan, "broker"))
    scans = [isinstance(task, KeepingTask) for task in ran if isinstance(task, SegmentTask)]
    assert scans[0] is False and any(scans) and all(kept_of(ran))
