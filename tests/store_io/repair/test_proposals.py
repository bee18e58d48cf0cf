"""Which repair is recommended, and with which options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from schemas.advice import Lack, NotWhole
from schemas.finding_codes import Code
from schemas.first_day import FirstDay, StartMoment
from schemas.layouts.timer_layout import TIMER_WHEEL
from schemas.outcome import Outcome
from schemas.repair import ConfigFile, GivenUp, HealReport, PositionBeyond, RepairProposal, SearchedRecord
from schemas.rows import Finding
from store_io.repair import ways
from store_io.repair.proposals import proposals, recommended, timers_late
from store_io.repair.repair_plan import BROKER, SALVAGE
from store_io.repair.repair_work import RepairOutcome, RepairRequest
from store_io.repair.ways import Way, proposal_of, work_out_way
from store_io.source.byte_source import StoreLocation
from tests.support.handmade import samples
from tests.support.handmade.handed import config_row, report
from tests.support.handmade.outcome_fields import alter

NOW = 1_795_000_000_000  # ms


def way(policy: str, kept: int = 10, given_up: int = 0, exit_code: int = 0, **more: Any) -> Way:
    told = report(policy=policy, messages_after=kept, given_up=GivenUp(given_up, given_up), **more)
    return Way(policy, RepairOutcome(exit_code, told), seconds=1.0)


def best_of(*found: Way) -> RepairProposal | None:
    return recommended(planned(map(proposal_of, found)))


def planned(repairs: Iterable[RepairProposal]) -> Outcome:
    """The outcome of an audit that has worked these repairs out."""
    outcome = samples.clean()
    alter(outcome, repairs=tuple(repairs))
    return outcome


@pytest.mark.parametrize(
    ("broker", "salvage", "policy"),
    [
        (way(BROKER, 10), way(SALVAGE, 17), SALVAGE),
        (way(BROKER, 17), way(SALVAGE, 17), BROKER),  # which surprises consumers least
        (way(BROKER, 17, 3), way(SALVAGE, 17, 1), SALVAGE),
        (Way(BROKER, None, "why not"), way(SALVAGE, 1), SALVAGE),
        (way(BROKER, 10), way(SALVAGE, 17, exit_code=20, problems=("a queue is wrong",)), BROKER),
    ],
)
def test_what_keeps_most_is_recommended(broker: Way, salvage: Way, policy: str) -> None:
    best = best_of(broker, salvage)
    assert best is not None and best.policy == policy


def test_nothing_is_recommended_that_does_not_go_or_changes_nothing() -> None:
    wrong = way(SALVAGE, 17, exit_code=20, problems=("a queue is wrong",))
    assert best_of(Way(BROKER, None, "why not"), wrong) is None
    refused = map(proposal_of, (Way(BROKER, None, "why not"), wrong))
    assert [one.refused for one in proposals(planned(refused))] == [
        "why not", "the new store would not be consistent: a queue is wrong"
    ]  # fmt: skip
    copied = report().steps[:1]
    assert best_of(way(BROKER, steps=copied), way(SALVAGE, steps=copied)) is None
    assert best_of(way(BROKER, steps=copied), way(SALVAGE)) is not None
    assert recommended(planned(())) is None
    tried = proposals(planned([RepairProposal(BROKER, "too large", worked_out=False)]))
    assert [(one.refused, one.worked_out) for one in tried] == [("too large", False)]


def test_files_of_two_brokers_are_repaired_by_policy_broker_which_mixes_no_messages() -> None:
    outcome = planned(map(proposal_of, (way(BROKER, 10), way(SALVAGE, 17))))
    alter(outcome, signs=[NotWhole(Lack.STORES_MERGED, "commitlog/0")])
    assert [one.policy for one in proposals(outcome)] == [BROKER, SALVAGE]
    alter(outcome, signs=[])
    assert [one.policy for one in proposals(outcome)] == [SALVAGE, BROKER]


REQUEST = RepairRequest("s", StoreLocation("/s"), "/new", None, SALVAGE)  # type: ignore[arg-type]


def healed(risk: float) -> HealReport:
    record = SearchedRecord("commitlog/0", 0, 9, 0, "BODYCRC", 5, "00", "01", "why", risk, "T", 0, 0)
    return HealReport(1e-4, risk, (record,), 0, (), 0)


@pytest.mark.parametrize(
    ("answers", "options", "tried"),
    [
        ({}, ("--fix-config",), 1),
        ({"offsets": (PositionBeyond("group", "why"),)}, ("--fix-config", "--fix-offsets"), 1),
        ({"healed": healed(1e-6)}, ("--heal", "--fix-config"), 1),
        ({"healed": healed(1.0)}, ("--fix-config",), 2),  # nobody asked for such a risk
        ({"wrong": ["--fix-config"]}, (), 2),
        ({"healed": healed(1e-6), "wrong": ["--heal"]}, ("--fix-config",), 3),
        ({"healed": healed(1e-6), "wrong": ["--heal", "--fix-config"]}, (), 4),
        ({"wrong": ["--fix-config", ""]}, None, 2),
    ],
)
def test_options_are_asked_for_that_mend_something_and_go(
    answers: dict[str, Any], options: tuple[str, ...] | None, tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def work_out(request: RepairRequest, *_: object) -> RepairOutcome:
        seen.append(request)
        wrong = answers.get("wrong", [])
        heals = request.heal_risk is not None and "healed" in answers
        stops = heals and "--heal" in wrong or request.fix_config and "--fix-config" in wrong or "" in wrong
        told = {"healed": answers["healed"] if heals else None, "offsets": answers.get("offsets", ()), "config": (config_row(),)}
        return RepairOutcome(20 if stops else 0, report(**told, problems=("p",)))

    monkeypatch.setattr(ways, "work_out", work_out)
    found = work_out_way(REQUEST, True, lambda *_: [])
    assert found.consistent == (options is not None) and (options is None or found.options == options)
    assert len(seen) == tried and len(set(map(repr, seen))) == tried
    assert bool(found.risk_left) == ("healed" in answers and answers["healed"].total_risk == 1.0)


@pytest.mark.parametrize(
    ("config", "options", "left"),
    [
        ((config_row(left_out=True, reason="no form of it can be read"),), (), "consumerOffset.json: no form of it can be read"),
        ((config_row(left_out=True), config_row(file="config/topics.json")), ("--fix-config",), ""),
        ((), (), "--fix-config finds nothing to write"),
    ],
)
def test_fix_config_is_asked_for_only_where_it_writes_a_file(
    config: tuple[ConfigFile, ...], options: tuple[str, ...], left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "work_out", lambda *_: RepairOutcome(0, report(config=config)))
    found = work_out_way(REQUEST, True, lambda *_: [])
    assert found.options == options and found.config_left.endswith(left) and bool(found.config_left) == bool(left)


def test_a_plan_has_the_steps_of_a_run_with_its_own_options_alone() -> None:
    request = replace(REQUEST, heal_risk=1e-4, fix_config=True, with_earlier=True, empty_config=True, fix_offsets=True)
    assert request.options == ("--heal", "--fix-config", "--empty-config", "--fix-offsets", "--with-earlier")
    risky = replace(REQUEST, heal_risk=0.5, donor=StoreLocation("/a b"))
    assert risky.options == ("--heal", "--heal-risk", "0.5", "--donor", "/a b")


@pytest.mark.parametrize(("days", "late"), [(-30, True), (0, True), (6, True), (8, False)])
def test_late_timers_are_kept_for_a_start_within_a_week(days: int, late: bool) -> None:
    outcome = samples.clean()
    day = FirstDay(StartMoment(NOW + days * 86_400_000, decided=True, now_ms=NOW))
    alter(outcome, findings=[Finding(Code.TIMERS_PASSED_OVER, TIMER_WHEEL)], first_day=day)
    assert timers_late(outcome) is late
    alter(outcome, findings=[])
    assert not timers_late(outcome)
