"""replicas.json: the groups of copies of one log, as `store_io.replicas.replica_groups` compared them."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.report.files.json_text import document
from schemas.rows import AuditOutcome, Row

SCHEMA_VERSION = 1


def groups_of(outcomes: Sequence[AuditOutcome]) -> list[Row]:
    """Each group once, in the order of the stores."""
    return list({outcome.replica_group: outcome.replicas for outcome in outcomes if outcome.replicas}.values())


def replicas_json(outcomes: Sequence[AuditOutcome]) -> str:
    """The whole file."""
    return document({"schema_version": SCHEMA_VERSION, "groups": groups_of(outcomes)}) + "\n"
