"""What the renderers write: golden files, and that hostile text stays text everywhere."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.report.files.findings_jsonl import FIELDS, findings_jsonl
from jobs.report.files.json_text import document, line
from jobs.report.files.plan_json import plan_json
from jobs.report.files.result_json import result_json, run_exit_code
from jobs.report.pages.index_html import index_html
from jobs.report.pages.page import name_of
from jobs.report.pages.report_html import report_html
from jobs.report.texts.judgement import judge, meaning_of, most_dangerous_first
from jobs.report.texts.ranking import worst_exit_code
from jobs.report.texts.summary_text import summary_text
from jobs.report.texts.text import bytes_text, count_text, printable, seconds_text, span_text, time_text
from schemas.rows import AuditOutcome, Finding
from tests import TESTS
from tests.support import samples

GOLDEN = TESTS / "golden"


def check(name: str, text: str) -> None:
    """Equal to the golden file. UPDATE_GOLDEN=1 writes it anew: then look at the difference before it is committed."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    assert text == path.read_bytes().decode("utf-8")


@pytest.mark.parametrize("make", [samples.clean, samples.damaged, samples.not_audited, samples.refused], ids=lambda m: m.__name__)
@pytest.mark.parametrize("colour", [False, True], ids=["plain", "colour"])
def test_summary_of_one_store(make: Any, colour: bool) -> None:
    name = f"summary-{make.__name__}{'-colour' if colour else ''}.txt"
    check(name, summary_text(samples.RUN, [make()], "/out", colour))


def test_findings_that_one_damaged_range_makes_are_told_as_one_range() -> None:
    outcome = samples.damaged()
    first = next(f for f in outcome.findings if f.code == "commitlog_damaged")
    outcome = replace(outcome, findings=[first, replace(first, start=first.end, end=(first.end or 0) + 9)], damaged_extents=1)
    told = "no valid message, filler or unwritten space, in 1 damaged range"
    text = " ".join(summary_text(samples.RUN, [outcome], "out").split())
    assert "2 commitlog_damaged: bytes that are " + told in text and told in "".join(report_html(outcome))
    assert ", in " not in meaning_of(replace(outcome, damaged_extents=2), "commitlog_damaged")


def test_summary_of_a_fleet() -> None:
    fleet = [samples.clean(), samples.damaged(), samples.not_audited(), samples.refused()]
    check("summary-fleet.txt", summary_text(replace(samples.RUN, problems=("tables: no space left",)), fleet, "/out"))


def test_a_large_fleet_is_told_in_few_lines_the_dangerous_ones_first() -> None:
    fleet = [replace(samples.clean(), name=f"calm-{i}") for i in range(200)]
    fleet += [replace(samples.refused(), name=f"stuck-{i}") for i in range(30)]
    lines = summary_text(samples.RUN, fleet, "/out").splitlines()
    assert [line.split()[1] for line in lines[1:3]] == ["stuck-0", "stuck-1"]
    assert "      and 190 more stores: safe to start" in lines
    assert len(lines) < 60
    lines = summary_text(samples.RUN, fleet * 2, "/out").splitlines()
    assert lines[51:53] == ["      and 10 more stores: does not start", "      and 400 more stores: safe to start"]


def test_notes_are_named_by_kind_where_they_are_counted() -> None:
    few = replace(samples.clean(), counts={"note": 3})
    few.findings = [Finding(code, "f", severity="note") for code in ("store_host_odd", "odd_header", "store_host_odd")]
    told = "3 notes: store_host_odd 2, odd_header 1"
    assert f"  Differs    {told}" in summary_text(samples.RUN, [few], "/out").splitlines()
    fleet = [few, samples.refused()]
    assert [line for line in summary_text(samples.RUN, fleet, "/out").splitlines() if line.endswith(told)]
    pages = ["".join(index_html(samples.RUN, fleet)), "".join(report_html(few))]
    assert f'<span class="where">{told}</span>' in pages[0] and "1 loss, 1 rebuildable, 3 notes: store_host_odd 2" in pages[0]
    assert ">3 notes</span>: store_host_odd 2, odd_header 1" in pages[1]
    many = replace(few, counts={"note": 8}, findings=[Finding(f"n{i}", "f", severity="note") for i in range(8)])
    assert "  Differs    8 notes: n0 1, n1 1, n2 1 and 5 more kinds" in summary_text(samples.RUN, [many], "/out").splitlines()


