"""plan.json: the plan, and the golden files of what an audit leaves."""

from __future__ import annotations

import json
import random
from typing import Any

from jobs.report.files.findings_jsonl import findings_jsonl
from jobs.report.files.plan_json import plan_json
from jobs.report.files.result_json import result_json
from tests.support import samples
from tests.support.golden import check


def test_plan_findings_and_result() -> None:
    check("plan.json", plan_json(samples.damaged()))
    check("findings.jsonl", "".join(findings_jsonl(samples.damaged().findings)))
    check("result.json", result_json(samples.RUN, [samples.damaged(), samples.clean(), samples.not_audited()]))


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def test_plan_json_is_the_plan_whatever_the_order_of_its_keys() -> None:
    outcome = samples.damaged()
    text = plan_json(outcome)
    assert json.loads(text) == outcome.plan
    for seed in range(5):
        outcome.plan = shuffled(outcome.plan, random.Random(seed))
        assert plan_json(outcome) == text
