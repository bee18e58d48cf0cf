"""findings.jsonl of one store: one finding per line, in the outcome's own order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from jobs.report.json_text import line
from schemas.rows import Finding, Row

_FIELDS = tuple(f.name for f in fields(Finding))


def finding_row(finding: Finding) -> Row:
    """All its fields."""
    return {name: getattr(finding, name) for name in _FIELDS}


def findings_jsonl(findings: Iterable[Finding]) -> Iterator[str]:
    """One line each, with its line end. A generator: a badly damaged store has very many."""
    for finding in findings:
        yield line(finding_row(finding)) + "\n"
