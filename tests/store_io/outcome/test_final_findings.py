"""Findings as they are told."""

from __future__ import annotations

from itertools import permutations

import pytest

from schemas.advice import Advice, Step
from schemas.finding_codes import CATALOGUE
from schemas.rows import LOSS, NOTE, REBUILDABLE, Finding
from store_io.base import packed
from store_io.outcome import final_findings as final
from store_io.outcome.final_findings import completed, final_findings
from tests.support.handmade.evidence import copy_of, evidence_of

OWN = Advice(Step.OTHER_COPY)


def test_the_catalogue_fills_in_what_a_finding_leaves_open() -> None:
    entry = CATALOGUE["queue_entry_missing"]
    told = completed(Finding("queue_entry_missing", "q"))
    assert (told.severity, told.message, told.next) == (entry.severity, entry.meaning, entry.next)
    own = Finding("queue_entry_missing", "q", severity=NOTE, message="m", next=OWN)
    assert completed(own) == own


@pytest.mark.parametrize("code", [code for code, row in CATALOGUE.items() if row.raised_step])
def test_a_raised_note_has_the_step_of_its_row(code: str) -> None:
    assert CATALOGUE[code].severity == NOTE
    assert completed(Finding(code, "x", severity=REBUILDABLE)).next == CATALOGUE[code].next_at(LOSS) != CATALOGUE[code].next
    assert completed(Finding(code, "x", severity=LOSS, next=OWN)).next == OWN
    assert completed(Finding(code, "x")).next == completed(Finding(code, "x", severity=NOTE)).next == CATALOGUE[code].next


def test_each_once_and_in_one_order_whatever_order_they_came_in() -> None:
    findings = [Finding("queue_entry_missing", "b"), Finding("queue_entry_missing", "a", 5, 6), Finding("queue_file_empty", "a")]
    orders = {tuple(final_findings(evidence_of(), [*order, order[0]])[0]) for order in permutations(findings)}
    assert [(f.file, f.start) for f in orders.pop()] == [("a", None), ("a", 5), ("b", None)] and not orders


@pytest.mark.parametrize(("start", "end", "told"), [(0, 20, (0, 20)), (20, 60, (20, 30)), (60, 80, (30, 30)), (60, 30, (30, 30))])
def test_a_range_ends_where_its_file_does(start: int, end: int, told: tuple[int, int]) -> None:
    copy = copy_of({"consumequeue/T/0/0": 30})
    (found, absent), _ = final_findings(
        evidence_of(copy),
        [Finding("queue_entry_missing", path, start, end) for path in ("consumequeue/T/0/0", "consumequeue/T/0/1")],
    )
    assert (found.start, found.end) == told and (absent.start, absent.end) == (start, end)


def test_of_too_many_the_most_severe_are_told_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(final, "MAX_FINDINGS", 2)
    severities = {"a": NOTE, "b": LOSS, "c": REBUILDABLE}
    findings = [Finding("queue_file_empty", name, severity=severity, count=7, more=4) for name, severity in severities.items()]
    told, dropped = final_findings(evidence_of(), findings)
    assert [f.file for f in told] == ["b", "c"] and dropped == {"queue_file_empty": 3 * 4 + 7}


def test_very_many_are_put_in_order_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal ones of two parts are one; those that differ in their severity or next step alone are two, in one order."""
    findings = [
        Finding(
            "queue_file_empty",
            f"f{n * 7 % 11}",
            severity=(NOTE, LOSS, REBUILDABLE)[n % 3],
            next=Advice(Step.LOOK_AT_ORIGIN, (n % 2,)),
            count=1 + n % 2,
        )
        for n in range(40)
    ]
    monkeypatch.setattr(final, "MAX_FINDINGS", 20)
    told, dropped = final_findings(evidence_of(), findings)
    monkeypatch.setattr(packed, "FEW_INSIDE", 3)
    assert final_findings(evidence_of(), iter(findings[::-1])) == (told, dropped)
    once = {*findings}
    assert len(told) == 20 == len({*told}) and {f.severity for f in told} == {LOSS, REBUILDABLE}
    assert sum(f.count for f in told) + dropped["queue_file_empty"] == sum(f.count for f in once)
