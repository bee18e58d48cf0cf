"""findings.jsonl of one store: one finding per line, in the outcome's own order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from schemas.rows import Finding, Row

# The contract's order.
FIELDS = "code severity file start end phy_offset topic queue_id queue_offset expected actual message next count".split()
_ENCODE = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode


def finding_row(finding: Finding) -> Row:
    """All its fields, in the order in which they are written."""
    return {name: getattr(finding, name) for name in FIELDS}


def findings_jsonl(findings: Iterable[Finding]) -> Iterator[str]:
    """One line each, with its line end. A generator: a badly damaged store has very many."""
    for finding in findings:
        yield _ENCODE(finding_row(finding)) + "\n"