def test_a_summary_names_the_command_that_looks_closer_and_breaks_only_its_own_lines() -> None:
    words = ("/copies/" + "x" * 150, "--release", "4.9.8", "--broker-conf", "/c d")
    text = summary_text(samples.RUN, [samples.damaged()], "/out", words=words)
    assert f"  Closer     ./spark-submit.sh explain {words[0]} --release 4.9.8 --broker-conf '/c d' --phy-offset 1124\n" in text
    assert all(len(line) <= 120 for line in text.splitlines() if "Closer" not in line)


def test_plan_findings_and_result() -> None:
    check("plan.json", plan_json(samples.damaged()))
    check("findings.jsonl", "".join(findings_jsonl(samples.damaged().findings)))
    check("result.json", result_json(samples.RUN, [samples.damaged(), samples.clean(), samples.not_audited()]))


# ---- JSON ----------------------------------------------------------------------------------------------------------


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def test_plan_json_is_the_plan_whatever_the_order_of_its_keys() -> None:
    outcome = samples.damaged()
    text = plan_json(outcome)
    assert json.loads(text) == outcome.plan
    for seed in range(5):
        outcome.plan = shuffled(outcome.plan, random.Random(seed))
        assert plan_json(outcome) == text


def test_findings_are_one_ascii_line_each_with_all_fields_of_the_contract() -> None:
    findings = samples.damaged().findings
    lines = "".join(findings_jsonl(findings)).splitlines()
    assert len(lines) == len(findings)
    fields = "code severity file start end phy_offset topic queue_id queue_offset expected actual message next".split()
    assert sorted(FIELDS) == sorted(f.name for f in dataclasses.fields(Finding))
    for text, finding in zip(lines, findings, strict=True):
        assert text.isascii()
        row = json.loads(text)
        assert list(row)[: len(fields)] == fields
        assert row["topic"] == finding.topic and row["count"] == finding.count


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_text_says_what_it_was_given(value: Any) -> None:
    assert json.loads(document(value)) == value
    assert json.loads(line(value)) == value
    assert document(value).isascii()


# ---- hostile text --------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.characters()))
def test_printable_text_steers_nothing(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert not set(name_of(text).removeprefix("<bdi>").removesuffix("</bdi>")) & set("<>\"'")


def test_printable_keeps_what_people_write() -> None:
    assert printable("Grüße, 消息, 🚀, a b") == "Grüße, 消息, 🚀, a b"
    assert printable("a\x1b[2J\u202eb\nc\u2028\ud800") == "a\\x1b[2J\\u202eb\\x0ac\\u2028\\ud800"
    assert printable("x" * 10, 5) == "xxxx…"


# ---- ranking -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "worst"), [([], 0), ([0, 10], 10), ([10, 3], 3), ([3, 20, 0], 20), ([0, 3], 3), ([10, 20], 20)]
)
def test_worst_exit_code(codes: list[int], worst: int) -> None:
    assert worst_exit_code(codes) == worst


def test_what_could_not_be_written_makes_the_run_incomplete() -> None:
    assert run_exit_code(replace(samples.RUN, problems=("disk full",)), [samples.clean()]) == 3
    assert run_exit_code(replace(samples.RUN, problems=("disk full",)), [samples.damaged()]) == 20


# ---- values --------------------------------------------------------------------------------------------------------


def test_values_as_people_read_them() -> None:
    assert [bytes_text(n) for n in (0, 812, 999, 1000, 1_610_613_762, 999_700, 5 * 10**15)] == [
        "0 B", "812 B", "999 B", "1 KB", "1.61 GB", "1 MB", "5,000 TB",
    ]  # fmt: skip
    assert [count_text(n, "loss", "losses") for n in (0, 1, 1234)] == ["0 losses", "1 loss", "1,234 losses"]
    assert [seconds_text(s) for s in (0.04, 9.96, 61.2, 7500)] == ["0.0 s", "10 s", "1 min 1 s", "2 h 5 min"]
    assert time_text(samples.START_MS) == "2026-11-20 21:20:30"
    assert [time_text(ms) for ms in (0, -5, 1 << 62)] == ["0 ms", "-5 ms", "4611686018427387904 ms"]
    assert span_text(samples.START_MS, samples.START_MS + 1000) == "2026-11-20 21:20:30 to 21:20:31 UTC"


