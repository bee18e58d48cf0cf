"""The same in S3: prune, compact and vacuum by the same requests that audits make there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from jobs.tables.delta_tables import Tables
from jobs.tables.past_runs import History
from tests.support.handmade import samples
from tests.support.processes.remote_tables import check_that_old_runs_go_and_files_are_put_together
from tests.support.processes.s3_server import BUCKET, S3Server


def test_old_runs_go_and_files_are_put_together(server: S3Server) -> None:
    check_that_old_runs_go_and_files_are_put_together(f"s3://{BUCKET}/nights/tables")


def test_a_night_makes_few_requests(server: S3Server) -> None:
    """A table is opened once, and read on afterwards."""
    place = f"s3://{BUCKET}/nights/tables"
    without_spark: Any = SimpleNamespace(context=SimpleNamespace(_jsc=None))
    asked = []
    for night in range(12):  # over a checkpoint
        began = samples.RUN.started_at + timedelta(days=night)
        run = replace(samples.RUN, run_id=f"night-{night}", started_at=began, finished_at=began)
        server.requests.clear()
        Tables(without_spark, place).write_run(run, [samples.damaged(), samples.clean()])
        asked.append(len(server.requests))
    assert asked[0] <= 100 and asked[1] <= 125  # the second looks whether there are datasets to mend
    assert max(asked[:9]) <= 230 and max(asked) <= 400  # two for each version since a checkpoint; each table makes one
    assert len({run.run_id for run in History(place).known}) == 12
