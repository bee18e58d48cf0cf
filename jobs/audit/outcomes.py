"""Outcomes that no audit made: of a store that could not be opened, and of one whose run was stopped. Outcomes of many stores in
little memory."""

from __future__ import annotations

from jobs.command_line.stores import StoreArgument
from schemas.advice import Gap
from schemas.rows import AuditOutcome, Row
from store_io.base.packed import packed
from store_io.wording.gaps import gap_rows, gap_text


def not_audited(store: StoreArgument, gap: Gap, verdict: str = "") -> AuditOutcome:
    """Return an outcome with code 3 and the sentence as its reason.

    verdict: given if the audit itself did not fail.
    """
    named = {"store": store.name, "release": store.release, "release_from": store.release_from}
    known: Row = {"gaps": gap_rows([gap]), "settings": {}, "inputs": [], "broker": None, "steps": []}
    plan: Row = {"schema_version": 1, **named, "complete": False, **known}
    sentence = gap_text(gap)
    return AuditOutcome(
        store.name,
        store.path,
        store.release,
        gap.exit_code,
        complete=False,
        incomplete=[sentence],
        gaps=[gap],
        verdict=verdict or f"Could not be audited: {sentence}",
        plan=plan,
        release_from=store.release_from,
        replica_group=store.replica_group or "",
        key=store.key,
    )


def put_away(outcome: AuditOutcome) -> None:
    """Pack the lists of an outcome whose own files are written. Tables, and the pages of a run, read them once more."""
    outcome.findings = packed(outcome.findings)
    outcome.plan["steps"] = packed(outcome.plan["steps"])
