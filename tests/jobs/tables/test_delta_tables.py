"""The Delta tables: whole runs, repeated runs, interrupted runs, several writers, odd places."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from jobs.report.values_as_rows import micros_of
from jobs.runtime.session import Session
from jobs.tables import delta_tables as tables_module
from jobs.tables import table_care
from jobs.tables.datasets import DatasetPlan, by_dataset, scan_and_write
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_tables import RUNS, Tables, arrow_table, run_rows
from jobs.tables.table_care import KeptRun
from jobs.tables.table_files import TablesFailed
from schemas.outcome import Outcome
from schemas.tables import DATASETS, MONTH, RUN_ID, TABLES, Table
from store_io.audit.audit_store import StoreAudit
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.stores.builders import Message, StoreBuilder

pytestmark = pytest.mark.spark


def outcomes() -> list[Outcome]:
    return [samples.lacking(samples.damaged()), samples.clean(), samples.not_audited()]


def stores_in(tables: Tables) -> int:
    history = tables.history()
    return 0 if history is None else len(history.rows("SELECT store FROM runs"))


MONTH_OF_RUN = samples.RUN.started_at.strftime("%Y-%m")


def run(run_id: str) -> Any:
    return replace(samples.RUN, run_id=run_id)


def log_content(place: Path) -> dict[str, list[str]]:
    """Table -> its rows as sorted text, by a plain replay of the log: a second witness, and far quicker than Spark."""
    found: dict[str, list[str]] = {}
    for table in sorted(p for p in place.iterdir() if (p / "_delta_log").exists()):
        files: dict[str, dict[str, str]] = {}
        for version in sorted((table / "_delta_log").glob("*.json")):
            for line in version.read_text().splitlines():
                action = json.loads(line)
                if "add" in action:
                    files[action["add"]["path"]] = action["add"]["partitionValues"]
                if "remove" in action:
                    del files[action["remove"]["path"]]
        rows = [{**row, **values} for path, values in files.items() for row in pq.ParquetFile(table / path).read().to_pylist()]
        found[table.name] = sorted(json.dumps(row, default=str) for row in rows)
    return found


def test_what_is_written_is_read_back(spark_session: Session, tmp_path: Path) -> None:
    tables = Tables(spark_session, str(tmp_path))
    tables.write_run(run("a"), outcomes())
    wanted = {
        name: [{"run_id": "a", **row, "month": MONTH_OF_RUN} for row in arrow_table(rows, TABLES[name]).to_pylist()]
        for name, rows in run_rows(run("a"), outcomes()).items()
    }
    assert log_content(tmp_path) == {name: sorted(json.dumps(row, default=str) for row in rows) for name, rows in wanted.items()}
    for name in ("segments", RUNS):  # structs in arrays, a timestamp
        frame = tables.read(name)
        found = [row.asDict(True) for row in frame.collect()]
        for row in [*wanted[name], *found]:
            for column, value in row.items():
                if isinstance(value, datetime):
                    row[column] = value.replace(tzinfo=None)
        assert sorted(found, key=str) == sorted(wanted[name], key=str), name
        assert {f.name: f.metadata["comment"] for f in frame.schema} == {
            c.name: c.comment for c in (*TABLES[name], RUN_ID, MONTH)
        }
        assert spark_session.spark.sql(f"DESCRIBE DETAIL delta.`{tmp_path}/{name}`").first()["description"] == TABLES[name].about


def test_without_copies_to_compare_their_table_is_not_made(spark_session: Session, tmp_path: Path) -> None:
    tables = Tables(spark_session, str(tmp_path))
    tables.write_run(run("a"), [samples.clean()])
    assert set(log_content(tmp_path)) == set(TABLES) - {"replica_parts"}
    assert tables.read("replica_parts").isEmpty()
    tables.write_run(run("a"), outcomes())
    assert len(log_content(tmp_path)["replica_parts"]) == 2
    tables.write_run(run("a"), [samples.clean()])
    assert log_content(tmp_path)["replica_parts"] == []


def test_nothing_is_there_before_the_first_run(spark_session: Session, tmp_path: Path) -> None:
    tables = Tables(spark_session, str(tmp_path / "none"))
    for name in [*TABLES, *DATASETS]:
        assert tables.read(name).isEmpty()
        assert RUN_ID.name in tables.read(name).columns
    assert not (tmp_path / "none").exists()


def test_a_repeated_run_takes_the_place_of_the_first(spark_session: Session, tmp_path: Path) -> None:
    once, twice = Tables(spark_session, str(tmp_path / "once")), Tables(spark_session, str(tmp_path / "twice"))
    for tables in (once, twice):
        tables.write_run(run("other"), outcomes())
    twice.write_run(run("a"), [*outcomes(), samples.refused()])
    for tables in (once, twice):
        tables.write_run(run("a"), outcomes())
    rows = log_content(tmp_path / "once")
    assert rows == log_content(tmp_path / "twice")
    assert len(rows[RUNS]) == 6 and set(rows) == set(TABLES)


class Killed(Exception):
    pass


def test_a_run_killed_anywhere_is_not_seen_and_can_be_repeated(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = Tables(spark_session, str(tmp_path / "undisturbed"))
    undisturbed.write_run(run("before"), outcomes())
    undisturbed.write_run(run("a"), outcomes())
    wanted = log_content(tmp_path / "undisturbed")
    real = DeltaLog.replace_run
    for stop in (1, 3, 6):  # commits of the repeated run before it is killed
        place = tmp_path / str(stop)
        tables = Tables(spark_session, str(place))
        tables.write_run(run("before"), outcomes())
        tables.write_run(run("a"), [samples.refused()])
        calls: list[DeltaLog] = []

        def replace_run(log: DeltaLog, run_id: str, files: Any, stop: int = stop, calls: list[DeltaLog] = calls) -> None:
            if len(calls) == stop:
                raise Killed
            calls.append(log)
            real(log, run_id, files)

        with monkeypatch.context() as dying:
            dying.setattr(tables_module, "ThreadPoolExecutor", lambda count: ThreadPoolExecutor(1))
            dying.setattr(DeltaLog, "replace_run", replace_run)
            with pytest.raises(Killed):
                tables.write_run(run("a"), outcomes())
        assert len(calls) == stop
        runs = log_content(place)[RUNS]
        assert len(runs) == 3 and all('"run_id": "before"' in row for row in runs)
        if stop == 3:
            assert {row["run_id"] for row in tables.read("segments").collect()} == {"before"}
        tables.write_run(run("a"), outcomes())
        assert log_content(place) == wanted


def test_after_some_runs_their_small_files_are_put_together(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_care, "MANY_FILES", 3)
    tables = Tables(spark_session, str(tmp_path))
    for number in range(3):
        tables.write_run(run(f"r{number}"), [samples.clean()])
    assert len(DeltaTable(tmp_path / "segments").file_uris()) == len(DeltaTable(tmp_path / RUNS).file_uris()) == 1
    assert stores_in(tables) == 3

    def fails(*_: object) -> None:
        raise OSError("a full disk")

    monkeypatch.setattr(table_care, "_compact", fails)
    for number in range(3, 6):
        tables.write_run(run(f"r{number}"), [samples.clean()])
    assert stores_in(tables) == 6


def test_writers_of_other_runs_do_not_disturb_each_other(spark_session: Session, tmp_path: Path) -> None:
    def write(number: int) -> None:
        tables = Tables(spark_session, str(tmp_path))
        for _ in range(2):
            tables.write_run(run(f"run-{number}"), [samples.clean()])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    rows = log_content(tmp_path)
    assert {name: len(found) for name, found in rows.items() if found} == {"segments": 4, "plan_steps": 4, "runs": 4}


def test_writers_by_spark_do_not_disturb_each_other(spark_session: Session, tmp_path: Path) -> None:
    place = tmp_path / "a%20b"

    def write(run_id: str) -> None:
        table = Segments(spark_session, place)
        for _ in range(2):
            table.write(run_id)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(write, "abc"))
    assert Segments(spark_session, place).runs() == ["a", "b", "c"]
    live = {row["store"] for row in map(json.loads, log_content(tmp_path)["a%20b"])}
    assert live == {"a", "b", "c"} and len(list(place.rglob("month=*/*.parquet"))) >= 3
    assert not list(place.rglob("month=*/part-????????-*.parquet"))  # what Spark has read and written anew


@pytest.mark.parametrize("name", ["run_id=z/a b%20`'ü\\c\nd", "run_id=z/a b#?[x]{y}*`'ü&="], ids=["Spark", "delta-rs"])
def test_odd_places_and_moved_tables(spark_session: Session, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "TABLES", {table: TABLES[table] for table in ("segments", RUNS)})  # Spark takes its time
    place = tmp_path / name
    tables = Tables(spark_session, str(place))
    tables.write_run(run("b"), [samples.clean()])
    tables.write_run(run("b"), [samples.clean()])
    history = tables.history()
    assert history is not None
    row = {"run_id": "b", "store": samples.clean().name, "started_at": micros_of(samples.RUN.started_at)}
    statement = "SELECT run_id, store, started_at FROM runs"
    assert history.rows(statement) == history.rows(statement, ["b"]) == history.rows(statement, stores=[row["store"]]) == [row]
    assert [run.month for run in history.runs(KeptRun)] == [MONTH_OF_RUN]
    assert tables.read(RUNS).count() == 1
    shutil.move(place, tmp_path / "elsewhere")
    assert Tables(spark_session, f"file://{tmp_path}/elsewhere/").read(RUNS).count() == 1
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "run_id=z"}


# ---- what delta-rs cannot do, and races ----------------------------------------------------------------------------


class Segments:
    """The table `segments` alone, with one row for each run."""

    def __init__(self, started: Session, place: Path):
        self.place = place
        self.log = DeltaLog(started, f"file:{place}", TABLES["segments"])

    def write(self, run_id: str) -> None:
        rows = arrow_table([{"store": run_id, "file": "0"}], TABLES["segments"])
        self.log.replace_run(run_id, [self.log.write_file(run_id, rows)])

    def runs(self) -> list[str]:
        rows = self.log.frame().select("run_id", "store").collect()
        return sorted(row["run_id"] for row in rows if row["run_id"] == row["store"])

    def newest(self) -> str:
        """Who wrote the newest version."""
        lines = max((self.place / "_delta_log").glob("*.json")).read_text().splitlines()
        (info,) = [action["commitInfo"] for action in map(json.loads, lines) if "commitInfo" in action]
        return str(info.get("engineInfo") or info.get("clientVersion"))


@pytest.mark.parametrize("error", [OSError(1, "Operation not permitted"), DeltaError("Generic LocalFileSystem error")])
def test_where_delta_rs_cannot_commit_spark_does(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    healthy = Segments(spark_session, tmp_path / "later")
    healthy.write("a")
    assert "delta-rs" in healthy.newest()
    monkeypatch.setattr("deltalake.transaction.create_table_with_add_actions", fails)
    monkeypatch.setattr("deltalake.DeltaTable.create_write_transaction", fails)
    for table in (Segments(spark_session, tmp_path / "new"), healthy):
        table.write("b")
        table.write("a")
        assert "Apache-Spark" in table.newest()
        assert table.runs() == ["a", "b"]


def test_a_table_that_delta_rs_cannot_read_is_read_by_spark(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise DeltaError("a reader feature")

    Segments(spark_session, tmp_path).write("a")
    monkeypatch.setattr("deltalake.DeltaTable.__init__", fails)
    table = Segments(spark_session, tmp_path)
    assert table.log.exists() and table.log.has_run("a") and not table.log.has_run("b") and table.runs() == ["a"]


def test_a_feature_that_delta_rs_does_not_write_is_no_race(spark_session: Session, tmp_path: Path) -> None:
    Segments(spark_session, tmp_path).write("a")
    version = tmp_path / "_delta_log/00000000000000000000.json"
    actions = {key: value for line in version.read_text().splitlines() for key, value in json.loads(line).items()}
    actions["commitInfo"]["inCommitTimestamp"] = 1
    actions["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}
    actions["metaData"]["configuration"] = {"delta.enableInCommitTimestamps": "true"}
    version.write_text("".join(json.dumps({key: value}) + "\n" for key, value in actions.items()))
    table = Segments(spark_session, tmp_path)
    table.write("b")
    assert table.runs() == ["a", "b"] and "Apache-Spark" in table.newest()


def test_a_race_is_tried_again_and_told_where_it_is_lost(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = Segments(spark_session, tmp_path), Segments(spark_session, tmp_path)
    table.write("a")
    real, lost = DeltaTable.create_write_transaction, iter(range(9))

    def quicker(*given: Any, **more: Any) -> None:
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(DeltaTable, "create_write_transaction", real)
            other.write(f"other{next(lost)}")
        raise CommitFailedError("a version is there")

    monkeypatch.setattr("jobs.tables.delta_log._ATTEMPTS", 3)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", quicker)
    with pytest.raises(TablesFailed, match=r"^table file:.*: other writers were quicker 3 times: ") as failure:
        table.write("b")
    assert failure.value.exit_code == 3 and next(lost) == 3
    monkeypatch.setattr(DeltaTable, "create_write_transaction", real)
    table.write("b")
    assert "delta-rs" in table.newest() and len(table.runs()) == 5


def test_a_table_of_an_earlier_version_gets_the_columns_that_it_lacks(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        fewer = {
            name: Table(table.about, *(c for c in table if c.name not in ("next", "settings") and not c.ms))
            for name, table in TABLES.items()
        }
        earlier.setattr(tables_module, "TABLES", fewer)
        earlier.setattr(
            tables_module,
            "arrow_table",
            lambda rows, columns: arrow_table(rows, TABLES_NOW[name_of(columns)]).select([c.name for c in columns]),
        )
        Tables(spark_session, str(tmp_path)).write_run(run("old"), outcomes())
    tables = Tables(spark_session, str(tmp_path))
    tables.write_run(run("new"), outcomes())
    findings = tables.read("findings")
    assert {(row["run_id"], row["next"] is None) for row in findings.collect()} == {("old", True), ("new", False)}
    comments = {f.name: f.metadata.get("comment") for f in findings.schema}
    assert comments["next"] == "What to do about it."
    assert [len(row["settings"] or ()) for row in tables.read(RUNS).orderBy("run_id", "store").collect()] == [3, 0, 3, 0, 0, 0]


TABLES_NOW = dict(TABLES)


def name_of(columns: Any) -> str:
    """The table that has all of these columns."""
    names = {c.name for c in columns}
    return next(name for name, now in TABLES_NOW.items() if names <= {c.name for c in now})


def test_very_many_rows_are_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"store": "s", "topic": f"T{n}", "queue_id": n, "files": [{"file": "f"}] * (n % 7)} for n in range(60)]
    whole = arrow_table(rows, TABLES["queues"])
    assert [table.equals(whole) for table in tables_module._arrow_tables(rows, TABLES["queues"])] == [True]
    monkeypatch.setattr(tables_module, "_INSIDE_TOGETHER", 10)
    monkeypatch.setattr(tables_module, "_FILE_BYTES", 5000)
    several = list(tables_module._arrow_tables(iter(rows), TABLES["queues"]))
    assert len(several) > 2 and pa.concat_tables(several).equals(whole)
    assert not list(tables_module._arrow_tables([], TABLES["queues"]))


def test_a_place_that_cannot_be_written_is_told_in_a_sentence(spark_session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TablesFailed, match="file"):
        Tables(spark_session, str(tmp_path / "file")).write_run(run("a"), outcomes())
    with pytest.raises(TablesFailed) as failure:
        Tables(spark_session, "nowhere://bucket/tables")
    assert "\n" not in str(failure.value) and failure.value.exit_code == 3


def test_the_log_needs_nothing_but_the_oldest_reader(spark_session: Session, tmp_path: Path) -> None:
    tables = Tables(spark_session, str(tmp_path))
    tables.write_run(run("a"), outcomes())
    log = (tmp_path / "runs/_delta_log/00000000000000000000.json").read_text().splitlines()
    (protocol,) = [json.loads(line)["protocol"] for line in log if "protocol" in line[:12]]
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    segments = DeltaLog(spark_session, str(tmp_path / "segments"), TABLES["segments"])
    for number in range(11):  # over a checkpoint
        rows = arrow_table([{"store": "s", "file": str(number)}], TABLES["segments"])
        segments.replace_run(f"r{number}", [segments.write_file(f"r{number}", rows)])
    assert list((tmp_path / "segments/_delta_log").glob("*.checkpoint.parquet"))
    assert spark_session.spark.read.format("delta").load(segments.uri).count() == 14
    spark_session.spark.sql(f"DELETE FROM delta.`{tmp_path}/runs` WHERE run_id = 'a'")
    assert tables.read("findings").count() == 0


def test_two_writers_in_turns_make_checkpoints(spark_session: Session, tmp_path: Path) -> None:
    """Another writer's version may take the number that this writer's version would have had."""
    one, other = (DeltaLog(spark_session, f"file:{tmp_path}/segments", TABLES["segments"]) for _ in range(2))
    rows = arrow_table([{"store": "s", "file": "0"}], TABLES["segments"])
    one.replace_run("first", [one.write_file("first", rows)])
    for night in range(6):
        assert one.by_rs is not None
        seen = one.by_rs.newest()
        other.replace_run(f"other-{night}", [other.write_file(f"other-{night}", rows)])
        one.by_rs.commit(seen, f"one-{night}", [one.write_file(f"one-{night}", rows)])
    assert list((tmp_path / "segments/_delta_log").glob("*.checkpoint.parquet"))
    assert spark_session.spark.read.format("delta").load(one.uri).count() == 13


# ---- datasets ------------------------------------------------------------------------------------------------------


def test_datasets_are_committed_with_their_run_and_go_with_it(spark_session: Session, tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3")
    for number in range(50):
        builder.put(Message("t", number % 2, b"x" * number, tags="tag", keys=f"k{number}", uniq=f"u{number}"))
    store = builder.write(tmp_path / "store")
    audit = StoreAudit(AuditRequest("s%2F", StoreLocation(str(store.root)), "5.3.3", store.broker_conf))
    tasks = [task for task in audit.first_tasks() if isinstance(task, SegmentTask)]
    tables = Tables(spark_session, str(tmp_path / "tables"))

    def write(run_id: str, store_name: str) -> list[Any]:
        plan = DatasetPlan(tables.uri, run_id, tuple(DATASETS))
        return [scan_and_write(task, plan, store_name).files for task in tasks]

    tables.write_run(run("a"), [samples.clean()], by_dataset([*write("a", "s%2F"), *write("a", "other")]))
    write("b", "never committed")
    tables.write_run(run("b"), [samples.clean()])
    for name, per_store in (("messages", 50), ("consumequeue", 50), ("index", 100)):
        frame = tables.read(name)
        counts = {(row["run_id"], row["store"]): row["count"] for row in frame.groupBy("run_id", "store").count().collect()}
        assert counts == {("a", "s%2F"): per_store, ("a", "other"): per_store}, name
        comments = {f.name: f.metadata.get("comment") for f in frame.schema}
        assert all(comments[c.name] == c.comment for c in DATASETS[name])
    one = (
        tables.read("messages")
        .where("store = 's%2F' and phy_offset >= 0 and topic = 't' and queue_id = 1")
        .orderBy("queue_offset")
    )
    assert [row["queue_offset"] for row in one.collect()] == list(range(25))
    tables.write_run(run("a"), [samples.clean()], by_dataset(write("a", "s%2F")))
    assert len(log_content(tmp_path / "tables")["index"]) == 100
    tables.write_run(run("a"), [samples.clean()])
    rows = log_content(tmp_path / "tables")
    assert {name: len(rows[name]) for name in (*DATASETS, RUNS)} == {"messages": 0, "consumequeue": 0, "index": 0, "runs": 2}


def test_rows_that_fit_no_schema_are_refused_before_anything_is_written(spark_session: Session, tmp_path: Path) -> None:
    wrong = samples.clean()
    alter(wrong, segments=[{"file": "commitlog/0", "size_bytes": "many"}])
    with pytest.raises((pa.ArrowException, TypeError)):
        Tables(spark_session, str(tmp_path)).write_run(run("a"), [wrong])
    assert Tables(spark_session, str(tmp_path)).read(RUNS).count() == 0
