"""result.json: the exit code of a run."""

from __future__ import annotations

import json
from dataclasses import replace

from jobs.report.files.result_files import result_json
from tests.support.handmade import samples


def test_what_could_not_be_written_makes_the_run_incomplete() -> None:
    run = replace(samples.RUN, problems=("disk full",))
    codes = [json.loads(result_json(run, [outcome]))["exit_code"] for outcome in (samples.clean(), samples.damaged())]
    assert codes == [3, 20]
