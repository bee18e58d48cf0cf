"""The part of a store's page about timer messages."""

from __future__ import annotations

from jobs.report.pages.page import View
from jobs.report.texts.judgement import timer_words
from schemas.rows import AuditOutcome, Row


def timers_view(outcome: AuditOutcome, broker: Row | None) -> View:
    """What timers.html shows: how many wait and when they are due, and what a start does with them."""
    return {
        "timers": outcome.timers,
        "waiting": outcome.timers.get("waiting"),
        "words": list(timer_words(outcome)),
        "after": (broker or {}).get("timer"),
    }
