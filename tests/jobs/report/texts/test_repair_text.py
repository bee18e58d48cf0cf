"""A repair in words."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.texts.repair_text import MOST_STEPS, config_text, healed_text, healing_text, repair_text
from schemas.repair import (
    Bridge,
    DonorReport,
    GivenUp,
    HealReport,
    LeftMessages,
    LeftRange,
    OtherPolicy,
    PositionBeyond,
    QueueRange,
    RepairReport,
    SearchedRecord,
)
from store_io.repair.repair_steps import Steps
from tests.support.handmade import handed


def test_the_words_of_a_report() -> None:
    group = PositionBeyond("group", "group \x1b[31mg stands", group="g")
    report = RepairReport(
        "broker", "5.3.3", messages_before=18943, messages_after=3052, lost=LeftMessages(15891, 1),
        given_up=GivenUp(15895, 4, 15891), log_end=5, other_policy=OtherPolicy("salvage", more=15891),
        bridges=(Bridge("f", 0, 487, 0, "record"),), needed_bytes=1, free_bytes=2,
        answered=(QueueRange("T", 0, 231, 232, 1), QueueRange("T", 0, 5, 8, 1)),
        offsets=(group, group, replace(group, group="h")),
        donor=DonorReport("D", sentence="S", not_taken=(LeftRange("f", 1, 2, 1, "why"),)),
    )  # fmt: skip
    said = repair_text(report, "store", "new", dry=True)
    for sentence in (
        "4 messages are missing and given up: the copy shows that they were there, and does not hold them.",
        "18,943 valid messages in the copy, 3,052 in the new store",
        "--policy salvage would keep 15,891 more messages",
        "Wrote a bridge, a placeholder record, over 487 damaged bytes",
        "No message at T, queue 0, offset 231: consumers skip it or see the next message twice.",
        "No message at T, queue 0, offsets 5 to 7: consumers skip them or see the next message twice.",
        "3 offsets of 2 groups lie past the new queue ends: repair with --fix-offsets.",
        "f 1 to 2: why",
        "group \\x1b[31mg stands",
    ):
        assert sentence in said
    one = replace(report, given_up=GivenUp(15892, 1, 15891))
    assert "the copy shows that it was there, and does not hold it. Look for it" in repair_text(one, "s", "n")
    unknown = replace(report, given_up=GivenUp(signs=("index_entry_beyond_end",)))
    assert "Messages are missing and given up; how many is not known" in repair_text(unknown, "s", "new")
    fixed = repair_text(replace(report, offsets_set_back=("config/consumerOffset.json",)), "store", "new")
    assert "3 offsets of 2 groups lay past the new queue ends and were set back to them." in fixed
    refused = replace(report, other_policy=OtherPolicy("broker", refused="why not"))
    assert "would be refused: why not" in repair_text(refused, "store", "new", dry=True)
    assert "would not be made" in repair_text(replace(report, consistent=False), "store", "new", dry=True)


def test_a_dry_run_says_the_steps_under_their_numbers() -> None:
    steps = Steps()
    steps.add("copy", "", reason="all work is done on a copy", kept={"files": 2, "bytes": 1})
    steps.add("cut", "commitlog/\x1b[31m", start=1000, end=4096, reason="the log ends here", lost={"messages": 1, "bytes": 0})
    for _ in range(MOST_STEPS):
        steps.add("remove", "abort", reason="the new store was stopped cleanly")
    empty = RepairReport("broker", "5.3.3", messages_before=1, messages_after=1, steps=tuple(steps.done), free_bytes=2)
    said = repair_text(empty, "store", "new", dry=True).splitlines()
    assert "  Step 1     copy the store: all work is done on a copy; kept 1 byte, 2 files" in said
    assert "  Step 2     cut commitlog/\\x1b[31m 1,000 to 4,096: the log ends here; lost 1 message" in said
    assert f"  Step {MOST_STEPS:<5} remove abort: the new store was stopped cleanly" in said
    assert "             and 2 more steps" in said
    assert "Step" not in repair_text(empty, "store", "new")


def test_a_healed_record_names_its_risk_first_and_the_sum_is_said() -> None:
    change = "BODYCRC", 7, "1e", "0e", "every check accepts the record with it" + "; and so on" * 20, 4e-6
    record = SearchedRecord("commitlog/0", 0, 9, 0, *change, "t" * 127, 1, 283)
    assert healed_text(record).startswith("risk 1 in 200,000: commitlog/0 7, BODYCRC: 1e becomes 0e (ttt")
    healed = HealReport(1e-4, 8e-6, (record, record), 1200, (record,), 3)
    said = healing_text(healed)
    assert "2 damaged records made whole" in said and "the risks together are 1 in 100,000" in said
    assert (
        "1,200 searched and left as they are, of which the report lists the first 1. 3 more damaged places not searched" in said
    )
    assert "together" not in healing_text(HealReport(1e-4, 0.0, (), 0, (), 0))


def test_of_a_file_of_config_the_list_of_entries_is_cut_and_never_the_warning() -> None:
    row = handed.config_row(
        file="config/topics.json", entries=40, reason="the copy has none", added_count=40, unproven="the settings",
        added=("n" * 200, *(f"Topic{number:030}" for number in range(39))),
    )  # fmt: skip
    said = config_text(row, True)
    assert said.endswith(", as the copy has none. Not proven: the settings") and len(said) <= 300
    assert " more, as" in said and "n" * 61 not in said
