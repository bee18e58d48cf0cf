"""findings.jsonl: a line for each, with every field."""

from __future__ import annotations

import dataclasses
import json

from jobs.report.files.findings_jsonl import FIELDS, findings_jsonl
from schemas.rows import Finding
from tests.support import samples


def test_findings_are_one_ascii_line_each_with_all_fields_of_the_contract() -> None:
    findings = samples.damaged().findings
    lines = "".join(findings_jsonl(findings)).splitlines()
    assert len(lines) == len(findings)
    fields = "code severity file start end phy_offset topic queue_id queue_offset expected actual message next".split()
    assert sorted(FIELDS) == sorted(f.name for f in dataclasses.fields(Finding))
    for text, finding in zip(lines, findings, strict=True):
        assert text.isascii()
        row = json.loads(text)
        assert list(row)[: len(fields)] == fields
        assert row["topic"] == finding.topic and row["count"] == finding.count
