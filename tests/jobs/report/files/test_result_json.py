"""result.json: the exit code of a run."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.files.result_json import run_exit_code
from tests.support import samples


def test_what_could_not_be_written_makes_the_run_incomplete() -> None:
    assert run_exit_code(replace(samples.RUN, problems=("disk full",)), [samples.clean()]) == 3
    assert run_exit_code(replace(samples.RUN, problems=("disk full",)), [samples.damaged()]) == 20
