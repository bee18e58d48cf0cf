"""The findings on a store's page: each with the command that looks closer."""

from __future__ import annotations

from jobs.installation import ENTRY
from jobs.report.pages.sections_on_outcome import findings_view
from jobs.report.texts.finding_words import finding_groups
from tests.support.handmade import samples


def test_each_finding_has_the_command_that_looks_closer() -> None:
    outcome = samples.damaged()
    view = findings_view(outcome, ("/s",))
    assert view["groups"] == finding_groups(outcome) != []
    closer = view["closer"]
    assert callable(closer) and any(f"{ENTRY} explain /s " in closer(f) for f in outcome.findings)
