"""The part of a store's page that lists the findings."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.report.pages.page import View
from jobs.report.texts.commands import closer_look, closer_withheld
from jobs.report.texts.finding_groups import finding_groups
from schemas.rows import AuditOutcome


def findings_view(outcome: AuditOutcome, words: Sequence[str]) -> View:
    """Return the data of findings.html.

    words: those that read the store (`commands.store_words`).
    """
    return {
        "groups": finding_groups(outcome),
        "closer": lambda finding: closer_look(finding, words),
        "withheld": lambda finding: closer_withheld(finding, ()),
    }
