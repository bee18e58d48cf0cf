"""The same in S3: prune, compact and vacuum by the same requests that audits make there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.tables.delta_query import DeltaQuery
from jobs.tables.delta_tables import arrow_table
from jobs.tables.remote_log import RemoteLog
from jobs.tables.upkeep import command
from jobs.tables.upkeep.table_care import tables_under
from schemas.tables import TABLES
from tests.support.s3_server import BUCKET, S3Server

NO_SESSION: Any = None
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
PLACE = f"s3://{BUCKET}/nights/tables"


def write(run_id: str, days: int) -> None:
    began = NOW - timedelta(days=days)
    rows = {"segments": {"store": "s", "file": "commitlog/0"}, "runs": {"store": "s", "started_at": began, "level": "full"}}
    for name, row in rows.items():
        log = RemoteLog(NO_SESSION, f"{PLACE}/{name}", TABLES[name])
        log.replace_run(run_id, [log.write_file(run_id, arrow_table([row], TABLES[name]), began.strftime("%Y-%m"))])


def test_old_runs_go_and_files_are_put_together(server: S3Server) -> None:
    for run_id, days in (("a", 70), ("b", 69), ("c", 1), ("d", 0)):
        write(run_id, days)
    view = command.compact(tables_under(PLACE))
    assert [row["files"] for row in view["by_table"]] == [[4, 2], [4, 2]]
    since = int((NOW - timedelta(days=10)).timestamp() * 1e6)
    view = command.prune(tables_under(PLACE), since, None, NOW)
    assert [run["run_id"] for run in view["gone"]] == ["a", "b"]
    assert [row["files"] for row in command.vacuum(tables_under(PLACE))["by_table"]] == [0, 0]
    assert [row["files"] for row in command.vacuum(tables_under(PLACE), 0)["by_table"]] == [5, 5]
    view = command.info(tables_under(PLACE))
    assert view["runs"] == 2
    assert [(row["rows"], row["files"], row["old_files"]) for row in view["by_table"]] == [(2, 1, 0), (2, 1, 0)]
    write("c", 1)  # a run of a shared file is replaced
    assert DeltaQuery(f"{PLACE}/segments").ask(["run_id"], "ORDER BY run_id") == [{"run_id": "c"}, {"run_id": "d"}]
