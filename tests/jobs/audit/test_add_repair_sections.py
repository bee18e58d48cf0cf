"""The steps of a repair in the plans that a run writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.audit.earlier_runs import Reading
from jobs.audit.one_store import add_repair_sections
from jobs.audit.run_audit import run_with
from jobs.cli.options import AuditOptions, StoreArgument
from jobs.runtime.session import Session
from jobs.tasks.runner import Runner
from schemas.gaps import Cause, Gap
from store_io.audit.audit_request import AuditRequest
from store_io.audit.audit_store import run_local
from store_io.repair.repair_plan import read_plan
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import planned_options, repaired
from tests.support.stores import corpus_tools
from tests.support.stores.small_repairs import small_store


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
        assert report["steps"] == list(plan.repair[policy].steps) and report["steps_from"] == "plan"


def test_a_task_that_failed_is_a_sentence_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = corpus_tools.cases("g19-514")
    root = case.unpack(tmp_path)
    outcome = run_local(AuditRequest("s", StoreLocation(str(root)), case.release, case.broker_conf))
    monkeypatch.setattr(Runner, "_run", lambda self, tasks, *_: [Gap(Cause.TASK_WITHOUT_RESULT) for _ in tasks])
    add_repair_sections(Runner.__new__(Runner), [StoreArgument("s", str(root))], [outcome], Reading())
    assert [part["refused"] for part in outcome.plan["repair"].values()] == ["a task gave no result"] * 2
