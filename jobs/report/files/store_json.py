"""plan.json, findings.jsonl and config.json of a store, and replicas.json of its run.

Equal bytes in a store give equal bytes here.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jobs.report.files.json_text import document, document_parts
from schemas.rows import AuditOutcome, ConfigTables, Finding, Row
from schemas.tables import FINDINGS, OF_RUN
from store_io.wording.steps import next_text

FIELDS = [column.name for column in FINDINGS if column not in OF_RUN and column.name != "number"]
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def plan_parts(outcome: AuditOutcome) -> Iterator[str]:
    """plan.json in parts: a store may have a million queues."""
    return document_parts(outcome.plan)


def finding_row(finding: Finding) -> Row:
    """All its fields, in the order in which they are written."""
    row = {name: getattr(finding, name) for name in FIELDS}
    return row | {"code": str(finding.code), "file": finding.file or None, "next": next_text(finding.next)}


def findings_jsonl(findings: Iterable[Finding]) -> Iterator[str]:
    """One line each, with its line end. A generator: a badly damaged store has very many."""
    for finding in findings:
        yield _ENCODE(finding_row(finding)) + "\n"


def config_json(tables: ConfigTables) -> Iterator[str]:
    """The tables of config/ as results list them. A generator, entry by entry: there may be a million topics."""
    yield "{\n"
    yield from _object("topics", tables.listed_topics)
    yield ",\n"
    yield from _object("groups", tables.listed_groups)
    yield ",\n"
    yield from _object("offsets", _offsets(tables.offsets))
    yield ",\n"
    yield from _object("delay_offsets", ((str(level), offset) for level, offset in tables.delay_offsets.items()))
    yield "\n}\n"


def _object(key: str, entries: Iterable[tuple[str, Any]]) -> Iterator[str]:
    before = "\n  "
    yield f"{_ENCODE(key)}: {{"
    for name, value in entries:
        yield f"{before}{_ENCODE(name)}: {_ENCODE(value)}"
        before = ",\n  "
    yield "}"


def _offsets(offsets: Mapping[tuple[str, str, int], int]) -> Iterator[tuple[str, Row]]:
    """By topic and group, whose queues are beside one another."""
    for (group, topic), queues in itertools.groupby(offsets.items(), key=lambda item: item[0][:2]):
        yield f"{topic}@{group}", {str(place[2]): offset for place, offset in queues}


def groups_of(outcomes: Sequence[AuditOutcome]) -> list[Row]:
    """Each replica group once, in the order of the stores."""
    return list({outcome.replica_group: outcome.replicas for outcome in outcomes if outcome.replicas}.values())


def replicas_json(outcomes: Sequence[AuditOutcome]) -> str:
    """The whole file."""
    return document({"schema_version": 1, "groups": groups_of(outcomes)})
