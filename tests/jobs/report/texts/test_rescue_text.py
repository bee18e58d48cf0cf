"""What a rescue shows before it does anything."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.texts.rescue_text import audit_text, choice_text, ways_text
from schemas.advice import Advice, Step
from schemas.outcome import Outcome
from schemas.repair import GivenUp, LeftMessages
from schemas.rows import Comparison, Finding, Row, Start
from store_io.repair.repair_work import RepairOutcome
from store_io.repair.ways import Way
from tests.support.handmade import samples
from tests.support.handmade.handed import report
from tests.support.handmade.outcome_fields import alter, varied
from tests.support.handmade.samples import worked_out


def start(release: str, lost: int, **more: object) -> Start:
    return Start(release, True, 20, True, starts=True, lost_messages=lost, **more)  # type: ignore[arg-type]


def test_another_release_that_would_lose_less_is_named() -> None:
    outcome = samples.damaged()
    alter(outcome, comparison=Comparison((start("4.9.8", 12), start("5.4.0", 3)), least=("5.4.0",)))
    said = audit_text(outcome)
    assert "RocketMQ 5.4.0 loses least: 3 messages." in said
    assert "A start of RocketMQ 4.9.8 as the copy is: 12 messages lost." in said
    assert "\x1b" not in said and "\u202e" not in said
    alter(outcome, comparison=Comparison((start("4.9.8", 3), start("5.4.0", 3)), least=("4.9.8", "5.4.0")))
    assert "Compared" not in audit_text(outcome)


def test_the_ways_stand_beside_a_plain_start() -> None:
    given_up, lost = GivenUp(13, 1, 12), LeftMessages(12, 3456)
    broker = Way("broker", RepairOutcome(0, report(messages_after=6, lost=lost, given_up=given_up)), seconds=61.0)
    ways = [broker, Way("salvage", RepairOutcome(0, report(messages_after=18)), seconds=1.0)]
    rows = {line[:22].strip(): line[22:].split() for line in ways_text(samples.damaged(), ways).splitlines()}
    assert rows["messages kept"][-3:] == ["6", "6", "18"]
    assert rows["valid ones lost"][-3:] == ["12", "12", "0"] and rows["given up in all"][-3:] == ["-", "13", "0"]
    assert "1 min 1 s" in ways_text(samples.damaged(), ways)
    refused = [Way("broker", None, "there is no end"), ways[1]]
    said = ways_text(samples.refused(), refused)
    assert "does not start" in said and "does not go: there is no end" in said


def reason(outcome: Outcome, broker: Row, salvage: Row) -> str:
    alter(outcome, repairs=(worked_out("broker", **broker), worked_out("salvage", **salvage)))
    line, *_ = choice_text(outcome, "", "/new.rescue", False).splitlines()
    return line.removeprefix("  Reason     ")


def test_the_reason_says_what_decides_between_the_policies() -> None:
    outcome = samples.damaged()
    assert reason(outcome, {"messages_after": 11}, {}).startswith("it keeps 7 more of the messages, also those")
    assert "both keep the same messages" in reason(outcome, {}, {})
    assert reason(outcome, {"given_up": 3}, {"given_up": 1}) == "it gives up 2 fewer messages"
    assert reason(outcome, {"refused": "why not"}, {}) == "policy broker does not go: why not"
    healed = reason(outcome, {"healed": 1, "risk": 2e-6}, {"healed": 1, "risk": 2e-6})
    assert healed.endswith("--heal makes 1 damaged record whole (risk of a wrong change: 1 in 500,000)")
    assert "decide on repair --heal yourself" in reason(outcome, {"risk_left": 1.0}, {"risk_left": 1.0})


def test_the_reason_names_a_setting_and_not_damage_where_there_is_none() -> None:
    outcome = varied(samples.damaged(), damaged_extents=0)
    found = Finding("broker_drops_messages", "commitlog/0", severity="loss", actual="dup_info")
    alter(outcome, findings=[found])
    more = "it keeps 7 more of the messages"
    assert reason(outcome, {"messages_after": 11}, {}) == more  # the record may be damaged
    alter(outcome, findings=[replace(found, next=Advice(Step.SWITCH_OFF, ("duplicationEnable",)))])
    with_setting = f"{more}: those that a start with duplicationEnable=true cuts"
    assert reason(outcome, {"messages_after": 11}, {}) == with_setting
