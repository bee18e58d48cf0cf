"""plan.json and findings.jsonl of a store, and replicas.json of its run. Equal bytes in a store give equal bytes here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from jobs.report.files.json_text import document
from schemas.rows import AuditOutcome, Finding, Row
from schemas.tables import FINDINGS

FIELDS = [column.name for column in FINDINGS if column.name not in ("store", "number")]
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def plan_json(outcome: AuditOutcome) -> str:
    """The whole file."""
    return document(outcome.plan)


def finding_row(finding: Finding) -> Row:
    """All its fields, in the order in which they are written."""
    return {name: getattr(finding, name) for name in FIELDS}


def findings_jsonl(findings: Iterable[Finding]) -> Iterator[str]:
    """One line each, with its line end. A generator: a badly damaged store has very many."""
    for finding in findings:
        yield _ENCODE(finding_row(finding)) + "\n"


def groups_of(outcomes: Sequence[AuditOutcome]) -> list[Row]:
    """Each replica group once, in the order of the stores."""
    return list({outcome.replica_group: outcome.replicas for outcome in outcomes if outcome.replicas}.values())


def replicas_json(outcomes: Sequence[AuditOutcome]) -> str:
    """The whole file."""
    return document({"schema_version": 1, "groups": groups_of(outcomes)})
