"""Tables of the first version (first_release/README.md) are read, appended, compacted and pruned by this one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from jobs.commands import tables_command
from jobs.commands.past import fleet
from jobs.runtime.session import Session
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.delta_tables import Tables, arrow_table, run_rows
from jobs.tables.past_runs import History
from jobs.tables.table_care import tables_under
from schemas.tables import MONTH, RUN_ID, TABLES, Column, Table
from tests.support.handmade import samples
from tests.support.stores.corpus_tools import extract

NO_SESSION: Any = None
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    extract(Path(__file__).parent / "first_release/tables.tar.xz", tmp_path / "tables")
    return tmp_path / "tables"


def append(place: Path, run_id: str) -> None:
    """A run of this version, as `Tables.write_run` commits it, by delta-rs alone."""
    run = replace(samples.RUN, run_id=run_id, started_at=NOW)
    for name, rows in run_rows(run, [replace(samples.damaged(), name="a"), samples.clean()]).items():
        log = DeltaLog(NO_SESSION, f"file:{place}/{name}", TABLES[name])
        log.replace_run(run_id, [log.write_file(run_id, arrow_table(rows, TABLES[name]), "2026-11")] if rows else [])


def runs_in(place: Path, name: str) -> list[str]:
    return [row["run_id"] for row in DeltaQuery(f"{place}/{name}").ask(["DISTINCT run_id"], "ORDER BY run_id")]


def test_they_are_read(first: Path) -> None:
    assert DeltaTable(first / "runs").metadata().partition_columns == [RUN_ID.name]
    view = fleet.read_fleet(History(str(first)), NOW)
    assert [(store.name, store.latest.exit_code, store.runs, store.safety) for store in view.stores] == [
        ("b", 10, 2, "unknown"),
        ("a", 0, 2, "unknown"),
    ]
    assert {(store.answer, store.steps) for store in view.stores} == {(None, None)}
    assert [store.store for store in view.stores] == ["/copies/b", "/copies/a"]  # folders' names: nobody named them
    assert view.stores[0].latest.codes[0].code == "queue_entry_wrong"
    history = History(str(first))
    assert {row["log_end"] for row in history.rows("SELECT log_end, messages FROM runs")} == {None}  # a column that came later
    assert [row["messages"] for row in history.rows("SELECT messages FROM runs", ["first-2"])] == [18, 18]


def test_they_are_appended_compacted_and_pruned(first: Path) -> None:
    append(first, "now")
    append(first, "first-2")  # a run of theirs is replaced
    assert runs_in(first, "segments") == runs_in(first, "runs") == ["first-1", "first-2", "now"]
    table = DeltaTable(first / "runs")
    assert table.metadata().partition_columns == [RUN_ID.name]
    assert {column.name for column in TABLES["runs"]} < {field.name for field in table.schema().fields}
    assert table.metadata().description == TABLES["runs"].about
    comments = {field.name: field.metadata["comment"] for field in table.schema().fields}
    assert comments == {column.name: column.comment for column in (*TABLES["runs"], RUN_ID)}
    view = fleet.read_fleet(History(str(first)), NOW)  # a person has given `a` its name by now
    assert sorted((store.store, store.runs) for store in view.stores) == [("/copies/b", 1), ("a", 3), ("calm", 2)]
    assert {store.store: (store.answer, store.steps) for store in view.stores} == {
        "/copies/b": (None, None), "a": ("repair", ["other", "repair", "start", "check"]), "calm": ("start", ["start"]),
    }  # fmt: skip
    rows = DeltaQuery(f"{first}/runs").ask(["run_id", "store", "verdict", "safety"], "ORDER BY run_id, store")
    view = tables_command.compact(tables_under(str(first)))
    assert all(row.files[1] <= 1 for row in view.by_table)
    assert DeltaTable(first / "runs").metadata().partition_columns == [MONTH.name]
    assert DeltaQuery(f"{first}/runs").ask(["run_id", "store", "verdict", "safety"], "ORDER BY run_id, store") == rows
    append(first, "later")
    since = int(datetime(2026, 11, 10, tzinfo=UTC).timestamp() * 1e6)
    view = tables_command.prune(tables_under(str(first)), since, None, NOW)
    assert [run.run_id for run in view.gone] == [] and [run.run_id for run in view.needed] == ["first-1"]  # b's latest
    append(first, "first-1")
    assert runs_in(first, "segments") == runs_in(first, "runs") == ["first-1", "first-2", "later", "now"]


def test_a_new_column_is_one_declaration_and_null_in_older_rows(first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = Column("new_column", "long", "Key of nothing.", of="outcome.holds.segment_count")
    monkeypatch.setitem(TABLES, "runs", Table(TABLES["runs"].about, *(c for c in TABLES["runs"] if not c.ms), new))
    append(first, "now")
    rows = DeltaQuery(f"{first}/runs").ask(["run_id", "new_column"], "ORDER BY run_id, new_column")
    assert [row["new_column"] for row in rows] == [None] * 4 + [1, 2]
    schema = {field.name: field.metadata["comment"] for field in DeltaTable(first / "runs").schema().fields}
    assert schema["new_column"] == "Key of nothing."


@pytest.mark.spark
def test_spark_reads_and_appends_them(spark_session: Session, first: Path) -> None:
    tables = Tables(spark_session, str(first))
    tables.write_run(replace(samples.RUN, run_id="now"), [samples.damaged()])
    rows = tables.read("segments").groupBy("run_id").count().collect()
    found = {row["run_id"]: row["count"] for row in rows}
    assert found == {"first-1": 2, "first-2": 2, "now": 2}
    history = tables.history()
    assert history is not None and len(history.rows("SELECT code FROM findings", ["first-2"])) == 1
