"""What a verdict promises is true: of every real store, and of one store after each kind of damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.report.judgement import REFUSES, SAFE, judge
from jobs.report.ranking import exit_words
from tests.corpus_tools import Case, cases
from tests.product import audit


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_code_0_or_10_promises_a_start_that_loses_nothing(case: Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    for release, conf in ((case.release, case.broker_conf), ("5.5.0", None), ("4.8.0", None)):
        outcome = audit(root, release, conf).outcome
        broker = outcome.plan["broker"]
        if outcome.exit_code in (0, 10):
            assert broker["starts"] and not broker["lost"]["messages"], (release, outcome.verdict)
        if broker is not None and not broker["starts"]:
            assert outcome.exit_code == 20 and judge(outcome).kind == REFUSES
            assert exit_words(20, [outcome]) == "no start"
        if judge(outcome).kind == SAFE:
            assert outcome.exit_code == 0


@pytest.mark.parametrize("name", ["g72", "g76", "g83"])
def test_a_store_that_does_not_start_is_not_called_damaged_for_that_alone(name: str, tmp_path: Path) -> None:
    (case,) = cases(name)
    judgement = judge(audit(case.unpack(tmp_path), case.release, case.broker_conf).outcome)
    assert judgement.kind == REFUSES and not any("damaged or missing" in sentence for sentence in judgement.why)
