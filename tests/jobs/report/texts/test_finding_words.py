"""Findings by severity and code."""

from __future__ import annotations

from jobs.report.texts.finding_words import finding_groups
from schemas.rows import Finding
from tests.support.handmade import samples


def test_the_most_severe_come_first_and_what_was_dropped_is_told_once() -> None:
    outcome = samples.clean()
    outcome.findings = [
        Finding(code, file, severity=severity, count=number, next=step)
        for code, file, severity, number, step in (
            ("b", "f1", "note", 1, ""),
            ("b", "f2", "loss", 2, "Do this."),
            ("a", "f3", "rebuildable", 3, "Do that."),
            ("b", "f4", "loss", 4, "Do this."),
        )
    ]
    outcome.findings_dropped = {"b": 100}
    groups = finding_groups(outcome)
    assert [(group.severity, group.code, group.total, group.files, group.dropped, group.next) for group in groups] == [
        ("loss", "b", 106, 2, 100, ["Do this."]),
        ("rebuildable", "a", 3, 1, 0, ["Do that."]),
        ("note", "b", 1, 1, 0, []),
    ]
