"""The part of a store's page that compares releases and settings."""

from __future__ import annotations

from jobs.report.pages.page import View
from jobs.report.texts.comparison_words import least_text, lost_text, release_lines, setting_lines
from schemas.rows import AuditOutcome, Comparison


def compared_view(outcome: AuditOutcome, compared: Comparison) -> View:
    """What compared.html shows: a line for neighbouring releases that do the same, and one for each setting that changes
    something."""
    return {
        "release": outcome.release,
        "releases": release_lines(compared),
        "settings": setting_lines(compared),
        "unchanged": compared.unchanged,
        "least": least_text(outcome, compared),
        "lost": lost_text,
    }
