"""The steps of a repair in plan.json: worked out, held against the copy, and refused where they do not follow from it.

That plan, dry run and report say the same of every store of the corpus: test_repair_store.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.advice import Cause, Gap
from schemas.outcome import Outcome
from store_io.audit.audit_store import run_local
from store_io.base.errors import StoreError, UsageError
from store_io.base.tasks import run_task
from store_io.model.audit_request import AuditRequest
from store_io.repair import plan_repair_section
from store_io.repair.plan_repair_section import repairs_of, steps_tasks
from store_io.repair.repair_documents import plan_document
from store_io.repair.repair_plan import read_plan
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.answers.repaired import repaired, written
from tests.support.stores import corpus_tools
from tests.support.stores.small_repairs import small_store
from tests.support.texts.json_schemas import SCHEMAS, faults

Audited = tuple[Path, Outcome]


def audited(root: Path, release: str, conf: str | None) -> Outcome:
    return run_local(AuditRequest("store", StoreLocation(str(root)), release, conf))


def planned(outcome: Outcome, answers: list[Any]) -> dict[str, Any]:
    return plan_document(replace(outcome, repairs=repairs_of(outcome, answers)))


def with_section(root: Path, outcome: Outcome) -> dict[str, Any]:
    """The plan with its section, as an audit by Spark writes it."""
    answers = [task.run() for task in steps_tasks(outcome, StoreLocation(str(root)))]
    return planned(outcome, answers)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """A store with damage that no single change heals before its last messages, and consumers beyond the end that the release
    would cut to; the tables of topics and groups are gone."""
    (case,) = corpus_tools.cases("g19-514")
    root = case.unpack(tmp_path_factory.mktemp("planned"))
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"Topic0@group":{0:100000}}}')
    damage.zero_range(root / "commitlog" / f"{655360:020d}", 22_368, 22_440)
    return root, audited(root, case.release, case.broker_conf)


@pytest.fixture(scope="module")
def plan(damaged: Audited) -> dict[str, Any]:
    return with_section(*damaged)


def read(plan: dict[str, Any]) -> Any:
    return read_plan(json.dumps(plan).encode())


def test_both_policies_are_worked_out(plan: dict[str, Any]) -> None:
    assert faults("plan", json.dumps(plan)) == []
    broker, salvage = plan["repair"]["broker"], plan["repair"]["salvage"]
    assert broker["messages_after"] == broker["messages_before"] - broker["lost"]["messages"] < salvage["messages_after"]
    for part in (broker, salvage):
        assert part["refused"] is None and part["steps"][0]["action"] == "copy"
    assert "bridge" in {step["action"] for step in salvage["steps"]}


def test_offsets_are_corrected_only_where_that_is_asked_for(damaged: Audited, plan: dict[str, Any], tmp_path: Path) -> None:
    steps = plan["repair"]["broker"]["steps"]
    assert steps[-1]["action"] == "correct_offsets"
    plain, fixed = (
        repaired(damaged[0], tmp_path / "a", read(plan)),
        repaired(damaged[0], tmp_path / "b", read(plan), fix_offsets=True, fix_config=True),
    )
    assert written(fixed.report)["steps"] == steps and fixed.report.steps_from == "plan"
    assert plain.report.steps_from == "copy", "with other options than those of the plan"
    assert not {"correct_offsets", "write_config"} & {step.action for step in plain.report.steps}


def test_a_donor_makes_other_steps(damaged: Audited, plan: dict[str, Any], tmp_path: Path) -> None:
    outcome = repaired(damaged[0], tmp_path / "new", read(plan), donor=StoreLocation(str(damaged[0])))
    assert outcome.report.steps_from == "copy"


def _other_number(steps: list[dict[str, Any]]) -> None:
    next(step for step in steps if step["action"] == "rebuild_queue")["kept"]["entries"] += 1


def _other_range(steps: list[dict[str, Any]]) -> None:
    next(step for step in steps if step["action"] == "rebuild_queue")["end"] += 20


def _one_less(steps: list[dict[str, Any]]) -> None:
    del steps[-1]


def _one_more(steps: list[dict[str, Any]]) -> None:
    steps.append({**steps[-1], "number": len(steps) + 1, "action": "remove", "file": "config/topics.json"})


@pytest.mark.parametrize("change", [_other_number, _other_range, _one_less, _one_more])
def test_steps_that_do_not_follow_from_the_copy(
    damaged: Audited, plan: dict[str, Any], change: Callable[[list[dict[str, Any]]], None], tmp_path: Path
) -> None:
    other = json.loads(json.dumps(plan))
    change(other["repair"]["broker"]["steps"])
    with pytest.raises(StoreError, match="the steps of the plan do not follow from the copy: step "):
        repaired(damaged[0], tmp_path / "new", read(other), fix_offsets=True, fix_config=True)
    assert list(tmp_path.iterdir()) == []
    assert repaired(damaged[0], tmp_path / "new", read(other), "salvage").exit_code == 0


@pytest.mark.parametrize(
    "changed",
    [
        {"action": "format"}, {"file": "../x"}, {"file": None}, {"start": -1, "end": 2}, {"start": 1, "end": None},
        {"kept": {"files": "1"}}, {"lost": None}, {"number": 7},
    ],
    ids=str,
)  # fmt: skip
def test_a_step_of_the_wrong_shape(plan: dict[str, Any], changed: dict[str, Any]) -> None:
    other = json.loads(json.dumps(plan))
    other["repair"]["salvage"]["steps"][1].update(changed)
    with pytest.raises(UsageError, match="the plan"):
        read(other)


@pytest.mark.parametrize("part", [[], {"broker": {"refused": None, "steps": []}}, {"broker": {}, "salvage": {}}])
def test_a_section_of_the_wrong_shape(plan: dict[str, Any], part: Any) -> None:
    with pytest.raises(UsageError, match="the plan's repair"):
        read({**plan, "repair": part})


def test_a_store_that_needs_no_repair_has_no_section(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    outcome = audited(root, "5.3.3", conf)
    assert outcome.exit_code == 0 and with_section(root, outcome)["repair"] is None


def test_a_large_store_says_why_it_has_no_steps(damaged: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_repair_section, "MOST_BYTES", 1000)
    plan = with_section(*damaged)
    assert faults("plan", json.dumps(plan)) == []
    assert all("repair --dry-run says them" in part["refused"] for part in plan["repair"].values())
    assert read(plan).repair == {}


def test_no_repair_is_worked_out_after_the_time_that_was_granted(damaged: Audited) -> None:
    tasks = steps_tasks(damaged[1], StoreLocation(str(damaged[0])), 1.0)
    broker, salvage = repairs_of(damaged[1], [run_task(task) for task in tasks])
    assert (broker.policy, salvage.policy) == ("broker", "salvage")
    for one in (broker, salvage):
        assert not one.worked_out and "the time of --max-duration was spent" in str(one.refused)


def test_the_estimate_counts_each_repair_that_may_be_tried(damaged: Audited) -> None:
    task = replace(steps_tasks(damaged[1], StoreLocation(str(damaged[0])))[0], message_bytes=10)
    assert [replace(task, mends_config=helps).bytes_to_read for helps in (False, True)] == [80, 160]


def test_what_could_not_be_worked_out_says_why(damaged: Audited) -> None:
    root, outcome = damaged
    (task, _) = steps_tasks(outcome, StoreLocation(f"{root}/gone"))
    plan = planned(outcome, [task.run(), Gap(Cause.TASK_WITHOUT_RESULT)])
    assert faults("plan", json.dumps(plan)) == []
    assert "gone" in plan["repair"]["broker"]["refused"] and plan["repair"]["salvage"]["refused"] == "a task gave no result"


def test_a_step_has_one_shape() -> None:
    shapes = [json.loads((SCHEMAS / f"{name}.schema.json").read_text())["$defs"] for name in ("plan", "repair")]
    assert shapes[0]["step"] == shapes[1]["step"] and shapes[0]["numbers"] == shapes[1]["numbers"]
