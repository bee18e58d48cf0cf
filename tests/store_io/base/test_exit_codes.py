"""What a store and a run earn, and which exit code counts for several."""

from __future__ import annotations

import pytest

from schemas.advice import Cause, Gap
from schemas.rows import LOSS, NOTE, REBUILDABLE
from store_io.base import exit_codes


@pytest.mark.parametrize(
    ("codes", "worst"), [([], 0), ([0, 10], 10), ([10, 3], 3), ([3, 20, 0], 20), ([0, 3], 3), ([10, 20], 20), ([7, 3], 7)]
)
def test_worst_exit_code(codes: list[int], worst: int) -> None:
    assert exit_codes.worst(codes) == worst


def test_a_store_earns_what_its_most_severe_finding_and_its_completeness_say() -> None:
    found = ([], [NOTE], [NOTE, REBUILDABLE], [REBUILDABLE, LOSS, NOTE])
    assert [exit_codes.of_store(severities, []) for severities in found] == [0, 0, 10, 20]
    assert [exit_codes.of_store(severities, [Gap(Cause.UNREADABLE)]) for severities in found] == [3, 3, 3, 20]


def test_a_run_whose_results_could_not_all_be_written_is_incomplete() -> None:
    assert [exit_codes.of_run(codes, ["disk full"]) for codes in ([], [0, 10], [20])] == [3, 3, 20]
    assert exit_codes.of_run([0, 10], []) == 10


def test_an_unknown_severity_counts_as_the_most_severe() -> None:
    assert (exit_codes.of_severity("critical"), exit_codes.severity_rank("critical")) == (20, 0)
    assert [exit_codes.severity_rank(severity) for severity in (LOSS, REBUILDABLE, NOTE)] == [0, 1, 2]
