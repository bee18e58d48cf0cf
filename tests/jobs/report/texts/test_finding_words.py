"""Findings by severity and code."""

from __future__ import annotations

from jobs.report.texts.finding_words import finding_groups
from schemas.advice import Advice, Step
from schemas.rows import Finding
from store_io.wording.steps import advice_text
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter

THIS, THAT = Advice(Step.SALVAGE), Advice(Step.LOOK_AT_ORIGIN, (5,))


def test_the_most_severe_come_first_and_what_was_dropped_is_told_once() -> None:
    outcome = samples.clean()
    alter(
        outcome,
        findings=[
            Finding(code, file, severity=severity, count=number, next=step)
            for code, file, severity, number, step in (
                ("b", "f1", "note", 1, None),
                ("b", "f2", "loss", 2, THIS),
                ("a", "f3", "rebuildable", 3, THAT),
                ("b", "f4", "loss", 4, THIS),
            )
        ],
    )
    alter(outcome, dropped={"b": 100})
    groups = finding_groups(outcome)
    assert [(group.severity, group.code, group.total, group.files, group.dropped, group.next) for group in groups] == [
        ("loss", "b", 106, 2, 100, [advice_text(THIS)]),
        ("rebuildable", "a", 3, 1, 0, [advice_text(THAT)]),
        ("note", "b", 1, 1, 0, []),
    ]
