"""The part of a store's page about timer messages."""

from __future__ import annotations

from jobs.report.pages.page import View
from jobs.report.texts.judgement import timer_words
from schemas.rows import AuditOutcome, Row


def timers_view(outcome: AuditOutcome, broker: Row | None) -> View:
    """Return the data of timers.html: how many wait and when they are due, and a start's effect on them."""
    return {
        "timers": outcome.timers,
        "waiting": outcome.timers.get("waiting"),
        "words": list(timer_words(outcome)),
        "after": (broker or {}).get("timer"),
    }
