"""plan.json of one store, as contract.md shapes it. Equal bytes in the store give equal bytes here."""

from __future__ import annotations

from jobs.report.files.json_text import document
from schemas.rows import AuditOutcome


def plan_json(outcome: AuditOutcome) -> str:
    """The whole file."""
    return document(outcome.plan) + "\n"
