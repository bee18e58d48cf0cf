"""Python workers that the system ends in the middle, as where memory is short: tried again, and the other stores stand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jobs.audit import run_audit as audit
from jobs.cli.options import AuditOptions
from jobs.runtime.session import Session
from store_io.audit.audit_store import StoreAudit
from store_io.base.tasks import Task
from store_io.log.scan.segment_scan import SegmentTask
from tests.support.processes.deadly_tasks import STORES, deadly, fleet


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
