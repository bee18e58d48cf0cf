"""What a rescue shows before it does anything."""

from __future__ import annotations

from jobs.report.hand_over.rescue_text import audit_text, choice_text, ways_text
from jobs.rescue.ways import Way, choose
from schemas.rows import Comparison, Start
from store_io.repair.repair_work import RepairOutcome
from tests.support.handmade import samples
from tests.support.handmade.handed import report


def start(release: str, lost: int, **more: object) -> Start:
    return Start(release, True, 20, True, starts=True, lost_messages=lost, **more)  # type: ignore[arg-type]


def test_another_release_that_would_lose_less_is_named() -> None:
    outcome = samples.damaged()
    outcome.comparison = Comparison((start("4.9.8", 12), start("5.4.0", 3)), least=("5.4.0",))
    said = audit_text(outcome)
    assert "RocketMQ 5.4.0 loses least: 3 messages." in said
    assert "A start of RocketMQ 4.9.8 as the copy is: 12 messages lost." in said
    assert "\x1b" not in said and "\u202e" not in said
    outcome.comparison = Comparison((start("4.9.8", 3), start("5.4.0", 3)), least=("4.9.8", "5.4.0"))
    assert "Compared" not in audit_text(outcome)


def test_the_ways_stand_beside_a_plain_start() -> None:
    given_up = {"messages": 13, "missing": 1, "cut": 12, "earlier": 0, "signs": []}
    lost = {"messages": 12, "bytes": 3456}
    broker = Way("broker", RepairOutcome(0, report(messages_after=6, lost=lost, given_up=given_up)), seconds=61.0)
    ways = [broker, Way("salvage", RepairOutcome(0, report(messages_after=18)), seconds=1.0)]
    rows = {line[:22].strip(): line[22:].split() for line in ways_text(samples.damaged(), ways).splitlines()}
    assert rows["messages kept"][-3:] == ["6", "6", "18"]
    assert rows["valid ones lost"][-3:] == ["12", "12", "0"] and rows["given up in all"][-3:] == ["-", "13", "0"]
    assert "1 min 1 s" in ways_text(samples.damaged(), ways)
    refused = [Way("broker", None, "there is no end"), ways[1]]
    said = ways_text(samples.refused(), refused)
    assert "does not start" in said and "does not go: there is no end" in said
    choice = choose(refused)
    assert choice is not None
    assert "policy broker does not go" in choice_text(choice, "./spark-submit.sh repair x", "/new.rescue", "")
