"""Releases, settings and copies beside one another, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.report.pages.report_html import report_html
from jobs.report.texts.comparison_words import least_text, lost_text, pair_words, release_lines, setting_lines
from jobs.report.texts.summary_text import summary_text
from schemas.advice import Refusal, RefusalKind
from schemas.outcome import Outcome
from schemas.replicas import Pair, Relation
from schemas.rows import ASSUMED, Comparison, Premise, Start
from schemas.start_effect import LedgerState, WrittenFile
from store_io.audit.compared.comparison import answer_of
from store_io.audit.compared.variants import Variant
from store_io.outcome.plan_writer import audit_plan
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter

ROW = Start(
    "5.3.3",
    True,
    20,
    True,
    starts=True,
    truncate_at=530831,
    lost_messages=1279,
    lost_bytes=1,
    deleted_files=2,
    timers_lost=0,
    log_end=530831,
)
BEST = replace(ROW, lost_messages=0, truncate_at=647246, log_end=647246, deleted_files=0, exit_code=10)
COMPARED = Comparison(
    (
        replace(ROW, release="4.9.7", doubt="a broker of 5.0.0 or newer wrote this copy (timerlog)"),
        replace(ROW, release="4.9.8", doubt="a broker of 5.0.0 or newer wrote this copy (timerlog)"),
        replace(ROW, release="5.0.0", starts=False, refusal=Refusal(RefusalKind.FILE_LENGTH, "commitlog/1", 2, 1)),
        replace(ROW, release="5.1.0", known=False, starts=None, why="<b>not read</b>\x1b[31m", exit_code=3),
        replace(BEST, release="5.3.2"), replace(BEST, release="5.3.3"), replace(BEST, release="5.4.0", timers_lost=4),
    ),
    (replace(ROW, setting="checkCRCOnRecover", value=False, lost_messages=7),),
    ("enableLmq",),
    ("5.3.2", "5.3.3"),
)  # fmt: skip


def test_neighbours_that_do_the_same_are_one_line() -> None:
    lines = release_lines(COMPARED)
    assert [line.what for line in lines] == ["4.9.7, 4.9.8", "5.0.0", "5.1.0", "5.3.2, 5.3.3", "5.4.0"]
    assert [lost_text(line.row) for line in lines] == ["not known", "does not start", "not known", "0", "0 + 4 timers"]
    assert [line.least for line in lines] == [False, False, False, True, False]
    assert "by its rules 1,279 messages lost; a broker of 5.0.0" in lines[0].note and "commitlog/1: length 1" in lines[1].note
    beyond = Comparison((replace(BEST, release="5.5.1"), replace(BEST, release="5.6.0")))
    assert [(line.what, line.note) for line in release_lines(beyond)] == [
        ("5.5.1", ""),
        ("5.6.0", "not known: by the rules of 5.5.1"),
    ]
    [line] = setting_lines(COMPARED)
    assert line.what == "checkCRCOnRecover=false" and "fails its checksum" in line.note


def test_the_least_is_no_promise_where_something_was_assumed() -> None:
    outcome = samples.clean()
    alter(outcome, premises=[])
    assert least_text(outcome, COMPARED) == "RocketMQ 5.3.2, 5.3.3 lose least of those that can be judged: 0 messages."
    alter(outcome, premises=[Premise(ASSUMED, "No release was named")])
    assert least_text(outcome, COMPARED).endswith("That does not make a start safe: something was assumed, or not read.")
    assert "not known of any" in least_text(outcome, replace(COMPARED, least=()))
    every = Comparison((BEST, replace(BEST, release="5.3.4"), replace(BEST, release="5.4.0")), least=("5.3.3", "5.3.4", "5.4.0"))
    assert "RocketMQ 5.3.3 to 5.4.0 all lose the same: 0 messages" in least_text(outcome, every)


def test_a_span_covers_only_releases_that_were_tried() -> None:
    rows = tuple(replace(BEST, release=release) for release in ("5.4.0", "5.3.4", "5.3.2", "4.9.8", "5.3.3"))
    compared = Comparison(rows, least=tuple(row.release for row in rows))
    assert [line.what for line in release_lines(compared)] == ["4.9.8", "5.3.2 to 5.4.0"]
    assert "RocketMQ 4.9.8, 5.3.2 to 5.4.0 all lose the same: 0 messages" in least_text(samples.clean(), compared)
    apart = Comparison(tuple(row for row in rows if row.release in ("5.4.0", "5.3.2")), least=("5.3.2", "5.4.0"))
    assert [line.what for line in release_lines(apart)] == ["5.3.2", "5.4.0"]
    assert "RocketMQ 5.3.2, 5.4.0 all lose the same" in least_text(samples.clean(), apart)


def test_one_that_alone_can_be_judged_does_not_win() -> None:
    outcome = samples.clean()
    alter(outcome, premises=[])
    others = COMPARED.releases[0], COMPARED.releases[3]
    alone = Comparison((*others, replace(BEST, not_judged=("rocksdbstore",))), least=("5.3.3",))
    assert least_text(outcome, alone) == (
        "RocketMQ 5.3.3 is the only one that can be judged: it loses 0 messages. That does not make a start safe: not judged:"
        " rocksdbstore."
    )
    assert [line.exit_code for line in release_lines(alone)] == [None, None, 10]
    two = replace(alone, releases=(*alone.releases, replace(BEST, release="5.4.0")), least=("5.3.3", "5.4.0"))
    assert "RocketMQ 5.3.3, 5.4.0 are the only ones that can be judged: each loses 0 messages." in least_text(outcome, two)
    alter(outcome, comparison=alone)
    assert " 20" not in "".join(line for line in summary_text(samples.RUN, [outcome], "out").splitlines() if "not known" in line)


def test_a_ledger_ends_where_its_data_ends() -> None:
    outcome = samples.damaged()
    ledger = LedgerState(0, 9, 1, 9, 1124, 0, (WrittenFile("00000000000000131072", 2250),), ())
    samples.start_changed(outcome, ledger=ledger)
    start = answer_of(outcome, Variant("5.3.3")).start
    alter(outcome, comparison=Comparison((start,), least=("5.3.3",)))
    lines = summary_text(samples.RUN, [outcome], "out").splitlines()
    ends, row = (next(line for line in lines if line.split()[:1] == [first]) for first in ("Ends", "5.3.3"))
    assert "133,322" in ends and "133,322" in row
    assert start.truncate_at == audit_plan(outcome)["broker"]["truncate_at"] != 133322
    assert "133,322" in "".join(report_html(outcome)).partition("Which release")[2]


def test_the_table_of_terminal_and_page() -> None:
    outcome = samples.damaged()
    before = summary_text(samples.RUN, [outcome], "out")
    assert "Releases" not in before and "Which release" not in "".join(report_html(outcome))
    alter(outcome, comparison=COMPARED)
    text, page = summary_text(samples.RUN, [outcome], "out"), "".join(report_html(outcome))
    for part in ("647,246", "does not start", "checkCRCOnRecover=false", "not known", "\\x1b[31m"):
        assert part in text and part in page
    assert "<b>not read" not in page and "enableLmq" in page
    assert max(len(line) for line in text.splitlines() if "5.3.2" in line or "4.9.7" in line) <= 120


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("equal", "a and b are equal up to physical offset 1,234"),
        ("behind", "a and b are equal up to physical offset 1,234, where one of them ends"),
        ("apart", "a and b have no physical offset in common"),
        ("unknown", "a and b could not be compared completely"),
    ],
)
def test_words_for_two_copies(relation: str, words: str) -> None:
    assert pair_words(Pair("a", "b", Relation(relation), same_until=1234)) == words


def test_without_a_group_nothing_is_said() -> None:
    outcomes: list[Outcome] = [samples.clean(), samples.damaged()]
    assert "Replicas" not in summary_text(samples.RUN, outcomes, "out")
