"""The sections of a store's page about findings, losses, steps, other copies and limits."""

from __future__ import annotations

from dataclasses import replace

from jobs.installation import ENTRY
from jobs.report.pages.index_html import index_html
from jobs.report.pages.page import MAX_ROWS
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.pages.sections_on_outcome import (
    MAX_COMMANDS,
    ShownSetting,
    findings_view,
    limits_view,
    lost_view,
    settings_view,
)
from jobs.report.texts.finding_words import finding_groups
from jobs.report.texts.summary_text import summary_text
from schemas.losses import LevelBeyond, LossOfStart, TopicLoss
from schemas.outcome import Outcome
from schemas.repair import RepairProposal, RepairStep
from schemas.replicas import FirstDifference, Group, GroupCopy, Lacked, LackedQueue, LackedRange, Pair, Relation
from schemas.rows import DEFAULT, PlanStep
from schemas.start_effect import LostByStart, QueueLost, Setting
from store_io.base.times import iso_time
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.texts.pages import page_of

# A page that offers a repair.
OFFERED = PageContext(samples.RUN, ("/copies/hurt",), "/out/hurt/plan.json")


def test_each_finding_has_the_command_that_looks_closer() -> None:
    outcome = samples.damaged()
    view = findings_view(outcome, ("/s",))
    assert view["groups"] == finding_groups(outcome) != []
    closer = view["closer"]
    assert callable(closer) and any(f"{ENTRY} explain /s " in closer(f) for f in outcome.found.findings)


