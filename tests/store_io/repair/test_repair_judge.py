"""Which findings may stay in a new store, and what becomes of the exit code where others do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from schemas.finding_codes import Code
from schemas.repair import MovedRange, RepairStep
from schemas.rows import LOSS, REBUILDABLE, Finding
from store_io.repair.derived.queue_plan import QueuePlan
from store_io.repair.kind_repair import Rebuilt
from store_io.repair.log.edits import Edit, LogPlan
from store_io.repair.repair_audit import Audited
from store_io.repair.repair_judge import NewStoreVerdict, judge_new_store, problem_text


def finding(code: str, severity: str = REBUILDABLE, phy_offset: int = 7, topic: str = "T") -> Finding:
    return Finding(code, "commitlog/0", severity=severity, phy_offset=phy_offset, topic=topic, queue_id=0)


def verdict(
    found: list[Finding],
    before: list[Finding] | None = None,
    log: LogPlan | None = None,
    made: Rebuilt | None = None,
    **more: Any,
) -> NewStoreVerdict:
    prediction = SimpleNamespace(starts=True, truncate_at=100, refusal=None)
    facts: dict[str, Any] = {"complete": True, "prediction": prediction, "loss": None, "serious": found} | more
    first = SimpleNamespace(findings=before or [])
    return judge_new_store(
        cast(Audited, first),
        cast(Audited, SimpleNamespace(**facts)),
        log or LogPlan(end=100, messages=1),
        made or Rebuilt(),
        lambda refusal: f"no: {refusal}",
    )


def test_what_is_about_messages_themselves_stays() -> None:
    found = verdict([finding("store_time_back"), finding("message_lost")], before=[finding("message_lost")])
    assert found.consistent and found.exit_code == 0 and [each.code for each in found.kept] == ["store_time_back", "message_lost"]


def test_anything_else_keeps_the_store_out() -> None:
    assert verdict([finding("message_lost")], before=[finding("message_lost", phy_offset=8)]).exit_code == 10
    assert verdict([finding("index_entry_wrong")]).exit_code == 10
    assert verdict([finding("commitlog_damaged", LOSS)]).exit_code == 20
    assert verdict([finding("queue_entry_missing")]).exit_code == 10


def test_what_a_bound_only_counts_keeps_the_store_out_too() -> None:
    before = [replace(finding("message_lost"), more=3)]
    for more, stays in ((2, True), (3, True), (4, False), (30, False)):
        found = verdict([replace(finding("message_lost"), more=more)], before=before)
        assert found.consistent == stays and [each.more for each in found.kept] == [more] * stays
    made = Rebuilt([QueuePlan(("T", 0), "consumequeue/T/0", moved=[MovedRange("T", 0, 0, 1, at, 1) for at in (7, 8)])])
    for more, stays in ((0, True), (1, True), (2, False), (20, False)):
        assert verdict([replace(finding("queue_entry_shifted"), more=more)], made=made).consistent == stays


def test_a_message_that_was_moved_may_look_shifted_and_its_queue_short() -> None:
    plan = QueuePlan(("T", 0), "consumequeue/T/0", moved=[MovedRange("T", 0, 0, 1, 7, 1)])
    made = Rebuilt([plan])
    assert verdict([finding("queue_entry_shifted"), finding("queue_entry_missing", phy_offset=9)], made=made).consistent
    assert not verdict([finding("queue_entry_shifted", phy_offset=9)], made=made).consistent


def test_what_a_start_would_do_to_it() -> None:
    def told(**more: Any) -> list[str]:
        log = LogPlan(edits=[Edit(RepairStep("remove", "commitlog/1"), lambda writer: None)], end=100, messages=1)
        return verdict([], log=log, **more).problems

    def prediction(**more: Any) -> SimpleNamespace:
        return SimpleNamespace(**{"starts": True, "truncate_at": 100, "refusal": "why"} | more)

    assert told() == []
    assert told(prediction=prediction(starts=False)) == ["the release would not start: no: why"]
    assert told(prediction=None) == ["the release would not start: no: None"]
    assert told(prediction=prediction(truncate_at=90)) == ["the release would end the log at 90, not at 100"]
    lost = SimpleNamespace(by_queue={("T", 0): SimpleNamespace(messages=2), ("a/b", 0): SimpleNamespace(messages=5)})
    assert told(loss=lost) == ["the release would lose 2 messages"]


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Finding(Code.BROKER_REFUSES, "config/topics.json", message="it ends."), "broker_refuses: config/topics.json: it ends"),
        (
            Finding(Code.INDEX_ENTRY_WRONG, "index/1", 40, 60, message="wrong", expected="5", actual="6"),
            "index_entry_wrong: index/1 at 40: wrong: expected 5, found 6",
        ),
        (Finding(Code.CHECKPOINT_AHEAD, "checkpoint", 0, 8, actual="6"), "checkpoint_ahead: checkpoint at 0: found 6"),
    ],
)
def test_only_what_a_finding_has_is_said(finding: Finding, text: str) -> None:
    """No value that it does not have."""
    assert problem_text(finding) == text
