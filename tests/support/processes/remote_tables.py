"""Tables of four nights at an address, and what prune, compact, vacuum and info make of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.commands import tables_command
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.delta_tables import arrow_table
from jobs.tables.remote_log import RemoteLog
from jobs.tables.table_care import tables_under
from schemas.tables import TABLES

NO_SESSION: Any = None
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def write(place: str, run_id: str, days: int) -> None:
    """A run of so many days ago."""
    began = NOW - timedelta(days=days)
    rows = {"segments": {"store": "s", "file": "commitlog/0"}, "runs": {"store": "s", "started_at": began, "level": "full"}}
    for name, row in rows.items():
        log = RemoteLog(NO_SESSION, f"{place}/{name}", TABLES[name])
        log.replace_run(run_id, [log.write_file(run_id, arrow_table([row], TABLES[name]), began.strftime("%Y-%m"))])


def check_that_old_runs_go_and_files_are_put_together(place: str) -> None:
    """Writes the tables, and keeps the two newest runs."""
    for run_id, days in (("a", 70), ("b", 69), ("c", 1), ("d", 0)):
        write(place, run_id, days)
    compacted = tables_command.compact(tables_under(place))
    assert [table.files for table in compacted.by_table] == [(4, 2), (4, 2)]
    since = int((NOW - timedelta(days=10)).timestamp() * 1e6)
    assert [run.run_id for run in tables_command.prune(tables_under(place), since, None, NOW).gone] == ["a", "b"]
    assert [table.files for table in tables_command.vacuum(tables_under(place)).by_table] == [0, 0]
    assert [table.files for table in tables_command.vacuum(tables_under(place), 0).by_table] == [5, 5]
    sizes = tables_command.info(tables_under(place))
    assert sizes.runs == 2
    assert [(table.rows, table.files, table.old_files) for table in sizes.by_table] == [(2, 1, 0), (2, 1, 0)]
    write(place, "c", 1)  # a run of a shared file is replaced
    assert DeltaQuery(f"{place}/segments").ask(["run_id"], "ORDER BY run_id") == [{"run_id": "c"}, {"run_id": "d"}]