def test_a_summary_has_no_colour_unless_asked() -> None:
    def escapes(outcomes: list[AuditOutcome], colour: bool) -> int:
        return summary_text(samples.RUN, outcomes, "/out", colour).count("\x1b")

    assert escapes([samples.damaged()], False) == 0
    assert escapes([samples.damaged()], True) > 0


def test_what_is_gone_is_never_called_safe() -> None:
    gone, less, new = judge(samples.emptied()), judge(samples.shrunk()), judge(samples.empty())
    assert gone.headline == "Nothing to lose is left here; the audit of 2026-11-20 02:15 UTC saw 2,153 messages"
    assert less.headline == "Messages are gone from the end of this copy; the audit of 2026-11-20 02:15 UTC saw 2,153 messages"
    assert new.headline == "This copy holds no message, and nothing in it shows that it ever held one"
    assert (gone.kind, less.kind, new.kind) == ("gone", "gone", "empty")
    known = samples.emptied()
    known.furthest = None
    assert judge(known).headline == "Nothing to lose is left here; there were messages once"
    broken = samples.shrunk()  # what a start would cut, or a release that refuses, is told first
    broken.plan["broker"] = {"starts": False, "refusal": "commitlog/x: the name is not a number"}
    assert judge(broken).kind == "refuses"
    for outcome in (samples.emptied(), samples.shrunk(), samples.empty()):
        text = summary_text(samples.RUN, [outcome], "out").lower()
        page = "".join(index_html(samples.RUN, [outcome])).lower()
        assert "safe to start" not in text and "is safe to start" not in page and "no start would lose" not in page
    acting = samples.emptied()
    acting.plan["steps"] = [{"action": "rebuild", "file": "checkpoint"}]
    assert "Repair" not in summary_text(samples.RUN, [acting], "out", words=("/copies/wiped", "--release", "5.3.3"))
    acting.findings = []
    assert "Repair" in summary_text(samples.RUN, [acting], "out", words=("/copies/wiped", "--release", "5.3.3"))


@pytest.mark.parametrize("parted", [False, True])
def test_a_copy_that_lacks_messages_of_its_group_is_never_called_safe(parted: bool) -> None:
    alone, slave = judge(samples.clean()), judge(samples.behind(samples.clean(), parted))
    assert alone.kind == "safe" and slave.kind == ("diverged" if parted else "lacks")
    words = "it and master each hold messages that the other lacks" if parted else "it lacks 300 messages of its group"
    assert slave.headline == f"Do not start this copy as master: {words}" and slave.why == ()
    worse = judge(samples.behind(samples.damaged(), parted))  # of two answers the graver is the headline, the other a reason
    assert worse.headline == judge(samples.damaged()).headline
    assert worse.why[-1].startswith("Do not start this copy as master: master holds 300 messages that this copy lacks")
    rebuild = samples.clean()
    rebuild.counts = {"rebuildable": 1}
    told = judge(samples.behind(rebuild, parted))
    assert told.kind == slave.kind and told.why[0].startswith("A start loses no message, but queues, index")
    others = [samples.refused(), samples.behind(samples.clean(), parted), samples.clean()]
    assert [outcome.name for outcome, _ in most_dangerous_first(others)] == ["stuck", "calm", "calm"]
    assert [j.kind for _, j in most_dangerous_first(others)][1:] == [slave.kind, "safe"]
    page = "".join(index_html(samples.RUN, [samples.behind(samples.clean(), parted)]))
    assert "1 of 1 store lacks messages of its group: do not start it as master" in page
    text = summary_text(samples.RUN, others, "out")
    assert ("diverged" if parted else "not as master") in text and "lacks 300 messages of its group" in text
