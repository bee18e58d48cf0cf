"""A repair in words."""

from __future__ import annotations

from typing import Any

from jobs.report.texts.repair_text import MOST_STEPS, config_text, healed_text, healing_text, repair_text
from store_io.repair.repair_steps import Steps
from tests.support.handmade import handed


def test_the_words_of_a_report() -> None:
    group = {"kind": "group", "group": "g", "sentence": "group \x1b[31mg stands"}
    row = {"topic": "T", "queue_id": 0, "phy_offset": 1}
    report: dict[str, Any] = {
        "policy": "broker", "release": "5.3.3", "consistent": True, "settings": "", "messages_before": 18943,
        "messages_after": 3052, "lost": {"messages": 15891, "bytes": 1}, "log_end": 5,
        "other_policy": {"policy": "salvage", "more": 15891},
        "unblocked": [], "bridges": [{"kind": "record", "file": "f", "start": 0, "end": 487}], "dropped": [], "unserved": [],
        "removed": [], "queues": [], "index": {"reasons": []}, "moved": [], "not_copied": [], "needed_bytes": 1, "free_bytes": 2,
        "answered": [{**row, "first": 231, "end": 232}, {**row, "first": 5, "end": 8}],
        "offsets": [group, group, {**group, "group": "h"}],
        "donor": {"path": "D", "sentence": "S", "taken": [], "not_taken": [{"file": "f", "start": 1, "end": 2, "reason": "why"}]},
    }  # fmt: skip
    report["steps"] = []
    report["given_up"] = {"messages": 15895, "missing": 4, "cut": 15891, "earlier": 0, "signs": []}
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
    one = {**report["given_up"], "missing": 1}
    assert "the copy shows that it was there, and does not hold it. Look for it" in repair_text(
        {**report, "given_up": one}, "s", "n"
    )
    unknown = {"messages": 0, "missing": 0, "cut": 0, "earlier": 0, "signs": ["index_entry_beyond_end"]}
    assert "Messages are missing and given up; how many is not known" in repair_text({**report, "given_up": unknown}, "s", "new")
    fixed = repair_text({**report, "offsets_set_back": ["config/consumerOffset.json"]}, "store", "new")
    assert "3 offsets of 2 groups lay past the new queue ends and were set back to them." in fixed
    report["other_policy"] = {"policy": "broker", "refused": "why not"}
    assert "would be refused: why not" in repair_text(report, "store", "new", dry=True)
    assert "would not be made" in repair_text({**report, "consistent": False}, "store", "new", dry=True)


def test_a_dry_run_says_the_steps_under_their_numbers() -> None:
    steps = Steps()
    steps.add("copy", "", reason="all work is done on a copy", kept={"files": 2, "bytes": 1})
    steps.add("cut", "commitlog/\x1b[31m", start=1000, end=4096, reason="the log ends here", lost={"messages": 1, "bytes": 0})
    for _ in range(MOST_STEPS):
        steps.add("remove", "abort", reason="the new store was stopped cleanly")
    empty = {
        "policy": "broker", "release": "5.3.3", "consistent": True, "settings": "s", "messages_before": 1, "messages_after": 1,
        "lost": {"messages": 0, "bytes": 0}, "log_end": 5, "unblocked": [], "bridges": [], "dropped": [], "unserved": [],
        "removed": [], "queues": [], "index": {"reasons": []}, "moved": [], "not_copied": [], "needed_bytes": 1, "free_bytes": 2,
        "answered": [], "donor": None, "given_up": {"missing": 0, "earlier": 0, "signs": []}, "steps": steps.rows,
    }  # fmt: skip
    said = repair_text(empty, "store", "new", dry=True).splitlines()
    assert "  Step 1     copy the store: all work is done on a copy; kept 1 byte, 2 files" in said
    assert "  Step 2     cut commitlog/\\x1b[31m 1,000 to 4,096: the log ends here; lost 1 message" in said
    assert f"  Step {MOST_STEPS:<5} remove abort: the new store was stopped cleanly" in said
    assert "             and 2 more steps" in said
    assert "Step" not in repair_text(empty, "store", "new")


def test_a_healed_record_names_its_risk_first_and_the_sum_is_said() -> None:
    row = {"file": "commitlog/0", "position": 7, "field": "BODYCRC", "old": "1e", "new": "0e", "topic": "t" * 127, "queue_id": 1}
    row |= {"queue_offset": 283, "reason": "every check accepts the record with it" + "; and so on" * 20, "risk": 4e-6}
    assert healed_text(row).startswith("risk 4.0e-06: commitlog/0 7, BODYCRC: 1e becomes 0e (ttt")
    healed = {"risk": 1e-4, "total_risk": 8e-6, "records": [row, row], "not_healed": [{}], "not_healed_count": 1200, "more": 3}
    said = healing_text(healed)
    assert "2 damaged records made whole" in said and "the risks together are 8.0e-06" in said
    assert (
        "1,200 searched and left as they are, of which the report lists the first 1. 3 more damaged places not searched" in said
    )
    nothing = {"risk": 1e-4, "total_risk": 0.0, "records": [], "not_healed": [], "not_healed_count": 0, "more": 0}
    assert "together" not in healing_text(nothing)


def test_of_a_file_of_config_the_list_of_entries_is_cut_and_never_the_warning() -> None:
    row = handed.config_row(
        file="config/topics.json", entries=40, reason="the copy has none", added_count=40, unproven="the settings",
        added=["n" * 200, *(f"Topic{number:030}" for number in range(39))],
    )  # fmt: skip
    said = config_text(row, True)
    assert said.endswith(", as the copy has none. Not proven: the settings") and len(said) <= 300
    assert " more, as" in said and "n" * 61 not in said
