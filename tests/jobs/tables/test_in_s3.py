"""The same in S3: prune, compact and vacuum by the same requests that audits make there."""

from __future__ import annotations

from tests.support.processes.remote_tables import check_that_old_runs_go_and_files_are_put_together
from tests.support.processes.s3_server import BUCKET, S3Server


def test_old_runs_go_and_files_are_put_together(server: S3Server) -> None:
    check_that_old_runs_go_and_files_are_put_together(f"s3://{BUCKET}/nights/tables")
