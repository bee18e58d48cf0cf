"""Writes values of a repair into documents: the section `repair` of plan.json, and NEW.repair.json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from schemas.outcome import Outcome
from schemas.repair import RepairProposal, RepairReport, RepairStep
from schemas.rows import Row
from store_io.base.documents import document_of
from store_io.outcome.plan_writer import audit_plan

_KNOWN_IF_REFUSED = ("refused", "worked_out", "options", "config_left", "config", "steps")  # keys that are then not null


def plan_document(outcome: Outcome) -> Row:
    """Return the plan of an outcome, with its section `repair` if one was asked for."""
    plan = audit_plan(outcome)
    return plan if outcome.repairs is None else {**plan, "repair": section(outcome.repairs)}


def section(proposals: Sequence[RepairProposal]) -> Row | None:
    """Return the section `repair`; None without a proposal."""
    return {proposal.policy: _part(proposal) for proposal in proposals} or None


def _part(proposal: RepairProposal) -> Row:
    found: Row = {**document_of(replace(proposal, steps=())), "steps": _numbered(proposal.steps)}
    del found["policy"]
    if proposal.refused is None:
        return found
    return {key: value if key in _KNOWN_IF_REFUSED else None for key, value in found.items()}


def report_document(report: RepairReport) -> Row:
    """Return NEW.repair.json."""
    return {"schema_version": 1, **document_of(replace(report, steps=())), "steps": _numbered(report.steps)}


def _numbered(steps: Iterable[RepairStep]) -> list[Row]:
    """Return steps as both documents have them, numbered from 1."""
    return [{"number": number, **document_of(step)} for number, step in enumerate(steps, 1)]
