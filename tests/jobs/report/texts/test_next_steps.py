"""What a summary and a page say is to be done: what keeps most first, and nothing for a store that is consistent."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import pytest

from jobs.installation import ENTRY
from jobs.report.pages.report_html import PageContext, report_html
from jobs.report.texts import next_steps as next_steps_module
from jobs.report.texts.commands import NOTHING_MENDS
from jobs.report.texts.next_steps import next_steps
from jobs.report.texts.safety_text import judge
from jobs.report.texts.step_words import deleted_files
from jobs.report.texts.summary_text import summary_text
from schemas.advice import Advice, Refusal, RefusalKind, Step
from schemas.finding_codes import CATALOGUE, STARTS_DISPATCH
from schemas.rows import NOTE, REBUILDABLE, AuditOutcome, Finding
from store_io.repair.proposals import refused_section
from store_io.wording.steps import advice_text, next_text
from tests.support.handmade import samples

HEALS = "a repair makes it with --heal"
WORDS = ("/copies/hurt", "--release", "4.9.8")
PLAN = "/out/hurt/plan.json"
SALVAGE = CATALOGUE["broker_drops_messages"].next
REPAIR = advice_text(SALVAGE)


def page_text(outcome: AuditOutcome) -> str:
    page = "".join(report_html(outcome, PageContext(store_words=WORDS, plan=PLAN)))
    return html.unescape(re.sub(r"<[^>]+>", " ", page.partition("<main>")[2].replace("<wbr>", "")))


def summary(outcome: AuditOutcome) -> str:
    return summary_text(samples.RUN, [outcome], "/out", words=WORDS)


def hurt(code: str = "broker_drops_messages", **broker: Any) -> AuditOutcome:
    """Of 18 messages a start loses 12."""
    outcome = samples.damaged()
    outcome.plan["steps"].append({"action": "delete", "file": "commitlog/x", "reason": "r"})
    outcome.plan["broker"] |= broker
    if code == "broker_skips_messages":
        outcome.plan["repair"] = samples.proposed()
    outcome.findings.insert(0, Finding(code, "commitlog/x", severity="loss", count=12, next=SALVAGE))
    return outcome


def test_what_keeps_most_comes_first_and_then_what_a_start_loses() -> None:
    text = page_text(hurt())
    parts = (
        "What to do next",
        "Repair with --policy salvage: keeps 18 messages, 12 more than a start would:",
        f"--plan {PLAN}",
        "A start of RocketMQ 4.9.8 keeps 6 messages and loses 12. It cuts the CommitLog at physical offset 1,124.",
        "Look for these bytes in another copy of the same broker",
    )
    order = [re.sub(r"\s+", " ", text).index(part) for part in parts]
    assert order == sorted(order)
    assert REPAIR not in text.partition("Words used")[0]  # the repair's own line says it, with its number


@pytest.mark.parametrize(
    ("election", "said", "judged"),
    [
        (None, "A start of RocketMQ 4.9.8 never ends", "A start never ends: it waits at one place"),
        ({"epoch": 1}, "RocketMQ 4.9.8 would start, but its election as master never ends", "The broker stays fenced"),
    ],
)
def test_a_start_and_an_election_that_never_end(election: dict[str, int] | None, said: str, judged: str) -> None:
    outcome = hurt("broker_hangs", controller={"election": election})
    assert said in next_steps(outcome, WORDS, PLAN).start and judged in " ".join(judge(outcome).why)


def test_a_step_that_another_one_begins_with_is_said_once_for_the_files_of_both() -> None:
    outcome = hurt()
    short, longer = CATALOGUE["message_lost"].next, CATALOGUE["commitlog_damaged"].next
    assert advice_text(longer).startswith(advice_text(short)) and longer != short
    for code, file, step in (("message_lost", "commitlog/a", short), ("commitlog_damaged", "commitlog/b", longer)):
        outcome.findings.append(Finding(code, file, severity="loss", next=step))
    others = dict(next_steps(outcome, WORDS, PLAN).others)
    assert advice_text(short) not in others and set(others[advice_text(longer)]) >= {"commitlog/a", "commitlog/b"}


def test_a_copy_of_a_running_broker_is_to_be_copied_again_although_that_is_a_note() -> None:
    outcome, step = hurt(), CATALOGUE["live_copy"].next
    assert advice_text(step) not in page_text(outcome)
    outcome.findings.insert(0, Finding("live_copy", "commitlog/x", severity="note", next=step))
    assert advice_text(step) in page_text(outcome).partition("Words used")[0]
    assert advice_text(step) in re.sub(r"\s+", " ", summary(outcome))


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (hurt(), "it keeps the 12 messages that a start would cut."),
        (hurt("broker_skips_messages"), "it keeps the 12 messages that a start would lose."),
        (hurt(starts=False), "it keeps all 18 messages and removes what stops the release."),
    ],
    ids=["cut", "skipped", "refused"],
)
def test_the_summary_sends_to_the_repair_first(outcome: AuditOutcome, sentence: str) -> None:
    lines = summary(outcome).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  Next"))
    assert lines[first] == f"  Next       Run the Repair line below: {sentence}"
    labels = [line[2:12].strip() for line in lines[first:] if line[2:12].strip()]
    assert labels[:3] == ["Next", "Repair", "Closer"]


def test_the_repair_that_is_recommended_comes_first_with_its_options() -> None:
    outcome = replace(hurt(), name="hurt")  # its folder's name, in a command
    assert "--policy salvage\n" in summary(outcome) and f"  Repair     {ENTRY} repair " in summary(outcome)
    outcome.plan["repair"] = samples.proposed(messages_after=19, healed=1, risk=1e-6, options=["--heal", "--fix-config"])
    text = re.sub(r"\s+", " ", summary(outcome))
    assert "--policy broker --heal --fix-config " in text
    assert (
        "it keeps the 12 messages that a start would cut; --heal makes 1 damaged record whole (risk of a wrong change: 1.0e-06)"
        in text
    )
    what = "Repair with --policy broker --heal --fix-config: keeps 19 messages, 13 more than a start would; --heal makes"
    assert what in re.sub(r"\s+", " ", page_text(outcome))


def test_where_no_repair_was_worked_out_rescue_does_it() -> None:
    outcome = replace(hurt(), name="hurt")
    outcome.plan["repair"] = {policy: refused_section("too large", worked_out=False) for policy in ("broker", "salvage")}
    assert f"  Repair     {ENTRY} rescue {WORDS[0]} --release 4.9.8\n" in summary(outcome)
    assert "it works out a repair by each policy" in re.sub(r"\s+", " ", summary(outcome))


def test_a_large_store_elsewhere_gets_a_rescue_that_names_a_folder_here() -> None:
    outcome = replace(hurt(), name="hurt")
    outcome.plan["repair"] = {policy: refused_section("too large", worked_out=False) for policy in ("broker", "salvage")}
    text = summary_text(samples.RUN, [outcome], "/out", words=("s3://b/s", "--release", "4.9.8"))
    assert f"  Repair     {ENTRY} rescue s3://b/s --release 4.9.8 --to new\n" in text


def test_no_repair_is_shown_while_a_broker_holds_the_lock() -> None:
    """Neither by the terminal nor on the page, which an operator reads beside it."""
    outcome, why = replace(hurt(), name="hurt"), "A repair refuses a directory that a broker uses."
    context = PageContext(store_words=WORDS, plan=PLAN, in_use=why)
    text = summary_text(samples.RUN, [outcome], "/out", words=WORDS, in_use=why)
    for told in (text, "".join(report_html(outcome, context))):
        assert why in told and f"{ENTRY} repair" not in told
    assert f"{ENTRY} repair" in "".join(report_html(outcome, replace(context, in_use="")))


def test_what_a_repair_heals_is_not_to_be_looked_at_again() -> None:
    outcome = replace(hurt(), name="hurt")
    step = CATALOGUE["commitlog_damaged"].next
    outcome.findings = [Finding("commitlog_damaged", "commitlog/0", severity="loss", next=step, message="m")]
    assert HEALS in advice_text(step) and any(HEALS in said for said, _ in next_steps(outcome, WORDS, PLAN).others)
    for policy in ("broker", "salvage"):
        outcome.plan["repair"][policy] = samples.worked_out(messages_after=19, healed=1, options=["--heal"])
    assert not any(HEALS in said for said, _ in next_steps(outcome, WORDS, PLAN).others)


def test_where_no_repair_goes_that_is_said() -> None:
    outcome = hurt()
    outcome.plan["repair"] = {policy: refused_section("There is no end.") for policy in ("broker", "salvage")}
    for text in (page_text(outcome), summary(outcome)):
        told = re.sub(r"\s+", " ", text)
        assert "No repair goes: there is no end. The copy is as it was; look for another copy of this broker, and name" in told
        assert "spark-submit.sh repair" not in told and "Run the Repair line" not in told


def test_consumer_offsets_are_counted_and_set_back_by_a_repair() -> None:
    outcome = hurt()
    beyond = [
        Finding(
            "consumer_offset_beyond_end", "config/consumerOffset.json", severity="rebuildable",
            next=CATALOGUE["consumer_offset_beyond_end"].next, message=f"group g{i}",
        )
        for i in range(3)
    ]  # fmt: skip
    outcome.findings += beyond
    row = {"group": "g", "topic": "t", "queue_id": 0, "offset": 1263, "new_max": 251}
    outcome.loss["groups"] = [row, {**row, "group": "h"}, {**row, "queue_id": 1}]
    assert "3 offsets of 2 groups lie past the new queue ends: repair with --fix-offsets." in summary(outcome)
    outcome.loss["groups"] = [row]
    assert "1 offset of 1 group lies past the new queue end: repair with --fix-offsets." in summary(outcome)


def test_where_a_repair_is_offered_its_own_steps_are_not_listed() -> None:
    outcome = hurt()
    row = Finding("queue_entry_missing", "consumequeue/t/0/0", severity="rebuildable", next=CATALOGUE["queue_entry_missing"].next)
    outcome.findings.append(row)
    assert next_text(row.next) not in " ".join(summary(outcome).split())
    assert next_text(row.next).rstrip(".") in " ".join(summary(replace(outcome, complete=False)).split())


def test_where_no_repair_is_offered_none_is_asked_for() -> None:
    text = summary_text(samples.RUN, [hurt()], "/out", words=("gs://bucket/store", "--release", "4.9.8"))
    assert "Repair line" not in text and REPAIR in " ".join(text.split())


def test_where_a_setting_stops_the_start_no_repair_is_offered() -> None:
    outcome = hurt(starts=False)
    outcome.refusal = Refusal(RefusalKind.DOUBLE_WRITE_LIGHT, setting="combineCQPreferCQType=x")
    outcome.findings = [Finding("broker_refuses", "x", severity="loss", next=outcome.refusal.correct_line)]
    steps = next_steps(outcome, WORDS, PLAN)
    step = "Correct this line of broker.conf, the copy is not at fault: combineCQPreferCQType=x."
    assert (steps.withheld, steps.repairs, steps.others) == (step, [], [])
    assert "A repair removes the cause" not in page_text(outcome)


def test_a_consistent_store_has_nothing_to_do() -> None:
    outcome = samples.clean()
    # Steps there are: what a start deletes and makes again by itself. They stay in plan.json.
    outcome.plan["steps"].append({"action": "delete", "file": "commitlog/x", "reason": "r"})
    text = summary(outcome)
    assert "  Next       Nothing to do.\n" in text and "  Repair" not in text
    page = "".join(report_html(outcome, PageContext(store_words=WORDS, plan=PLAN)))
    assert "Nothing to do." in page and 'class="steps"' not in page
    assert not any(part in page for part in ('id="leaves"', "#leaves", 'id="repair"', "#repair"))


def test_a_file_that_a_start_deletes_is_named_with_what_it_is() -> None:
    def segment(number: int, messages: int, *kinds: str, **more: Any) -> dict[str, Any]:
        extents = [{"start": 0, "end": 9, "kind": kind} for kind in kinds]
        return {"file": f"commitlog/{number}", "size_bytes": 9, "messages": messages, "extents": extents, **more}

    outcome = hurt()
    outcome.segments = [
        segment(1, 0, "unwritten"),
        segment(2, 12, "message", "unwritten"),
        segment(3, 0, "damaged"),
        segment(4, 1, "message"),
        segment(5, 0, size_bytes=0),
        segment(6, 0, problem="commitlog/6: cannot be read"),
        segment(7, 0, "filler", "unwritten"),
    ]
    queues = ["consumequeue/T/0/0", "consumequeue/T/1/0"]
    others = ["index/20", "consumequeue_ext/T/0/0", "batchconsumequeue/B/0/0", "commitlog/odd", "odd"]
    outcome.plan["broker"]["deleted_files"] = [*others, *queues, *(row["file"] for row in outcome.segments)]
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
    outcome.plan["broker"]["deleted_files"] = []
    assert deleted_files(outcome) == [] and "Deletes" not in summary(outcome)


@pytest.mark.parametrize(
    ("outcome", "headline"),
    [
        (samples.clean(), "Not known whether this copy is safe to start: by its files"),
        (hurt(), "Do not start this copy yet; by its files"),
    ],
)
def test_a_release_that_did_not_write_the_copy_makes_no_answer_but_a_warning(outcome: AuditOutcome, headline: str) -> None:
    outcome.release_from, outcome.written_by = "default", "5.0.0 to 5.3.3"
    for text in (page_text(outcome), summary(outcome)):
        told = re.sub(r"\s+", " ", text)
        assert f"{headline} RocketMQ 5.0.0 to 5.3.3 wrote it, and this verdict is for {outcome.release}" in told
        assert "Name the broker's own release with --release and audit again: by its files RocketMQ 5.0.0 to 5.3.3" in told
        assert "which is assumed" not in told
    assert judge(outcome).kind in ("unknown", "stop")
    outcome.written_by = ""  # it can have written the copy, or nothing tells
    assert judge(outcome).headline.endswith(f", if its release is {outcome.release}, which is assumed")


def test_an_assumed_release_gets_no_repair_advice_beside_the_refusal_to_give_it() -> None:
    outcome = hurt()
    outcome.release_from = "default"
    step = CATALOGUE["queue_entry_missing"].next
    outcome.findings.append(Finding("queue_entry_missing", "consumequeue/T/0/0", severity="rebuildable", next=step))
    for text in (page_text(outcome), summary(outcome)):
        advice = re.sub(r"\s+", " ", text)
        assert "no repair command is shown for an assumed one" in advice
        assert REPAIR not in advice.partition("Words used")[0]
        assert advice_text(step) not in advice.partition("Words used")[0]


@pytest.mark.parametrize(
    ("parted", "first"),
    [
        (False, "Start master as master, and make this copy a slave of it."),
        (True, "Compare it with master before either becomes master: replicas.json has what each of them lacks."),
    ],
)
def test_a_copy_that_lacks_messages_is_told_which_one_to_start(parted: bool, first: str) -> None:
    outcome = samples.behind(samples.clean(), parted)
    for text in (page_text(outcome), summary(outcome)):
        told = re.sub(r"\s+", " ", text)
        assert first in told and "loses no message" not in told


OFFSETS, NAMED_TOPICS = ("offsets", "config/consumerOffset.json"), ("topics", "config/topics.json")
TAKE = "first, before this copy becomes master"


@pytest.mark.parametrize(
    ("table", "rows", "relation", "told"),
    [
        (OFFSETS, ["own<b"], "equal", f"Take config/consumerOffset.json of b {TAKE}: it has the greater offsets."),
        (OFFSETS, ["own<b"], "apart", "Nothing to do."),
        (OFFSETS, ["b<own"], "equal", "Nothing to do."),
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
    known = {"lacks": 0, "loses": 0, "start": 0, "end": 900, "messages": 9, "cut": 0}
    pair = {"left": outcome.name, "right": "b", "relation": relation, "same_until": 900, "first_difference": None, "rejoin": None}
    config = []
    for store, holder in (row.split("<") for row in rows):
        amount = {"lacks": 2, "behind": 0, "messages": 0, "entries": [{"topic": "T"}, {"topic": "U"}]}
        config.append({"store": names[store], "holder": names[holder], "table": table[0], "holder_file": table[1], **amount})
    copies = [{"store": name, **known} for name in names.values()]
    outcome.replicas |= {"best": outcome.name, "copies": copies, "pairs": [pair], "lacks": [], "config": config}
    for text in (page_text(outcome), summary(outcome)):
        shown = re.sub(r"\s+", " ", text)
        assert "Safe to start" in shown and told in shown and ("Nothing to do" in shown) == told.startswith("Nothing")
    outcome.exit_code, outcome.counts = 10, {"rebuildable": 1}
    outcome.findings.append(
        Finding("queue_entry_missing", "consumequeue", severity="rebuildable", next=Advice(Step.REBUILD_QUEUE))
    )
    assert (told in re.sub(r"\s+", " ", page_text(outcome))) == (not told.startswith("Nothing"))


def test_missing_messages_are_not_called_damaged_ones() -> None:
    outcome = samples.clean()
    outcome.findings.append(Finding("segment_missing", "commitlog/x", severity="loss", count=323, next=Advice(Step.SEEK_SEGMENT)))
    outcome.counts = {"loss": 1}
    outcome.exit_code = 20
    for text in (page_text(outcome), summary(outcome)):
        assert "Messages are missing from this copy already; a start loses none of the others" in text


def test_what_a_start_mends_by_itself_makes_a_repair_optional() -> None:
    """Never two statements: run the repair, and nothing to do."""
    outcome = hurt()
    outcome.loss = {}
    outcome.findings = [Finding("queue_entry_missing", "consumequeue", severity="rebuildable", next=STARTS_DISPATCH)]
    outcome.counts, outcome.plan["broker"]["starts"] = {"rebuildable": 1}, True
    assert judge(outcome).headline == "A start loses no message and mends what differs"
    for text in (" ".join(summary(outcome).split()), " ".join(page_text(outcome).split())):
        assert "A start of the release puts the entries that are missing. A repair is optional." in text
        assert "Nothing to do" not in text and "Run the Repair line" not in text
    outcome.findings.append(replace(outcome.findings[0], code="queue_entry_wrong", next=CATALOGUE["queue_entry_wrong"].next))
    outcome.counts = {"rebuildable": 2}
    assert "Run the Repair line below" in summary(outcome) and "optional" not in summary(outcome)
    assert "Nothing to do" not in summary(outcome)


def test_what_a_repair_leaves_as_it_is_is_said_by_text_and_page() -> None:
    outcome = hurt()
    outcome.plan["repair"] = samples.proposed(risk_left=1.0, config_left="config/topics.json cannot be read")
    for text in (summary(outcome), page_text(outcome)):
        said = re.sub(r"\s+", " ", text)
        assert "stay as they are (risks of 1.0e+00 in all, not below 0.0001): decide on repair --heal yourself" in said
        assert "files of config/ stay as they are" in said and "config/topics.json cannot be read" in said


def test_a_donor_is_no_step_for_a_copy_that_holds_no_message() -> None:
    outcome = samples.emptied()
    outcome.findings += [
        Finding(code, "commitlog/a", severity="loss", next=CATALOGUE[code].next)
        for code in ("message_lost", "commitlog_damaged", "segment_missing")
    ]
    others = [step for step, _ in next_steps(outcome, WORDS, PLAN).others]
    assert next_text(outcome.findings[0].next) in others and not any("--donor" in step for step in others)


@pytest.mark.parametrize(("options", "named"), [([], False), (["--fix-config"], True)])
def test_fix_config_is_no_step_where_no_repair_asks_for_it(options: list[str], named: bool) -> None:
    outcome = samples.clean()
    outcome.exit_code, outcome.counts = 10, {"rebuildable": 1}
    outcome.findings = [
        Finding("config_table_lost", "config/consumerOffset.json", severity="rebuildable", next=Advice(Step.RESTORE_OR_FIX))
    ]
    copied = samples.worked_out()["steps"][:1]
    outcome.plan["repair"] = samples.proposed(options=options, **({} if named else {"steps": copied}))
    steps = next_steps(outcome, WORDS, PLAN)
    (step,) = (said for said, _ in steps.others if said.startswith("Restore it from a backup"))
    assert ("--fix-config" in step) == named and (steps.withheld == NOTHING_MENDS) != named


def test_a_step_that_another_one_says_in_full_is_left_out() -> None:
    """Of all steps that findings have by themselves; those with values of their own are no part of others."""
    own = {row.next_at(severity) for row in CATALOGUE.values() for severity in (NOTE, REBUILDABLE)}
    known = own | {less for less, _ in next_steps_module._SAYS_MORE} | {more for _, more in next_steps_module._SAYS_MORE}
    texts = {step: advice_text(step) for step in known}
    begins = {(less, more) for less in known for more in known if less != more and texts[more].startswith(texts[less])}
    nothing = {pair for pair in begins if pair[0] == Advice(Step.NOTHING)}  # of notes, which no list names beside another step
    assert begins - nothing == set(next_steps_module._SAYS_MORE)
