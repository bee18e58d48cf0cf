"""result.json and the files of a store: whole, and as the contract has them."""

from __future__ import annotations

import dataclasses
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from jobs.report.files import result_files
from jobs.report.files.result_files import FIELDS, findings_jsonl, groups_of, plan_parts, result_json
from schemas.rows import Finding
from store_io.repair.repair_documents import plan_document
from tests.support.handmade import samples
from tests.support.texts.golden import check


def test_what_could_not_be_written_makes_the_run_incomplete() -> None:
    run = replace(samples.RUN, problems=("disk full",))
    codes = [json.loads(result_json(run, [outcome]))["exit_code"] for outcome in (samples.clean(), samples.damaged())]
    assert codes == [3, 20]


def test_plan_findings_and_result() -> None:
    check("plan.json", "".join(plan_parts(samples.damaged())))
    check("findings.jsonl", "".join(findings_jsonl(samples.damaged().found.findings)))
    check("result.json", result_json(samples.RUN, [samples.damaged(), samples.clean(), samples.not_audited()]))


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def test_plan_json_is_the_plan_whatever_the_order_of_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = samples.damaged()
    text = "".join(plan_parts(outcome))
    plan = json.loads(text)
    assert (plan.pop("answer"), [row["step"] for row in plan.pop("to_do")]) == ("repair", ["other", "repair", "start", "check"])
    assert plan == json.loads(json.dumps(plan_document(outcome)))
    for seed in range(5):
        monkeypatch.setattr(result_files, "plan_document", lambda _, seed=seed: shuffled(plan, random.Random(seed)))
        assert "".join(plan_parts(outcome)) == text


def test_findings_are_one_ascii_line_each_with_all_fields_of_the_contract() -> None:
    findings = samples.damaged().found.findings
    lines = "".join(findings_jsonl(findings)).splitlines()
    assert len(lines) == len(findings)
    fields = "code severity file start end phy_offset topic queue_id queue_offset expected actual message next".split()
    inner = {"only_time", "more"}  # facts for the checks, and for `findings_dropped`
    assert sorted(FIELDS) == sorted({f.name for f in dataclasses.fields(Finding)} - inner)
    for text, finding in zip(lines, findings, strict=True):
        assert text.isascii()
        row = json.loads(text)
        assert list(row)[: len(fields)] == fields
        assert row["topic"] == finding.topic and row["count"] == finding.count


def test_a_group_is_told_once_however_many_copies_it_has() -> None:
    one = samples.behind(samples.clean())
    groups = groups_of([one, replace(one, name="other"), samples.damaged()])
    assert groups == [one.replicas]
    assert groups_of([samples.clean()]) == []
