"""What diff makes of rows of the tables, without Spark: literal rows in, literal answers out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from jobs.commands.past import difference
from jobs.commands.past.difference import Segment
from jobs.report.pages.fleet_html import fleet_html
from jobs.report.past_views import Amount, CodeCount, DifferenceView, Found
from jobs.report.texts.history_text import difference_text, fleet_text
from jobs.report.values_as_rows import as_json, json_text
from schemas.advice import Cause, exit_code_of
from tests.support.handmade.history_rows import BEFORE, A, B, diff, file, place, run_row, segment, view_of
from tests.support.handmade.samples import HOSTILE


def matched(rows: Iterable[Found]) -> tuple[list[Any], ...]:
    found = difference.match_findings(rows)
    kinds = found.new, [row for row, _ in found.grown], found.gone, found.still
    return tuple([(f.start, f.end, f.count) for f in kind] for kind in kinds)


@pytest.mark.parametrize(
    ("rows", "new", "grown", "fixed", "still"),
    [
        ([place(0, 10, None, 1)], [(0, 10, 1)], [], [], []),
        ([place(0, 10, 1, None)], [], [], [(0, 10, 1)], []),
        ([place(0, 10, 1, None), place(10, 20, None, 1)], [(10, 20, 1)], [], [(0, 10, 1)], []),  # side by side is not the same
        ([place(0, 10, 1, None), place(0, 30, None, 3)], [], [(0, 30, 3)], [], []),
        ([place(0, 30, 3, None), place(0, 10, None, 1)], [], [], [], [(0, 10, 1)]),  # less of the same
        ([place(0, 30, 3, None), place(0, 10, None, 1), place(20, 30, None, 1)], [], [], [], [(0, 10, 1), (20, 30, 1)]),
        ([place(0, 10, 1, None), place(20, 30, 1, None), place(0, 30, None, 2)], [], [], [], [(0, 30, 2)]),  # folded otherwise
        ([place(0, 10, 2, 5)], [], [(0, 10, 5)], [], []),
        ([place(0, 10, 5, 5, ("note", "loss"))], [], [(0, 10, 5)], [], []),
        ([place(0, 10, 5, 5, ("loss", "note"))], [], [], [], [(0, 10, 5)]),
        ([place(None, None, 1, None), place(None, None, None, 1, phy_offset=4)], [], [], [], [(None, None, 1)]),
        ([place(0, 10, 1, None), place(5, 10, None, 1, topic="t")], [(5, 10, 1)], [], [(0, 10, 1)], []),  # another queue's
        ([place(0, 10, 1, None, file="a", phy_offset=7), place(40, 50, None, 1, file="b", phy_offset=7)],
         [], [], [], [(40, 50, 1)]),
        ([place(0, 10, 1, None, file="a", phy_offset=7), place(40, 50, None, 1, file="b", phy_offset=8)],
         [(40, 50, 1)], [], [(0, 10, 1)], []),
        ([place(5, 5, 1, None), place(5, 5, None, 2)], [], [(5, 5, 2)], [], []),  # an empty range is a place too
    ],
)  # fmt: skip
def test_findings_are_matched(
    rows: list[list[Found]], new: list[Any], grown: list[Any], fixed: list[Any], still: list[Any]
) -> None:
    every = [found for one in rows for found in one]
    assert matched(every) == matched(reversed(every)) == (new, grown, fixed, still)


def test_what_a_finding_was_is_told() -> None:
    ((grown, was),) = difference.match_findings([*place(0, 10, 2, None, "note"), *place(5, 30, None, 3)]).grown
    assert as_json(was) == {"start": 0, "end": 10, "count": 2, "severity": "note"}
    assert (grown.severity, grown.start, grown.end) == ("loss", 5, 30)


def test_an_answer_that_changed_is_told_although_nothing_is_new() -> None:
    view = diff(replace(A, answer="start"), replace(B, answer="other_copy"))
    assert (view.exit_code, view.stores[0].answers) == (0, ["start", "other_copy"])
    assert "\n  answer          start -> other_copy\n" in difference_text(view)
    for before, now in (("start", "start"), (None, "start"), ("start", None)):
        text = difference_text(diff(replace(A, answer=before), replace(B, answer=now)))
        assert "  answer" not in text and "1 store without a difference" in text


def test_a_log_that_only_grew() -> None:
    after = [segment(1), segment(2), segment(3, "e"), segment(4, "e", 30), segment(5, wrote=None)]
    found = difference.compare_log(BEFORE, after)
    assert (found.compared.changed, found.missing, found.appeared, found.shrank) == ([], [], [], False)
    assert (found.retired, found.compared.same, found.added) == (Amount(1, 100), Amount(2, 200), Amount(1, 100))
    assert found.last and (found.end, found.last.wrote) == ((350, 430), (50, 100))


@pytest.mark.parametrize(
    ("after", "key", "value"),
    [
        ([segment(0), segment(1, "e"), *BEFORE[2:]], "changed", [("commitlog/00000000000000000100", False)]),
        ([segment(0), segment(1, "e", modified_ns=2), *BEFORE[2:]], "changed", [("commitlog/00000000000000000100", True)]),
        ([segment(0), segment(1, None, size=90), *BEFORE[2:]], "changed", [("commitlog/00000000000000000100", False)]),
        ([segment(0), segment(1, None), *BEFORE[2:]], "not_compared", {"files": 1, "bytes": 100}),
        ([*BEFORE[:3], segment(3, "e", 50), BEFORE[4]], "changed", []),  # the one that was written last
        ([segment(0), *BEFORE[2:]], "missing", ["commitlog/00000000000000000100"]),
        (BEFORE[:2], "missing", ["commitlog/00000000000000000200", "commitlog/00000000000000000300"]),
        ([], "missing", [row.file for row in BEFORE[:4]]),
        ([*BEFORE[:3], segment(3, "e", 40)], "shrank", True),
        ([*BEFORE, segment(1, file="commitlog[2]/00000000000000000100")], "appeared", ["commitlog[2]/00000000000000000100"]),
    ],
)
def test_a_log_in_which_a_broker_did_not_write(after: list[Segment], key: str, value: Any) -> None:
    found = json.loads(json_text(difference.compare_log(BEFORE, after)))[key]
    assert ([(row["file"], row["modified"]) for row in found] if key == "changed" else found) == value


def test_a_segment_that_was_left_out_says_nothing_of_the_logs_end() -> None:
    left_out = segment(3, None, None, known=False)
    found = difference.compare_log(BEFORE, [*BEFORE[:3], left_out])
    assert (found.end, found.shrank, found.compared.changed) == ((350, 300), False, [])
    assert difference.compare_log(BEFORE, BEFORE[:3]).shrank is True


def test_what_was_not_read_again_is_not_fixed() -> None:
    after = [segment(0, None, None, known=False), *BEFORE[1:]]
    damage = place(0, 10, 1, None, file=BEFORE[0].file)
    (store,) = diff(A, B, damage, after=after).stores
    assert (store.fixed, len(store.not_read), store.code) == ([], 1, 0)
    assert "1 finding of run A in files that run B did not read" in difference_text(diff(A, B, damage, after=after))
    (store,) = diff(A, B, damage).stores
    assert (len(store.fixed), store.not_read) == (1, [])
    of_a_queue = place(0, 10, 1, None, file="consumequeue/t/0/0")
    (store,) = diff(A, replace(B, level="quick"), [*damage, *of_a_queue]).stores
    assert ([f.file for f in store.fixed], len(store.not_read)) == ([BEFORE[0].file], 1)


def test_a_finding_about_a_message_that_was_not_read_again_is_not_fixed() -> None:
    """An entry of the index that led to damage: the index was read again, the damage was not."""
    after = [BEFORE[0], segment(1, None, None, known=False), *BEFORE[2:]]
    for phy_offset, count, complete, not_read in (
        (100, 1, True, 1), (199, 1, True, 1), (99, 1, True, 0), (200, 1, True, 0),
        (99, 2, True, 0), (None, 2, True, 0), (99, 2, False, 1), (200, 2, False, 1), (None, 1, False, 1), (200, 1, False, 1),
    ):  # fmt: skip
        entry = place(0, 20, count, None, "rebuildable", file="index/1", phy_offset=phy_offset)
        (store,) = diff(A, replace(B, complete=complete), entry, after=after).stores
        assert (len(store.fixed), len(store.not_read)) == (1 - not_read, not_read)
    entry = place(0, 20, 1, None, "rebuildable", file="index/1", phy_offset=100)
    text = difference_text(diff(A, B, entry, after=after))
    assert "1 finding of run A in files that run B did not read, or about messages there: not compared" in text
    assert "fixed" not in text


def test_an_incomplete_run_fixes_only_what_lies_where_it_has_read() -> None:
    """Much that it did not read has no row, such as a link in place of a segment."""
    b = replace(B, complete=False, exit_code=3)
    for number, phy_offset, fixed in ((1, 110, 1), (2, 210, 0), (1, None, 0), (1, 5000, 0)):
        damage = place(10, 20, 1, None, file=BEFORE[number].file, phy_offset=phy_offset)
        (store,) = diff(A, b, damage, after=[*BEFORE[:2], *BEFORE[3:]]).stores
        assert (len(store.fixed), len(store.not_read)) == (fixed, 1 - fixed)


def test_a_copy_that_could_not_be_listed_has_lost_nothing() -> None:
    """As on the night when its disk was not mounted. A copy that was listed, and is empty, has."""
    damage = place(0, 10, 1, None, file=BEFORE[0].file)
    a = replace(A, settings={"maxIndexNum": "7"})
    unlisted = diff(a, replace(B, complete=False, exit_code=3, verdict="Could not be audited"), damage, after=[])
    (store,) = unlisted.stores
    assert store.other_settings == []
    assert (store.code, store.commitlog, store.fixed, len(store.not_read)) == (3, None, [], 1)
    text = difference_text(unlisted)
    assert "s: code 0 -> 3; it could be read in run A, and not in run B" in text and store.unreadable_now is True
    assert "no new finding" not in text
    assert "run B is incomplete: Could not be audited" in text and "missing  " not in text and "moved back" not in text
    emptied = diff(a, B, damage, after=[])
    (store,) = emptied.stores
    assert (store.code, store.commitlog and len(store.commitlog.missing), store.other_settings) == (20, 4, [])
    assert (store.fixed, len(store.not_read)) == ([], 1)  # gone, not mended
    text = difference_text(emptied)
    assert "all segments of the CommitLog, 4 of them with messages" in text and "older segments are still there" not in text


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (0, 300, "  lacks           300 messages that other copies of its group hold (0 in run A)"),
        (None, 1, "  lacks           1 message that other copies of its group hold (copies were not compared in run A)"),
        (300, 301, "  lacks           301 messages that other copies of its group hold (300 in run A)"),
        (300, 0, "  lacks           no message of its group any more (300 in run A)"),
        (300, 300, ""),
        (300, None, ""),
        (None, 0, ""),
    ],
)
def test_what_a_copy_lacks_of_its_group_since_then(before: int | None, now: int | None, told: str) -> None:
    view = diff(replace(A, lacks_messages=before), replace(B, lacks_messages=now))
    assert (view.exit_code, view.stores[0].lacks_messages) == (0, [before, now])
    assert ("lacks  " in difference_text(view)) == bool(told) and told in [*difference_text(view).splitlines(), ""]
    parted = difference_text(diff(replace(A, diverged=False), replace(B, diverged=True)))
    assert "  diverged        another copy of its group holds other messages" in parted
    assert "diverged  " not in difference_text(diff(replace(A, diverged=True), replace(B, diverged=True)))


def test_a_copy_of_which_not_all_can_be_read_any_more_is_told() -> None:
    text = difference_text(diff(A, replace(B, complete=False, exit_code=3), place(0, 1, None, 1, "note")))
    assert "s: code 0 -> 3; it could be read in run A, and only in part in run B, 1 new finding" in text
    still = difference_text(diff(replace(A, complete=False, exit_code=3), replace(B, complete=False, exit_code=3)))
    assert "s: code 3 -> 3; no new finding" in still


def test_derived_files() -> None:
    before = [file("q/0/0"), file("q/0/1"), file("q/0/2"), file("q/1/0"), file("q/2/0", None), file("q/2/1")]
    after = [file("q/0/1", "e"), file("q/0/2", "e"), file("q/0/3"), file("q/1/0", "e"), file("q/2/0"), file("q/2/1")]
    found = difference.compare_derived(before, after, one_series=False)
    assert [row.file for row in found.compared.changed] == ["q/0/1"]  # of each queue the newest file may change
    assert (found.gone.files, found.added.files, found.compared.not_compared.files) == (1, 1, 1)
    one = difference.compare_derived(before, after, one_series=True)
    assert [row.file for row in one.compared.changed] == ["q/0/1", "q/0/2", "q/1/0"]


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (diff(A, B, ()), 0),
        (diff(A, B, place(0, 1, None, 1, "note")), 0),
        (diff(A, B, place(0, 1, None, 1, "rebuildable")), 10),
        (diff(A, B, place(0, 1, None, 1)), 20),
        (diff(A, B, place(0, 1, 1, None)), 0),
        (diff(A, B, place(0, 1, 1, 2, "rebuildable")), 10),
        (diff(A, B, (), after=[segment(0, "e"), *BEFORE[1:]]), 20),
        (diff(A, B, (), after=[segment(0), *BEFORE[2:]]), 20),
        (diff(A, replace(B, complete=False), []), 3),
        (diff(replace(A, complete=False), B, place(0, 1, None, 1)), 20),
        (diff(A, replace(B, complete=False), place(0, 1, None, 1, "rebuildable")), 3),
        (diff(A, replace(B, complete=False, gaps=["time_limit"]), []), exit_code_of(Cause.TIME_LIMIT)),
        (diff(A, replace(B, complete=False, gaps=None), []), 3),
        (diff(A, None, ()), 3),
        (diff(None, B, ()), 0),
        (diff(None, B, place(0, 1, None, 1, "rebuildable")), 10),
    ],
)
def test_the_exit_code_of_a_difference(view: DifferenceView, code: int) -> None:
    assert view.exit_code == code
    assert f"exit code {code} (" in difference_text(view)
    json.loads(json_text(view))


def test_other_rules_are_told_and_bytes_that_stayed_the_same() -> None:
    b = replace(B, rules_version="2", release="5.4.0", settings={"maxIndexNum": "7"})
    view = diff(A, b, [*place(0, 1, None, 1, file="commitlog/" + "0" * 20), *place(0, 1, None, 1, file=HOSTILE)])
    assert view.other_rules == ["rules 1 -> 2"]
    assert view.stores[0].other_settings == ["release 5.3.3 -> 5.4.0", "maxIndexNum unset -> 7"]
    assert [f.bytes_changed for f in view.stores[0].new] == [None, False]
    text = difference_text(view)
    assert "other rules: rules 1 -> 2; they may judge the same bytes differently" in text
    assert "(this file's bytes are the same in both runs)" in text
    assert "\x1b" not in text and "\u202e" not in text and "<script>" in text


@pytest.mark.parametrize("severity", ["critical", "", "\x1b[31m"])
def test_a_severity_that_this_version_does_not_know_counts_as_the_most_severe(severity: str) -> None:
    later = diff(A, B, place(0, 1, None, 1, severity))
    assert later.exit_code == 20
    assert "\x1b" not in difference_text(later)
    codes = [CodeCount("s", word, f"a_{word}", 1, 1, "f") for word in ("note", severity, "loss")]
    view = view_of([run_row("s", 0, 20)], codes)
    assert [code.severity for code in view.stores[0].latest.codes][-1] == "note"
    assert "\x1b" not in fleet_text(view) + "".join(fleet_html(view))