def test_those_that_lose_most_come_first_and_a_command_lists_what_each_queue_loses() -> None:
    outcome = samples.damaged()
    topics = [TopicLoss(name, number, 1, 2) for name, number in (("a", 1), ("b", 9), ("c", 9))]
    samples.start_changed(outcome, lost=LostByStart(36, 0, [QueueLost("b", i, i, 1, 2) for i in range(9)]))
    alter(outcome, loss=LossOfStart(by_topic=tuple(topics), delay_levels=(LevelBeyond(1, 2, 1),)))
    alter(
        outcome, queues=[{"topic": "b", "queue_id": i, "log_end_offset": 20, "dispatch_max_offset": 20 - i % 8} for i in range(9)]
    )
    view = lost_view(outcome, ("/s",))
    assert [topic.topic for topic in view["topics"]] == ["b", "c", "a"]  # type: ignore[attr-defined]
    assert [queue.queue_id for queue in view["queues"]] == [8, 7, 6, 5, 4, 3, 2, 1, 0]  # type: ignore[attr-defined]
    commands = view["commands"]
    assert isinstance(commands, list) and len(commands) == MAX_COMMANDS - 1  # queue 8 has all its entries
    assert commands[0] == f"{ENTRY} query /s --topic b --queue 7 --from-queue-offset 13 --to-queue-offset 20"
    assert view["levels"] == outcome.loss.delay_levels
    many = [QueueLost("b", i, 1 + i // 2, 1, 2) for i in range(MAX_ROWS + 5)]
    samples.start_changed(outcome, lost=LostByStart(9, 0, many))
    view = lost_view(outcome, ("/s",))
    assert view["queue_count"] == MAX_ROWS + 5
    assert view["queues"] == sorted(many, key=lambda q: (-q.messages, q.queue_id))[:MAX_ROWS]
    for queue in outcome.rows.queues:
        queue["topic"] = "b\n"
    samples.start_changed(outcome, lost=LostByStart(36, 0, [QueueLost("b\n", i, i, 1, 2) for i in range(9)]))
    view = lost_view(outcome, ("/s",))
    assert view["commands"] == [] and len(view["withheld"]) == 1  # type: ignore[arg-type]
    assert "--topic-file" in view["withheld"][0]  # type: ignore[index]
    nothing = {"topics": [], "queues": [], "queue_count": 0, "commands": [], "withheld": [], "groups": [], "levels": ()}
    assert lost_view(samples.clean(), ("/s",)) == {"iso_time": iso_time, **nothing}


def test_what_one_cut_takes_from_many_queues_is_told_as_one() -> None:
    def step(action: str, file: str, reason: str = "cut") -> PlanStep:
        return PlanStep(action, file, 0, 20, reason, 2, 9)

    outcome = samples.damaged()
    queues = [step("delete" if i % 2 else "truncate", f"consumequeue/t{i}/0/0") for i in range(10)]
    alter(
        outcome,
        steps=[
            step("keep", "commitlog/0", "sound"),
            step("delete", "commitlog/1"),
            *queues,
            step("rebuild", "index/1"),
        ],
    )
    text = page_of(outcome).text.partition("keeps what is given up here.")[2]
    assert "keep commitlog/0, bytes 0 to 20" in text and "delete commitlog/1, bytes 0 to 20, gives up 2 messages, 9 B" in text
    assert "delete 5 queue files, truncate 5 queue files, gives up 20 messages, 90 B" in text
    assert "rebuild index/1" in text


def to_repair() -> Outcome:
    outcome = samples.damaged()
    alter(outcome, steps=[replace(step, action="truncate") for step in outcome.plan.steps])
    return outcome


def test_the_steps_of_a_repair_by_each_policy() -> None:
    outcome = to_repair()
    steps = (
        RepairStep("copy", "", reason="why <b>", kept={"files": 3}),
        RepairStep("rebuild_queue", "consumequeue/<i>/0", 0, 1200, "why <b>", {"entries": 60}, {"positions": 1}),
    )
    salvage = samples.worked_out("salvage", messages_before=100, messages_after=99, given_up=1, steps=steps)
    alter(outcome, repairs=(RepairProposal("broker", "no <segment>"), salvage))
    page = page_of(outcome, OFFERED)
    assert page.problems() == []
    assert "The steps by policy broker: no <segment>." in page.text
    shown = page.text.partition("Repair by policy salvage: ")[2]
    assert shown.startswith("2 steps, keeps 99 of 100 valid messages")
    assert "1. copy the store, keeps 3 fileswhy <b>" in shown
    assert "2. rebuild consumequeue/<i>/0, bytes 0 to 1,200, keeps 60 entries, loses 1 positionwhy <b>" in shown


def test_no_steps_are_shown_where_no_repair_is_offered() -> None:
    outcome = to_repair()
    alter(outcome, repairs=(RepairProposal("broker", "never shown"), outcome.repairs[1]))
    assert "never shown" in page_of(outcome, OFFERED).text
    alter(outcome, release_from=DEFAULT)
    assert "never shown" not in page_of(outcome, OFFERED).text


def hostile_group(name: str) -> Group:
    bad = "<script>\x1b[31m"
    first = FirstDifference(9, 1, 300, "BODY", bad, 0, 3, name, bad, "damaged")
    part = LackedRange(1, 301, "damaged", 1, 300, 1, 2)
    known = {"starts": None, "start": 0, "end": 10, "messages": 5, "lacks": 1, "cut": None, "loses": None}
    return Group(
        bad,
        why=f"{bad} is not known to start.",
        copies=tuple(GroupCopy(store, **known) for store in (name, bad)),
        pairs=(Pair(name, bad, Relation.DAMAGED, same_until=9, first_difference=first),),
        lacks=(Lacked(name, bad, 1, 300, (LackedQueue("t", 0, 1, 300, 0, 0, 1, 2),), (part,) * 200),),
        problems=(bad,),
    )


def test_hostile_names_stay_text() -> None:
    one, other = samples.clean(), samples.clean()
    other = replace(other, name="b")
    for outcome in (one, other):
        alter(outcome, replicas=hostile_group(one.name))
        alter(outcome, replica_group=outcome.replicas.name)
    page = "".join(report_html(one)).partition('<section id="replicas"')[2].partition("</section>")[0]
    assert "<script>" not in page and "\x1b" not in page and "&lt;script&gt;" in page
    assert page.count("<tr>") < 110  # bounded
    index = "".join(index_html(samples.RUN, [one, other]))
    assert "<script>" not in index and "\x1b" not in index and "is not known to start." in index
    text = summary_text(samples.RUN, [one, other], "out")
    assert "\x1b" not in text and "Replicas" in text


def test_settings_other_than_the_defaults_stand_apart_and_read_as_in_a_broker_conf() -> None:
    outcome = samples.clean()
    alter(outcome, settings={"b": Setting(True, "default"), "c": Setting(5, "inferred"), "a": Setting("x", "broker.conf")})
    assert settings_view(outcome) == {
        "own": [ShownSetting("a", "x", "broker.conf"), ShownSetting("c", "5", "inferred")],
        "defaults": [ShownSetting("b", "true", "default")],
    }


def test_what_was_read_is_counted_by_kind_of_file() -> None:
    outcome = samples.clean()
    alter(
        outcome, segments=[{"size_bytes": 10, "bytes_read": 7, "problem": "cannot be read"}, {"size_bytes": 5, "bytes_read": 5}]
    )
    alter(outcome, segment_count=2)
    alter(outcome, queues=[{"file_count": 3, "bytes_read": 60}])
    parts = limits_view(outcome)["parts"]
    assert isinstance(parts, list)
    assert [(part.name, part.found, part.read, part.size, part.problems) for part in parts] == [
        ("CommitLog", "2 segments", 12, 15, 1),
        ("ConsumeQueues", "1 queue, 3 files", 60, None, 0),
        ("index", "0 files", 0, 0, 0),
    ]
