"""The plan's two lists of steps as a page shows them."""

from __future__ import annotations

from typing import Any

from jobs.report.pages.report_html import PageContext
from schemas.rows import DEFAULT, AuditOutcome
from store_io.repair.proposals import refused_section
from tests.support.handmade import samples
from tests.support.texts.pages import page_of

# A page that offers a repair.
OFFERED = PageContext(samples.RUN, ("/copies/hurt",), "/out/hurt/plan.json")


def test_what_one_cut_takes_from_many_queues_is_told_as_one() -> None:
    def step(action: str, file: str, reason: str = "cut") -> dict[str, Any]:
        return {"action": action, "file": file, "start": 0, "end": 20, "reason": reason, "lost_messages": 2, "lost_bytes": 9}

    outcome = samples.damaged()
    queues = [step("delete" if i % 2 else "truncate", f"consumequeue/t{i}/0/0") for i in range(10)]
    outcome.plan["steps"] = [
        step("keep", "commitlog/0", "sound"),
        step("delete", "commitlog/1"),
        *queues,
        step("rebuild", "index/1"),
    ]
    text = page_of(outcome).text.partition("keeps what is given up here.")[2]
    assert "keep commitlog/0, bytes 0 to 20" in text and "delete commitlog/1, bytes 0 to 20, gives up 2 messages, 9 B" in text
    assert "delete 5 queue files, truncate 5 queue files, gives up 20 messages, 90 B" in text
    assert "rebuild index/1" in text


def to_repair() -> AuditOutcome:
    outcome = samples.damaged()
    outcome.plan["steps"] = [{**step, "action": "truncate"} for step in outcome.plan["steps"]]
    return outcome


def test_the_steps_of_a_repair_by_each_policy() -> None:
    def step(number: int, action: str, file: str, **more: Any) -> dict[str, Any]:
        empty = {"start": None, "end": None, "reason": "why <b>", "kept": {}, "lost": {}}
        return {**empty, "number": number, "action": action, "file": file, **more}

    outcome = to_repair()
    steps = [
        step(1, "copy", "", kept={"files": 3}),
        step(2, "rebuild_queue", "consumequeue/<i>/0", start=0, end=1200, kept={"entries": 60}, lost={"positions": 1}),
    ]
    salvage = samples.worked_out(messages_before=100, messages_after=99, given_up=1, steps=steps)
    outcome.plan["repair"] = {"broker": refused_section("no <segment>"), "salvage": salvage}
    page = page_of(outcome, OFFERED)
    assert page.problems() == []
    assert "The steps by policy broker: no <segment>." in page.text
    shown = page.text.partition("Repair by policy salvage: ")[2]
    assert shown.startswith("2 steps, keeps 99 of 100 valid messages")
    assert "1. copy the store, keeps 3 fileswhy <b>" in shown
    assert "2. rebuild consumequeue/<i>/0, bytes 0 to 1,200, keeps 60 entries, loses 1 positionwhy <b>" in shown


def test_no_steps_are_shown_where_no_repair_is_offered() -> None:
    outcome = to_repair()
    outcome.plan["repair"]["broker"] = refused_section("never shown")
    assert "never shown" in page_of(outcome, OFFERED).text
    outcome.release_from = DEFAULT
    assert "never shown" not in page_of(outcome, OFFERED).text
