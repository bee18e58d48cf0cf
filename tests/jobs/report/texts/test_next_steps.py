"""What a summary and a page say is to be done: one list, first what costs nothing, last what gives something up."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from jobs.installation import ENTRY
from jobs.report.files.result_files import result_json
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts.next_steps import ShownStep, first_name, shown_steps
from jobs.report.texts.step_words import deleted_files
from jobs.report.texts.summary_text import summary_text
from jobs.report.texts.text import printable
from schemas.advice import Advice, Cause, Gap, Lack, NotWhole, Refusal, RefusalKind, Step
from schemas.answer import GivesUp, StepName
from schemas.finding_codes import BY_A_REPAIR, CATALOGUE, STARTS_DISPATCH
from schemas.losses import LossOfStart
from schemas.outcome import Outcome
from schemas.repair import ConfigFile, FormLeft, RepairProposal, RepairStep
from schemas.replicas import NO_GROUP, Group, GroupCopy, Pair, Relation, TableAhead, TableEntry
from schemas.rows import NOTE, REBUILDABLE, ConfigTables, Finding, PlanStep
from schemas.start_effect import ControlledStart, Election, StartEffect
from store_io.answer import steps as steps_module
from store_io.answer.answers import answer_of
from store_io.answer.headline import judge
from store_io.wording.steps import advice_text, next_text
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter, varied
from tests.support.texts.pages import Page

HEALS = "a repair makes it with --heal"
WORDS = ("/copies/hurt", "--release", "4.9.8")
PLAN = "/out/hurt/plan.json"
SALVAGE = CATALOGUE["broker_drops_messages"].next
REPAIR = advice_text(SALVAGE)


def page_text(outcome: Outcome) -> str:
    page = "".join(report_html(outcome, PageContext(store_words=WORDS, plan=PLAN)))
    return html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2].replace("<wbr>", "")))


def summary(outcome: Outcome) -> str:
    return summary_text(samples.RUN, [outcome], "/out", words=WORDS)


def steps_of(outcome: Outcome, to: str = "") -> list[ShownStep]:
    return shown_steps(outcome, WORDS, PLAN, to)


def names_of(outcome: Outcome) -> list[str]:
    return [step.name for step in steps_of(outcome)]


def texts_of(outcome: Outcome, name: str) -> list[str]:
    return [step.text for step in steps_of(outcome) if step.name == name]


def stuck() -> Outcome:
    """The same store under a release that does not start."""
    outcome = hurt()
    alter(outcome, effect=StartEffect(None))
    return outcome


def hurt(code: str = "broker_drops_messages", **start: Any) -> Outcome:
    """Of 18 messages a start loses 12."""
    outcome = samples.damaged()
    alter(outcome, steps=[*outcome.plan.steps, PlanStep.whole("delete", "commitlog/x", "r")])
    samples.start_changed(outcome, **start)
    if code == "broker_skips_messages":
        alter(outcome, repairs=samples.proposed())
    alter(outcome, findings=[Finding(code, "commitlog/x", severity="loss", count=12, next=SALVAGE), *outcome.found.findings])
    return outcome


def test_what_costs_nothing_comes_first_and_the_repair_with_what_it_gives_up_after_it() -> None:
    text = re.sub(r"\s+", " ", page_text(hurt()))
    parts = (
        "Answer: repair",
        "other : Look for these bytes in another copy of the same broker",
        "repair : Repair the copy: this keeps the 12 messages that a start would cut; it gives up nothing.",
        f"--plan {PLAN} --to /copies/hurt-repaired --policy salvage",
        "start : Start RocketMQ 4.9.8 on the repaired store, never on this copy.",
        "check : Go through the checks of the hand-over page",
    )
    order = [text.index(part) for part in parts]
    assert order == sorted(order)
    assert REPAIR not in text.partition("Words used")[0]  # the repair's own step says it, with its number


@pytest.mark.parametrize("outcome", samples.every_kind(), ids=lambda outcome: outcome.name.encode("ascii", "replace").decode())
def test_terminal_page_and_result_list_the_same_steps_in_the_order_of_their_names(outcome: Outcome) -> None:
    steps, order = steps_of(outcome), [*StepName]
    assert [order.index(step.name) for step in steps] == sorted(order.index(step.name) for step in steps)
    assert first_name(outcome) == (steps[0].name if steps else "")
    run = replace(samples.RUN, out=PLAN.rpartition("/")[0])
    outcome = replace(outcome, name="hurt") if outcome.replicas == NO_GROUP else outcome
    steps = shown_steps(outcome, WORDS, run.plan_of(outcome.name))
    (row,) = json.loads(result_json(run, [outcome], {outcome.name: WORDS}))["stores"]
    assert row["answer"] == answer_of(outcome)
    assert [(step["step"], step["text"], step["command"] or "") for step in row["steps"]] == [
        (step.name, step.text, step.command) for step in steps
    ]
    page = Page("".join(report_html(outcome, PageContext(run, WORDS, run.plan_of(outcome.name)))))
    assert page.problems() == [] and (sum(tag == {"class": "next"} for tag in page.all("ol")) == 1) == bool(steps)
    listed = ["".join(item.split()) for item in re.findall(r"<li>(.*?)</li>", _list_of(page.source), re.DOTALL)]
    shown = [html.unescape(re.sub(r"<[^>]+>", "", item)) for item in listed]
    assert shown == ["".join(printable(f"{step.name}: {step.text}{step.command}").split()) for step in steps]
    text = "".join(summary_text(run, [outcome], run.out, words=WORDS).split())
    at = [text.index("".join(printable(f"{n}. {step.name}: {step.text}").split())) for n, step in enumerate(steps, 1)]
    assert at == sorted(at) and all("".join(step.command.split()) in text for step in steps)


def _list_of(page: str) -> str:
    return page.partition('<ol class="next">')[2].partition("</ol>")[0]


def test_a_list_of_many_steps_is_bounded_and_says_how_many_more_there_are() -> None:
    outcome = hurt()
    alter(
        outcome,
        findings=[
            *outcome.found.findings,
            *[
                Finding(
                    "topic_not_in_table", "config/topics.json", severity="loss", next=Advice(Step.SET_LINE, (f"Set {number}",))
                )
                for number in range(30)
            ],
        ],
    )
    conditions = texts_of(outcome, StepName.CONDITION)
    assert len(conditions) == steps_module.MOST_STEPS + 1
    assert conditions[-1] == "And 22 more steps like these: findings.jsonl has all."
    assert page_text(outcome).count("Set ") < 20


@pytest.mark.parametrize(
    ("election", "judged"),
    [(None, "A start never ends: it waits at one place"), (Election(1, 0, True, (), None), "The broker stays fenced")],
)
def test_a_start_and_an_election_that_never_end(election: Election | None, judged: str) -> None:
    outcome = hurt("broker_hangs", controller=ControlledStart(-1, (), election))
    assert judged in " ".join(judge(outcome).why)
    assert texts_of(outcome, StepName.START) == ["Start RocketMQ 4.9.8 on the repaired store, never on this copy."]


def test_a_step_that_another_one_begins_with_is_said_once_for_the_files_of_both() -> None:
    outcome = hurt()
    short, longer = CATALOGUE["message_lost"].next, CATALOGUE["commitlog_damaged"].next
    assert advice_text(longer).startswith(advice_text(short)) and longer != short
    for code, file, step in (("message_lost", "commitlog/a", short), ("commitlog_damaged", "commitlog/b", longer)):
        alter(outcome, findings=[*outcome.found.findings, Finding(code, file, severity="loss", next=step)])
    (only,) = texts_of(outcome, StepName.OTHER)
    assert only == f"{advice_text(longer).rstrip('.')} (commitlog/00000000000000001024 and 2 more)."


def test_a_copy_of_a_running_broker_is_to_be_copied_again_although_that_is_a_note() -> None:
    outcome, step = hurt(), CATALOGUE["live_copy"].next
    assert advice_text(step) not in page_text(outcome) and StepName.COPY not in names_of(outcome)
    alter(outcome, findings=[Finding("live_copy", "commitlog/x", severity="note", next=step), *outcome.found.findings])
    assert advice_text(step) in page_text(outcome).partition("Words used")[0]
    assert advice_text(step) in re.sub(r"\s+", " ", summary(outcome))


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (hurt(), "this keeps the 12 messages that a start would cut; it gives up nothing."),
        (hurt("broker_skips_messages"), "this keeps the 12 messages that a start would lose; it gives up nothing."),
        (stuck(), "this keeps all 18 messages and removes what stops the release; it gives up nothing."),
    ],
    ids=["cut", "skipped", "refused"],
)
def test_the_summary_lists_the_steps_before_all_else_and_the_repair_as_one_of_them(outcome: Outcome, sentence: str) -> None:
    outcome = replace(outcome, name="hurt")  # its folder's name, in a command
    lines = summary(outcome).splitlines()
    labels = [line[2:12].strip() for line in lines if line.startswith("  ") and line[2:12].strip()]
    assert labels[:4] == ["Answer", "Next", "Repair", "Why"] and "Closer" in labels
    assert f"2. repair: Repair the copy: {sentence}" in " ".join(summary(outcome).split())
    command = next(number for number, line in enumerate(lines) if line.startswith("  Repair"))
    assert lines[command - 1].strip() in f"2. repair: Repair the copy: {sentence}"[-200:] and "3. start" in lines[command + 1]


def test_the_repair_that_is_recommended_comes_first_with_its_options() -> None:
    outcome = replace(hurt(), name="hurt")  # its folder's name, in a command
    assert "--policy salvage\n" in summary(outcome) and f"  Repair     {ENTRY} repair " in summary(outcome)
    alter(outcome, repairs=samples.proposed(messages_after=19, healed=1, risk=1e-6, options=("--heal", "--fix-config")))
    text = re.sub(r"\s+", " ", summary(outcome))
    assert "--policy broker --heal --fix-config " in text
    healed = "--heal makes 1 damaged record whole (risk of a wrong change: 1 in 1,000,000)"
    what = f"this keeps the 12 messages that a start would cut; {healed}"
    assert what in text and what in re.sub(r"\s+", " ", page_text(outcome))


def test_what_a_repair_gives_up_is_said_in_numbers_and_in_the_result() -> None:
    outcome = hurt()
    steps = *samples.worked_out("broker").steps, RepairStep("correct_offsets", "config", kept={"positions": 4})
    left = (ConfigFile("config/topics.json", not_kept=(FormLeft("config/topics.json.bak", None, None, ("T",), 2),)),)
    alter(outcome, repairs=samples.proposed(given_up=3, steps=steps, config=left, options=("--fix-offsets",)))
    (step,) = (step for step in steps_of(outcome) if step.name == StepName.REPAIR)
    assert step.gives_up == GivesUp(messages=3, offsets=4, entries=2)
    assert step.text.endswith(
        "--fix-offsets sets back 4 offsets beyond the new ends of the queues; it gives up 3 messages and 2 entries of config/."
    )
    resent = "Send again what the repair gives up, 3 messages: the files beside the new store name them."
    assert texts_of(outcome, StepName.RESEND) == [resent]


def test_where_no_repair_was_worked_out_rescue_does_it() -> None:
    outcome = replace(hurt(), name="hurt")
    alter(outcome, repairs=tuple(RepairProposal(policy, "too large", worked_out=False) for policy in ("broker", "salvage")))
    assert f"  Repair     {ENTRY} rescue {WORDS[0]} --release 4.9.8\n" in summary(outcome)
    assert "Work out a repair by each policy: rescue recommends the one that keeps more." in re.sub(r"\s+", " ", summary(outcome))


def test_a_large_store_elsewhere_gets_a_rescue_that_names_a_folder_here() -> None:
    outcome = replace(hurt(), name="hurt")
    alter(outcome, repairs=tuple(RepairProposal(policy, "too large", worked_out=False) for policy in ("broker", "salvage")))
    text = summary_text(samples.RUN, [outcome], "/out", words=("s3://b/s", "--release", "4.9.8"))
    assert f"  Repair     {ENTRY} rescue s3://b/s --release 4.9.8 --to new\n" in text


def test_no_repair_is_shown_while_a_broker_holds_the_lock() -> None:
    """Neither by the terminal nor on the page, which an operator reads beside it."""
    why = "A repair refuses a directory that a broker uses."
    outcome, context = replace(hurt(), name="hurt", in_use=why), PageContext(store_words=WORDS, plan=PLAN)
    for told in (summary(outcome), "".join(report_html(outcome, context))):
        assert why in told and f"{ENTRY} repair" not in told
    assert (steps_of(outcome)[0].name, first_name(outcome)) == (StepName.STOP, StepName.STOP)
    assert f"{ENTRY} repair" in "".join(report_html(replace(outcome, in_use=""), context))


def test_what_a_repair_heals_is_not_to_be_looked_at_again() -> None:
    outcome = replace(hurt(), name="hurt")
    step = CATALOGUE["commitlog_damaged"].next
    alter(outcome, findings=[Finding("commitlog_damaged", "commitlog/0", severity="loss", next=step, message="m")])
    assert HEALS in advice_text(step) and any(HEALS in said for said in texts_of(outcome, StepName.OTHER))
    alter(outcome, repairs=samples.proposed(19, messages_after=19, healed=1, options=("--heal",)))
    assert not any(HEALS in said for said in texts_of(outcome, StepName.OTHER))


def test_where_no_repair_goes_that_is_said() -> None:
    outcome = hurt()
    alter(outcome, repairs=tuple(RepairProposal(policy, "There is no end.") for policy in ("broker", "salvage")))
    for text in (page_text(outcome), summary(outcome)):
        told = re.sub(r"\s+", " ", text)
        assert "No repair goes: there is no end. The copy is as it was; look for another copy of this broker, and name" in told
        assert "spark-submit.sh repair" not in told
    assert answer_of(outcome) == "other_copy" and StepName.REPAIR not in names_of(outcome)


def test_where_a_repair_is_offered_its_own_steps_are_not_listed() -> None:
    outcome = hurt()
    row = Finding("queue_entry_missing", "consumequeue/t/0/0", severity="rebuildable", next=CATALOGUE["queue_entry_missing"].next)
    alter(outcome, findings=[*outcome.found.findings, row])
    assert next_text(row.next) not in " ".join(summary(outcome).split())


def test_a_store_to_whose_place_no_repair_writes_has_the_step_without_a_command() -> None:
    text = summary_text(samples.RUN, [hurt()], "/out", words=("gs://bucket/store", "--release", "4.9.8"))
    assert "  Repair" not in text and "2. repair: Repair the copy: this keeps the 12 messages" in " ".join(text.split())


def test_where_a_setting_stops_the_start_no_repair_is_offered() -> None:
    outcome = stuck()
    samples.with_refusal(outcome, Refusal(RefusalKind.DOUBLE_WRITE_LIGHT, setting="combineCQPreferCQType=x"))
    alter(outcome, findings=[Finding("broker_refuses", "x", severity="loss", next=outcome.refusal.correct_line)])
    step = "Correct this line of broker.conf, the copy is not at fault: combineCQPreferCQType=x."
    assert texts_of(outcome, StepName.CHANGE) == [step] and names_of(outcome) == [StepName.CHANGE, StepName.START]
    assert "A repair removes the cause" not in page_text(outcome)


def test_a_consistent_store_is_started() -> None:
    outcome = samples.clean()
    # Steps there are: what a start deletes and makes again by itself. They stay in plan.json.
    alter(outcome, steps=[*outcome.plan.steps, PlanStep.whole("delete", "commitlog/x", "r")])
    text = summary(outcome)
    assert "  Next       1. start: Start RocketMQ 5.3.3 on this copy: it loses nothing.\n" in text and "  Repair" not in text
    page = "".join(report_html(outcome, PageContext(store_words=WORDS, plan=PLAN)))
    assert "it loses nothing." in page and 'class="steps"' not in page
    assert not any(part in page for part in ('id="leaves"', "#leaves", 'id="repair"', "#repair"))


def test_nothing_is_said_of_what_was_not_judged() -> None:
    outcome = varied(samples.clean(), not_judged=["timers"])
    said = "Start RocketMQ 5.3.3 on this copy: it loses nothing of what was judged."
    assert texts_of(outcome, StepName.START) == [said] and "loses nothing." not in summary(outcome).partition("  Why ")[0]


def test_a_log_that_is_kept_elsewhere_is_copied_and_named() -> None:
    outcome = varied(samples.not_audited(), config=ConfigTables({}, {}, {}, {}))
    alter(outcome, gaps=[Gap(Cause.LOG_ELSEWHERE, "commitlog", ("/data/log", ""))])
    (step,) = steps_of(outcome)
    said = "Copy /data/log from the broker's machine as well, and name that copy with --commitlog."
    assert (step.name, step.text, answer_of(outcome)) == (StepName.COPY, said, "copy_again")


def test_what_a_copy_lacks_is_copied_again_before_anything_is_given_up() -> None:
    outcome = hurt()
    alter(outcome, signs=[NotWhole(Lack.QUEUES_LATER, "commitlog/00000000000000001024", messages=12)])
    assert names_of(outcome) == ["stop", "copy", "other", "repair", "start", "check"]
    copy = steps_of(outcome)[1]
    assert copy.command == "rsync -a rocketmq@BROKER:store/ /copies/hurt-again/" and copy.text.endswith(":")
    (repair,) = texts_of(outcome, StepName.REPAIR)
    assert repair.startswith("If none of this can be had any more, repair the copy: ")


def test_a_file_that_a_start_deletes_is_named_with_what_it_is() -> None:
    def segment(number: int, messages: int, *kinds: str, **more: Any) -> dict[str, Any]:
        extents = [{"start": 0, "end": 9, "kind": kind} for kind in kinds]
        return {"file": f"commitlog/{number}", "size_bytes": 9, "messages": messages, "extents": extents, **more}

    outcome = hurt()
    alter(
        outcome,
        segments=[
            segment(1, 0, "unwritten"),
            segment(2, 12, "message", "unwritten"),
            segment(3, 0, "damaged"),
            segment(4, 1, "message"),
            segment(5, 0, size_bytes=0),
            segment(6, 0, problem="commitlog/6: cannot be read"),
            segment(7, 0, "filler", "unwritten"),
        ],
    )
    queues = ["consumequeue/T/0/0", "consumequeue/T/1/0"]
    others = ["index/20", "consumequeue_ext/T/0/0", "batchconsumequeue/B/0/0", "commitlog/odd", "odd"]
    samples.start_changed(outcome, deleted_files=[*others, *queues, *(row["file"] for row in outcome.rows.segments)])
    assert {d.words: d.files for d in deleted_files(outcome)} == {
        "2 segments with 13 valid messages": ["commitlog/2", "commitlog/4"],
        "1 segment with damaged bytes and no valid message": ["commitlog/3"],
        "1 segment that was not read": ["commitlog/6"],
        "1 segment without a message": ["commitlog/7"],
        "1 empty preallocated segment": ["commitlog/1"],
        "1 empty file in commitlog/": ["commitlog/5"],
        "1 file in commitlog/": ["commitlog/odd"],
        "2 ConsumeQueue files": queues,
        "1 BatchConsumeQueue file": ["batchconsumequeue/B/0/0"],
        "1 ConsumeQueueExt file": ["consumequeue_ext/T/0/0"],
        "1 index file": ["index/20"],
        "1 file": ["odd"],
    }
    assert [deleted.held for deleted in deleted_files(outcome)] == [True, *[False] * 11]
    lines = summary(outcome).splitlines()
    at = lines.index("  Deletes    2 segments with 13 valid messages: commitlog/2, commitlog/4")
    assert lines[at + 4] == "             1 empty preallocated segment: commitlog/1"
    text = re.sub(r"\s+", " ", page_text(outcome))
    assert "A start deletes 2 ConsumeQueue files: consumequeue/T/0/0 , consumequeue/T/1/0" in text
    samples.start_changed(outcome, deleted_files=[])
    assert deleted_files(outcome) == [] and "Deletes" not in summary(outcome)


@pytest.mark.parametrize(
    ("outcome", "headline"),
    [
        (samples.clean(), "Not known whether this copy is safe to start: by its files"),
        (hurt(), "Do not start this copy yet: a start cuts 12 valid messages after physical offset 1,124; by its files"),
    ],
)
def test_a_release_that_did_not_write_the_copy_makes_no_answer_but_a_warning(outcome: Outcome, headline: str) -> None:
    alter(outcome, release_from="default", written_by="5.0.0 to 5.3.3")
    for text in (page_text(outcome), summary(outcome)):
        told = re.sub(r"\s+", " ", text)
        assert f"{headline} RocketMQ 5.0.0 to 5.3.3 wrote it, and this answer is for {outcome.release}" in told
        assert "Name the broker's own release with --release and audit again: by its files RocketMQ 5.0.0 to 5.3.3" in told
        assert "which is assumed" not in told
    assert judge(outcome).kind in ("unknown", "stop")
    alter(outcome, written_by="")  # it can have written the copy, or nothing tells
    assert judge(outcome).headline.endswith(f", if its release is {outcome.release}, which is assumed")


def test_an_assumed_release_gets_no_repair_advice_beside_the_refusal_to_give_it() -> None:
    outcome = hurt()
    alter(outcome, release_from="default")
    step = CATALOGUE["queue_entry_missing"].next
    alter(
        outcome,
        findings=[
            *outcome.found.findings,
            Finding("queue_entry_missing", "consumequeue/T/0/0", severity="rebuildable", next=step),
        ],
    )
    for text in (page_text(outcome), summary(outcome)):
        advice = re.sub(r"\s+", " ", text)
        assert "no repair command is shown for an assumed one" in advice
        assert REPAIR not in advice.partition("Words used")[0]
        assert advice_text(step) not in advice.partition("Words used")[0]


@pytest.mark.parametrize(
    ("parted", "first"),
    [
        (False, "Start this copy as master only if master, which holds 300 later messages, cannot be used."),
        (
            True,
            "Compare this copy with master, which holds 300 messages that this copy lacks, before either becomes master:"
            " replicas.json has what each of them lacks.",
        ),
    ],
)
def test_a_copy_that_lacks_messages_is_told_which_one_to_start(parted: bool, first: str) -> None:
    outcome = samples.behind(samples.clean(), parted)
    for text in (page_text(outcome), summary(outcome)):
        told = re.sub(r"\s+", " ", text)
        assert first in told and "loses no message" not in told
    assert ("start" in names_of(outcome)) == (not parted)


OFFSETS, NAMED_TOPICS = ("offsets", "config/consumerOffset.json"), ("topics", "config/topics.json")
TAKE = "first, before this copy becomes master"


@pytest.mark.parametrize(
    ("table", "rows", "relation", "told"),
    [
        (OFFSETS, ["own<b"], "equal", f"Take config/consumerOffset.json of b {TAKE}: it has the greater offsets."),
        (OFFSETS, ["own<b"], "apart", ""),
        (OFFSETS, ["b<own"], "equal", ""),
        (NAMED_TOPICS, ["own<b"], "equal", f"Take config/topics.json of b {TAKE}: this copy lacks 2 topics of those in it."),
        (
            OFFSETS,
            ["own<b", "own<c", "b<c"],
            "equal",
            f"Take config/consumerOffset.json of c {TAKE}: it has",
        ),
        (
            OFFSETS,
            ["own<b", "b<own"],
            "equal",
            "Before this copy becomes master, put together the greatest of each offset from its own table and"
            " config/consumerOffset.json of b.",
        ),
    ],
)
def test_a_copy_is_told_which_tables_to_take_before_it_becomes_master(
    table: tuple[str, str], rows: list[str], relation: str, told: str
) -> None:
    outcome = samples.behind(samples.clean())
    names = {"own": outcome.name, "b": "b", "c": "c"}
    entries = TableEntry("T"), TableEntry("U")
    stores = [[names[name] for name in row.split("<")] for row in rows]
    alter(
        outcome,
        replicas=Group(
            "g",
            outcome.name,
            outcome.replicas.why,
            copies=tuple(GroupCopy(name, start=0, end=900, messages=9) for name in names.values()),
            pairs=(Pair(outcome.name, "b", Relation(relation), same_until=900),),
            config=tuple(TableAhead(store, holder, *table, lacks=2, entries=entries) for store, holder in stores),
        ),
    )
    for text in (page_text(outcome), summary(outcome)):
        shown = re.sub(r"\s+", " ", text)
        assert "Safe to start" in shown and told in shown and (TAKE in shown or "put together" in shown) == bool(told)
    alter(outcome, exit_code=10, counts={"rebuildable": 1})
    alter(
        outcome,
        findings=[
            *outcome.found.findings,
            Finding("queue_entry_missing", "consumequeue", severity="rebuildable", next=Advice(Step.REBUILD_QUEUE)),
        ],
    )
    assert texts_of(outcome, StepName.OTHER) == [*filter(None, [step for step in [told] if step.endswith(".")])] or told
    assert told in re.sub(r"\s+", " ", page_text(outcome))


def test_missing_messages_are_not_called_damaged_ones() -> None:
    outcome = samples.clean()
    alter(
        outcome,
        findings=[
            *outcome.found.findings,
            Finding("segment_missing", "commitlog/x", severity="loss", count=323, next=Advice(Step.SEEK_SEGMENT)),
        ],
    )
    alter(outcome, counts={"loss": 1})
    alter(outcome, exit_code=20)
    for text in (page_text(outcome), summary(outcome)):
        assert "Messages are missing from this copy already; a start loses none of the others" in text


def test_what_a_start_mends_needs_no_repair_and_what_it_leaves_does() -> None:
    """Never two statements: repair, and start it."""
    outcome = hurt()
    alter(outcome, loss=LossOfStart(), log_end=2048)
    alter(outcome, findings=[Finding("queue_entry_missing", "consumequeue", severity="rebuildable", next=STARTS_DISPATCH)])
    alter(outcome, counts={"rebuildable": 1})
    assert judge(outcome).headline.startswith("A start loses no message and mends what differs: ")
    assert names_of(outcome) == ["start", "check"] and f"{ENTRY} repair" not in summary(outcome)
    for text in (" ".join(summary(outcome).split()), " ".join(page_text(outcome).split())):
        assert "Start RocketMQ 4.9.8 on this copy: it loses no message that the copy holds, and mends what differs." in text
        assert "commitLogMaxOffset of mqadmin brokerStatus is no less than 1124" in text
    alter(
        outcome,
        findings=[
            *outcome.found.findings,
            replace(outcome.found.findings[0], code="queue_entry_wrong", next=CATALOGUE["queue_entry_wrong"].next),
        ],
    )
    alter(outcome, counts={"rebuildable": 2})
    assert names_of(outcome) == ["repair", "start", "check"]
    assert texts_of(outcome, "start") == ["Start RocketMQ 4.9.8 on the repaired store, never on this copy."]


def test_what_a_repair_leaves_as_it_is_is_said_by_text_and_page() -> None:
    outcome = hurt()
    alter(outcome, repairs=samples.proposed(risk_left=1.0, config_left="config/topics.json cannot be read"))
    for text in (summary(outcome), page_text(outcome)):
        said = re.sub(r"\s+", " ", text)
        assert "stay as they are (risks of 1 in 1 in all, not below 1 in 10,000): decide on repair --heal yourself" in said
        assert "files of config/ stay as they are" in said and "config/topics.json cannot be read" in said


def test_a_donor_is_no_step_for_a_copy_that_holds_no_message() -> None:
    outcome = samples.emptied()
    alter(
        outcome,
        findings=[
            *outcome.found.findings,
            *[
                Finding(code, "commitlog/a", severity="loss", next=CATALOGUE[code].next)
                for code in ("message_lost", "commitlog_damaged", "segment_missing")
            ],
        ],
    )
    texts = [step.text for step in steps_of(outcome)]
    assert next_text(outcome.found.findings[0].next) in texts and not any("--donor" in text for text in texts)
    assert StepName.REPAIR not in names_of(outcome) and StepName.START not in names_of(outcome)


@pytest.mark.parametrize(("options", "named"), [([], False), (["--fix-config"], True)])
def test_fix_config_is_no_step_where_no_repair_asks_for_it(options: list[str], named: bool) -> None:
    outcome = samples.clean()
    alter(outcome, exit_code=10, counts={"rebuildable": 1})
    alter(
        outcome,
        findings=[
            Finding("config_table_lost", "config/consumerOffset.json", severity="rebuildable", next=Advice(Step.RESTORE_OR_FIX))
        ],
    )
    copied = samples.worked_out("broker").steps[:1]
    alter(outcome, repairs=samples.proposed(options=options, **({} if named else {"steps": copied})))
    (step,) = (said for said in texts_of(outcome, StepName.OTHER) if said.startswith("Restore it from a backup"))
    assert ("--fix-config" in step) == named and (StepName.REPAIR in names_of(outcome)) == named


def test_a_step_that_another_one_says_in_full_is_left_out() -> None:
    """Of all steps that findings have by themselves; those with values of their own are no part of others."""
    own = {row.next_at(severity) for row in CATALOGUE.values() for severity in (NOTE, REBUILDABLE)}
    known = own | {less for less, _ in steps_module._SAYS_MORE} | {more for _, more in steps_module._SAYS_MORE}
    texts = {step: advice_text(step) for step in known}
    begins = {(less, more) for less in known for more in known if less != more and texts[more].startswith(texts[less])}
    nothing = {pair for pair in begins if pair[0] == Advice(Step.NOTHING)}  # of notes, which no list names beside another step
    repairs = {pair for pair in begins if pair[0] in BY_A_REPAIR}  # which the repair's own step stands for
    assert begins - nothing - repairs == set(steps_module._SAYS_MORE)
