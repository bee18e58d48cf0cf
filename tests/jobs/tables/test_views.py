"""The views beside the tables give the same rows in all programs that read them."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import make_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from jobs import entry
from jobs.commands import tables_command
from jobs.runtime.session import Session
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_tables import Tables, arrow_table, key_of, run_rows
from jobs.tables.past_runs import History
from jobs.tables.table_care import tables_under
from schemas.first_day import FirstDay, Retention, StartMoment, TimersOfDay
from schemas.table_views import VIEWS
from schemas.tables import TABLES
from tests.support.delta_readers import READERS, wrong
from tests.support.handmade import samples

NO_SESSION: Any = None
DAY = (
    *(f"first_day_{name}" for name in ("segments", "messages", "timers_lost", "timers_never", "registers")),
    "first_day_at >= TIMESTAMP '2026-11-26 02:00:00'",
)
COLUMNS = {
    "runs_latest": ("store", "run_id", "exit_code", "answer", "steps", *DAY),
    "findings_latest": ("store", "run_id", "number", "code"),
    "stores": ("store", "runs", "run_id", "exit_code", "answer", "steps", "last_consistent_at IS NULL", "verdict", *DAY),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three nights; the last has one store alone, and a fourth was stopped before its rows of `runs`."""
    place = str(tmp_path_factory.mktemp("views") / "it's")
    damaged, calm = replace(samples.damaged(), name="a"), samples.clean()
    moment = StartMoment(round(datetime(2026, 11, 26, 2, tzinfo=UTC).timestamp() * 1000))
    gone = Retention(72, "04", ("commitlog/0",), ("commitlog/1", "commitlog/2"), messages=7, timers_lost=None)
    calm = replace(calm, first_day=FirstDay(moment, gone, TimersOfDay(never=2), registers=False))
    for night, outcomes in enumerate(([calm], [damaged, calm], [replace(calm, name="a")], [damaged])):
        run = replace(samples.RUN, run_id=f"n{night}", started_at=samples.RUN.started_at + timedelta(days=night))
        for name, rows in run_rows(run, outcomes).items():
            if rows and not (name == "runs" and night == 3):
                log = DeltaLog(NO_SESSION, f"file:{place}/{name}", TABLES[name])
                log.replace_run(run.run_id, [log.write_file(run.run_id, arrow_table(rows, TABLES[name]), "2026-11")])
    return place


def in_process(place: str, view: str) -> list[tuple[Any, ...]]:
    names = [f"c{number}" for number in range(len(COLUMNS[view]))]
    select = ", ".join(f"{part} AS {name}" for part, name in zip(COLUMNS[view], names, strict=True))
    rows: list[Any] = History(place).query(make_dataclass("Row", names), f"SELECT {select} FROM {view}")
    return sorted(tuple(getattr(row, name) for name in names) for row in rows)


def test_a_row_is_of_the_latest_run(place: str) -> None:
    assert [row[:4] for row in in_process(place, "runs_latest")] == [("a", "n2", 0, "start"), ("calm", "n1", 0, "start")]
    assert [row[-6:] for row in in_process(place, "stores")] == [(3, 7, None, 2, False, True)] * 2
    assert {row[:2] for row in in_process(place, "findings_latest")} <= {("a", "n2"), ("calm", "n1")}
    assert [row[:3] for row in in_process(place, "stores")] == [("a", 2, "n2"), ("calm", 2, "n1")]


@pytest.mark.parametrize("view", VIEWS)
def test_duckdb_makes_the_same_of_what_the_command_writes(place: str, view: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["tables", "views", "--tables", place]) == 0
    written = capsys.readouterr().out
    assert (
        f"-- CREATE OR REPLACE TEMP VIEW runs AS SELECT * FROM delta_scan('{place.replace(chr(39), chr(39) * 2)}/runs');"
        in written
    )
    base = duckdb.connect()
    for name in ("runs", "findings"):
        base.register(name, DeltaTable(f"{place}/{name}").to_pyarrow_table())
    base.execute(written)
    assert sorted(base.execute(f"SELECT {', '.join(COLUMNS[view])} FROM {view}").fetchall()) == in_process(place, view)
    assert entry.main(["tables", "views", "--tables", place, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["views"] == VIEWS


@pytest.mark.spark
@pytest.mark.parametrize("view", VIEWS)
def test_spark_makes_the_same(spark_session: Session, place: str, view: str, capsys: pytest.CaptureFixture[str]) -> None:
    tables = Tables(spark_session, place)
    assert sorted(map(tuple, tables.read(view).selectExpr(*COLUMNS[view]).collect())) == in_process(place, view)
    assert entry.main(["tables", "views", "--tables", place]) == 0
    for name in ("runs", "findings"):
        tables.read(name).createOrReplaceTempView(name)
    for statement in filter(str.strip, re.sub("--.*", "", capsys.readouterr().out).split(";")):
        spark_session.spark.sql(statement)
    again = spark_session.spark.table(view).selectExpr(*COLUMNS[view]).collect()
    assert sorted(map(tuple, again)) == in_process(place, view)


def differing(spark_session: Session, place: Path) -> list[Any]:
    """What the readers do not agree on: each view, Spark too, and filters on each column."""
    runs = DeltaTable(place / "runs").to_pyarrow_table()
    newest = runs.group_by("store").aggregate([("started_at", "max")]).to_pylist()
    wanted = {name: in_process(str(place), name) for name in VIEWS}
    found: list[Any] = []
    if {row[0] for row in wanted["runs_latest"]} != {row["store"] for row in newest} or len(wanted["stores"]) != len(newest):
        found.append(("pyarrow", newest))
    base = duckdb.connect()
    for name in ("runs", "findings"):
        base.register(name, DeltaTable(place / name).to_pyarrow_dataset())
    for name, select in VIEWS.items():
        base.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {select}")
        rows = base.execute(f"SELECT {', '.join(COLUMNS[name])} FROM {name}").fetchall()
        spark_rows = Tables(spark_session, str(place)).read(name).selectExpr(*COLUMNS[name]).collect()
        if not sorted(rows) == sorted(map(tuple, spark_rows)) == wanted[name]:
            found.append((name, rows, spark_rows, wanted[name]))
    for name in ("runs", "findings"):
        table = DeltaTable(place / name)
        found += [(name, *each) for reader in READERS for each in wrong(table, reader(table), 1)]
    return found


@pytest.mark.spark
@pytest.mark.parametrize("nights", [4, pytest.param(40, marks=pytest.mark.soak)])
def test_nights_of_three_stores_by_two_writers_at_once(spark_session: Session, tmp_path: Path, nights: int) -> None:
    place, outcomes = tmp_path / "tables", [samples.lacking(samples.damaged()), samples.clean(), samples.not_audited()]

    def write(first: int) -> None:
        tables = Tables(spark_session, str(place))
        for night in range(first, nights, 2):
            began = samples.RUN.started_at + timedelta(days=night)
            tables.write_run(replace(samples.RUN, run_id=f"n{night}", started_at=began, finished_at=began), outcomes)

    with ThreadPoolExecutor(2) as writers:
        list(writers.map(write, (0, 1)))
    assert len(in_process(str(place), "stores")) == 3
    assert {row[:3] for row in in_process(str(place), "stores")} == {
        (name, nights, f"n{nights - 1}") for name in (key_of(outcome) for outcome in outcomes)
    }
    assert differing(spark_session, place) == []
    tables_command.compact(tables_under(str(place)))
    assert differing(spark_session, place) == []
