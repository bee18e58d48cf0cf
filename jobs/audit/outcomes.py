"""Outcomes that no audit made: of a store that could not be opened, and of one whose run was stopped. Outcomes of many stores in
little memory."""

from __future__ import annotations

from jobs.command_line.stores import StoreArgument
from schemas.rows import AuditOutcome, Row
from store_io.base.packed import packed


def not_audited(store: StoreArgument, sentence: str, verdict: str = "") -> AuditOutcome:
    """Code 3, with the sentence as the reason. verdict: where the audit itself is not what failed."""
    named = {"store": store.name, "release": store.release, "release_from": store.release_from}
    plan: Row = {"schema_version": 1, **named, "complete": False, "settings": {}, "inputs": [], "broker": None, "steps": []}
    return AuditOutcome(
        store.name, store.path, store.release, 3, False, [sentence], verdict or f"Could not be audited: {sentence}",
        plan, release_from=store.release_from, replica_group=store.replica_group or "", key=store.key,
    )  # fmt: skip


def put_away(outcome: AuditOutcome) -> None:
    """Pack the lists of an outcome whose own files are written. Tables, and the pages of a run, read them once more."""
    outcome.findings = packed(outcome.findings)
    outcome.plan["steps"] = packed(outcome.plan["steps"])
