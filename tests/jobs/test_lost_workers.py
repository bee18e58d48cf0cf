"""Python workers that the system ends in the middle, as where memory is short: tried again, and the other stores stand."""

from __future__ import annotations

import json
import os
import pickle
import signal
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.audit import run_audit as audit
from jobs.command_line.options import AuditOptions, StoreArgument
from jobs.session import Session
from jobs.task_process import Apart, Fault, files_of
from store_io.audit.audit_store import AuditRequest, QueueGroup, StoreAudit, Task
from store_io.scan.segment_scan import SegmentTask
from store_io.source.byte_source import StoreLocation
from tests.support.builders import Message, Sizes, StoreBuilder

STORES = 4


class Deadly(SegmentTask):
    """A scan that ends the process that begins it, unless that is the driver; `lives` times, -1: always."""

    driver: int
    marks: str
    lives: int

    def __getattribute__(self, name: str) -> Any:
        if name == "location" and os.getpid() != self.driver:
            seen = len(os.listdir(self.marks))
            if self.lives < 0 or seen < self.lives:
                Path(self.marks, str(seen)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def deadly(task: SegmentTask, marks: Path, lives: int) -> Deadly:
    made = Deadly(**{field.name: getattr(task, field.name) for field in fields(task)})
    for name, value in (("driver", os.getpid()), ("marks", str(marks)), ("lives", lives)):
        object.__setattr__(made, name, value)
    return made


def fleet(tmp_path: Path) -> tuple[StoreArgument, ...]:
    found = []
    for number in range(STORES):
        builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=200))
        for message in range(40):
            builder.put(Message(queue_id=message % 3, body=b"%04d" % message * 10, uniq=f"u{message}"))
        store = builder.write(tmp_path / f"store-{number}")
        found.append(StoreArgument(f"store-{number}", str(store.root), "5.3.3", store.broker_conf))
    return tuple(found)


def audited(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lives: int
) -> tuple[dict[str, Any], list[str]]:
    """(result.json of a fleet in which one task of store-1 kills its worker, what is told of that task)."""
    stores = fleet(tmp_path)
    marks = tmp_path / "marks"
    marks.mkdir()
    first_tasks = StoreAudit.first_tasks

    def poisoned(self: StoreAudit) -> list[Task]:
        tasks = first_tasks(self)
        if self.request.name != "store-1":
            return tasks
        number = next(i for i, task in enumerate(tasks) if isinstance(task, SegmentTask))
        return [*tasks[:number], deadly(tasks[number], marks, lives), *tasks[number + 1 :]]  # type: ignore[arg-type]

    monkeypatch.setattr(StoreAudit, "first_tasks", poisoned)
    out = tmp_path / "out"
    audit.run_with(spark_session, AuditOptions(stores, str(out), run_id="one"))
    return json.loads((out / "result.json").read_text()), sorted(os.listdir(marks))


@pytest.mark.spark
def test_a_task_whose_worker_was_lost_is_done_again(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, deaths = audited(spark_session, tmp_path, monkeypatch, 1)
    assert deaths == ["0"]
    assert (result["exit_code"], result["complete"]) == (0, True)
    assert [store["messages"] for store in result["stores"]] == [40] * STORES


@pytest.mark.spark
def test_a_task_that_ends_every_worker_costs_its_own_store_alone(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, deaths = audited(spark_session, tmp_path, monkeypatch, -1)
    assert len(deaths) == 3  # the worker, then twice apart
    assert {store["name"]: store["code"] for store in result["stores"]} == {
        "store-0": 0,
        "store-1": 3,
        "store-2": 0,
        "store-3": 0,
    }
    told = next(store for store in result["stores"] if store["name"] == "store-1")["incomplete"]
    assert any(f"commitlog/{0:020d}: could not be read: the process that read it was lost each time (SIGKILL" in s for s in told)
    assert not any("fault of this program" in sentence for sentence in told)


def test_apart_every_task_is_run_whatever_the_one_before_did(tmp_path: Path) -> None:
    store = fleet(tmp_path)[0]
    tasks = StoreAudit(AuditRequest("a", StoreLocation(store.path), store.release, store.broker_conf)).first_tasks()
    one, two = [task for task in tasks if isinstance(task, SegmentTask)][:2]
    (tmp_path / "marks").mkdir()
    with Apart() as apart:
        found = [pickle.loads(apart.run(task, None, ())) for task in (one, deadly(two, tmp_path / "marks", -1), two)]
    assert [getattr(answer, "path", None) for answer in found] == [one.path, None, two.path]
    assert isinstance(found[1], Fault) and two.path in found[1].sentence
    assert len(os.listdir(tmp_path / "marks")) == 2


def test_what_a_task_reads_is_named() -> None:
    def files(*paths: str) -> Any:
        return tuple(SimpleNamespace(path=path) for path in paths)

    one: Any = SimpleNamespace(paths=("commitlog/0",))
    assert files_of(one) == "commitlog/0"
    queues: Any = (SimpleNamespace(files=files("a", "b"), audit_files=files("b", "c")),)
    assert files_of(QueueGroup(queues)) == "a and 2 more"
