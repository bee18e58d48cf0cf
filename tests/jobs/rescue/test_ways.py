"""Which way of two is recommended, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobs.rescue.ways import Way, choose, kept_by_salvage, plan_section
from schemas.finding_codes import SWITCH_OFF
from schemas.rows import Finding
from store_io.repair.repair_work import RepairOutcome
from tests.support.handmade import samples
from tests.support.handmade.handed import report


def way(policy: str, kept: int, given_up: int = 0, exit_code: int = 0, **more: Any) -> Way:
    counts = {"messages": given_up, "missing": given_up, "cut": 0, "earlier": 0, "signs": []}
    told = report(policy=policy, messages_after=kept, given_up=counts, **more)
    return Way(policy, RepairOutcome(exit_code, told), seconds=1.0)


def test_the_way_that_keeps_most_is_chosen_then_the_one_with_fewest_surprises() -> None:
    choice = choose([way("broker", 10), way("salvage", 17)])
    assert choice is not None and choice.way.policy == "salvage" and choice.why.startswith("it keeps 7 more of the messages")
    same = choose([way("broker", 17), way("salvage", 17)])
    assert same is not None and same.way.policy == "broker" and "both keep the same messages" in same.why
    fewer = choose([way("broker", 17, 3), way("salvage", 17, 1)])
    assert fewer is not None and fewer.way.policy == "salvage" and fewer.why == "it gives up 2 fewer messages"
    refused = choose([Way("broker", None, "why not"), way("salvage", 1)])
    assert refused is not None and refused.way.policy == "salvage" and refused.why == "policy broker does not go: why not"


def test_no_way_is_chosen_whose_store_would_not_be_consistent() -> None:
    wrong = way("salvage", 17, exit_code=20, problems=["a queue is wrong"])
    only = choose([way("broker", 10), wrong])
    assert only is not None and only.way.policy == "broker" and "a queue is wrong" in only.why
    assert choose([Way("broker", None, "why not"), wrong]) is None


def test_options_follow_from_what_was_worked_out() -> None:
    healed = {"records": [{}], "not_healed": [], "total_risk": 2e-6}
    told = {"healed": healed, "offsets": [{}]}
    ways = [way("broker", 10), way("salvage", 17, **told)]
    choice = choose(ways)
    assert choice is not None and choice.options == ("--heal", "--fix-offsets")
    assert "1 damaged record whole, at a risk of 2.0e-06 in all" in choice.why
    assert plan_section(ways, False)["broker"]["refused"] is not None  # no plan has steps of a run with --heal
    section = plan_section(ways[:1], False)["broker"]
    assert section["refused"] is None and section["messages_after"] == 10
    assert plan_section(ways[:1], True)["broker"]["refused"] is not None


def test_the_reason_names_a_setting_and_not_damage_where_there_is_none() -> None:
    outcome = replace(samples.damaged(), damaged_extents=0)
    assert kept_by_salvage(samples.damaged()) == ", also those after the damage" and kept_by_salvage(outcome) == ""
    outcome.findings = [Finding("broker_drops_messages", "commitlog/0", severity="loss", actual="dup_info")]
    assert kept_by_salvage(outcome) == "", "after messages that have it, the record may be damaged"
    outcome.findings = [replace(outcome.findings[0], next=SWITCH_OFF["dup_info"])]
    choice = choose([way("broker", 10), way("salvage", 17)], kept_by_salvage(outcome))
    assert choice is not None
    assert choice.why == "it keeps 7 more of the messages: those that a start with duplicationEnable=true cuts"
