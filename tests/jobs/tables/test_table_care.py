"""prune, compact and vacuum on real tables, beside writers and readers; by delta-rs alone, without Spark."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from jobs import entry
from jobs.commands import tables_command
from jobs.report.past_views import PrunedTable
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_query import DeltaQuery
from jobs.tables.delta_rs_log import live_files
from jobs.tables.delta_tables import arrow_table
from jobs.tables.table_care import TableCare, tables_under
from jobs.tables.table_files import TablesFailed
from schemas.tables import MONTH, RUN_ID, TABLES

NO_SESSION: Any = None  # only Spark and the kernel need one
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def night(number: int) -> datetime:
    """When the run of so many nights ago began."""
    return NOW - timedelta(days=number)


def write(place: Path, run_id: str, began: datetime, stores: int = 2, whole: bool = True) -> None:
    """A run as an audit writes it, smaller. whole: with its rows in `runs`."""
    of_runs = {"started_at": began, "level": "full", "messages": 5, "log_end": int(began.timestamp())}
    rows: dict[str, list[dict[str, Any]]] = {
        "segments": [
            {"store": f"s{store}", "file": f"commitlog/{n}", "extents": []} for store in range(stores) for n in range(3)
        ],
        "queues": [{"store": f"s{store}", "topic": "t", "queue_id": 0, "files": []} for store in range(stores)],
    }
    if whole:
        rows["runs"] = [{"store": f"s{store}", **of_runs} for store in range(stores)]
    for name, own in rows.items():
        log = DeltaLog(NO_SESSION, f"file:{place}/{name}", TABLES[name])
        log.replace_run(run_id, [log.write_file(run_id, arrow_table(own, TABLES[name]), began.strftime("%Y-%m"))])


def make_old(place: Path, days: int = 30) -> None:
    """All files of the folder as if they had been written so many days ago."""
    then = time.time() - days * 86400
    for file in place.rglob("*"):
        os.utime(file, (then, then))


def runs_in(place: Path, name: str) -> dict[str, int]:
    """Run -> rows, by delta-rs."""
    rows = DeltaQuery(f"{place}/{name}").ask(["run_id", "count(*) AS n"], "GROUP BY run_id ORDER BY run_id")
    return {row["run_id"]: row["n"] for row in rows}


def months(place: Path) -> dict[str, str]:
    return {row["run_id"]: row["month"] for row in DeltaQuery(f"{place}/runs").ask(["run_id", "month"])}


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Runs of 40, 39, 38, 2, 1 and 0 nights ago, in two or three months."""
    for number in (40, 39, 38, 2, 1, 0):
        write(tmp_path / "tables", f"night-{99 - number}", night(number))
    return tmp_path / "tables"


def test_prune_takes_old_runs_out_of_all_tables(nights: Path) -> None:
    since = int(night(10).timestamp() * 1e6)
    shown = tables_command.prune(tables_under(str(nights)), since, None, NOW, dry_run=True)
    assert [run.run_id for run in shown.gone] == ["night-59", "night-60", "night-61"] and shown.needed == []
    assert {row.table: row.rows for row in shown.by_table} == {"runs": 6, "segments": 18, "queues": 6}
    assert len(runs_in(nights, "runs")) == len(runs_in(nights, "segments")) == 6
    done = tables_command.prune(tables_under(str(nights)), since, None, NOW)
    assert done.gone == shown.gone and done.by_table == shown.by_table
    kept = ["night-97", "night-98", "night-99"]
    assert list(runs_in(nights, "runs")) == list(runs_in(nights, "queues")) == kept
    assert runs_in(nights, "segments") == dict.fromkeys(kept, 6)
    again = tables_command.prune(tables_under(str(nights)), since, None, NOW)
    assert again.gone == [] and {row.rows for row in again.by_table} == {0}


def digests(place: Path) -> dict[str, bytes]:
    return {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}


def test_the_command(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        assert entry.main(["tables", *words, "--tables", str(nights)]) == 0
        return capsys.readouterr().out

    make_old(nights)
    before = digests(nights)
    assert "3 of 6 runs go; those stay that are among the 3 newest runs of a store" in (
        text := said("prune", "--keep-runs", "3", "--dry-run")
    )
    assert "  segments            18" in text and f"dry run: nothing in {nights} was changed" in text
    for words in ("compact --dry-run", "vacuum --dry-run", "vacuum --older-than 0h --alone --dry-run", "info"):
        assert ("dry run" in said(*words.split())) == (words != "info")
    assert digests(nights) == before
    view = json.loads(said("prune", "--keep-runs", "3", "--format", "json"))
    assert [run["run_id"] for run in view["gone"]] == ["night-59", "night-60", "night-61"] and not view["dry_run"]
    assert list(runs_in(nights, "runs")) == ["night-97", "night-98", "night-99"]
    assert json.loads(said("compact", "--format", "json"))["by_table"][0]["files"] == [3, 1]
    assert "  runs                  6" in said("vacuum", "--older-than", "0h", "--alone")
    assert said("info").splitlines()[4] == "3 runs, 2026-11-19 08:00:00 to 2026-11-21 08:00:00 UTC"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("prune", "needs --keep WHEN"),
        ("prune --keep soon", "a span"),
        ("prune --keep-runs 0", "from 1"),
        ("vacuum --older-than 6d", "say so with --alone"),
        ("vacuum --older-than 8d", "is over 7d, after which Delta's log forgets"),
        ("vacuum --older-than week --alone", "a span, such as 7d"),
        ("compact --keep 90d", "--keep does not go with tables compact"),
        ("info --dry-run", "--dry-run does not go with tables info"),
        ("tidy", "takes one of prune, compact, vacuum, info, views"),
        ("", "takes one of"),
    ],
)
def test_wrong_words_change_nothing(nights: Path, capsys: pytest.CaptureFixture[str], words: str, sentence: str) -> None:
    before = digests(nights)
    assert entry.main(["tables", *words.split(), "--tables", str(nights)]) == 2
    assert sentence in capsys.readouterr().err and digests(nights) == before


def test_what_is_no_table_or_elsewhere_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, sentence in (
        (str(tmp_path), "no audit's tables are there"),
        ("gs://bucket/tables", "only tables in a folder of this machine, in s3:// and in hdfs://"),
        (f"{tmp_path}/a%20b", "rename it"),
    ):
        assert entry.main(["tables", "info", "--tables", place]) == 3
        assert sentence in capsys.readouterr().err


def test_prune_of_runs_that_share_a_file(nights: Path) -> None:
    tables_command.compact(tables_under(str(nights)))
    since = int(night(39).timestamp() * 1e6)  # one of three runs of its month
    tables_command.prune(tables_under(str(nights)), since, None, NOW)
    assert list(runs_in(nights, "segments")) == ["night-60", "night-61", "night-97", "night-98", "night-99"]
    write(nights, "night-60", night(39), stores=5)  # and a run of a shared file is replaced
    assert runs_in(nights, "segments")["night-60"] == 15 and runs_in(nights, "runs")["night-60"] == 5
    assert runs_in(nights, "segments")["night-61"] == 6


def test_compact_puts_each_month_into_one_file_and_loses_nothing(nights: Path) -> None:
    before = {name: sorted(map(str, DeltaTable(nights / name).to_pyarrow_table().to_pylist())) for name in ("runs", "segments")}
    view = tables_command.compact(tables_under(str(nights)))
    assert [row.files for row in view.by_table] == [(6, 2)] * 3
    assert before == {name: sorted(map(str, DeltaTable(nights / name).to_pyarrow_table().to_pylist())) for name in before}
    assert {file.low for file in live_files(DeltaTable(nights / "runs"))} == {"night-59", "night-97"}
    view = tables_command.compact(tables_under(str(nights)))
    assert [row.files for row in view.by_table] == [(2, 2)] * 3


def test_an_audit_puts_many_small_files_of_its_month_together(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    month, before = night(0).strftime("%Y-%m"), runs_in(nights, "segments")
    cares = tables_under(str(nights))
    assert [care.compact_month(month) for care in cares] == [False] * 3  # they are few
    monkeypatch.setattr("jobs.tables.table_care.MANY_FILES", 3)
    assert [care.compact_month(month) for care in cares] == [True] * 3
    for care in cares:
        files = [file.values[MONTH.name] for file in care.live()]
        assert files.count(month) == 1 and len(files) == 4
    assert runs_in(nights, "segments") == before
    write(nights, "night-99", night(0), stores=5)  # a run in the shared file is repeated
    assert runs_in(nights, "segments")["night-99"] == 15


def test_of_two_writers_the_one_that_puts_files_together_gives_way(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.tables.table_care.MANY_FILES", 3)
    care = TableCare(f"{nights}/segments", "segments")
    stale = care._log.newest()
    write(nights, "night-99", night(0), stores=5)
    monkeypatch.setattr(care._log, "newest", lambda: stale)
    with pytest.raises(CommitFailedError):
        care.compact_month(night(0).strftime("%Y-%m"))
    assert runs_in(nights, "segments")["night-99"] == 15 and len(runs_in(nights, "segments")) == 6


def test_a_reader_and_a_writer_that_were_there_before_go_on(nights: Path) -> None:
    reader, writer = DeltaTable(nights / "segments"), DeltaTable(nights / "segments")
    tables_command.compact(tables_under(str(nights)))
    tables_command.prune(tables_under(str(nights)), int(night(10).timestamp() * 1e6), None, NOW)
    tables_command.vacuum(tables_under(str(nights)))
    assert reader.to_pyarrow_table().num_rows == 36
    log = DeltaLog(NO_SESSION, f"file:{nights}/segments", TABLES["segments"])
    assert log.by_rs is not None
    file = log.write_file("night-99", arrow_table([{"store": "s0", "file": "commitlog/0"}], TABLES["segments"]))
    newest, asked = DeltaTable(nights / "segments"), iter([writer])
    log.by_rs.newest = lambda: next(asked, DeltaTable(nights / "segments"))  # type: ignore[method-assign]
    log.replace_run("night-99", [file])  # it first looks at the files that the compaction has taken out
    assert runs_in(nights, "segments") == {"night-97": 6, "night-98": 6, "night-99": 1}
    assert newest.version() < DeltaTable(nights / "segments").version()


def test_a_change_is_made_anew_where_another_writer_was_quicker(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    care = TableCare(f"{nights}/segments", "segments")
    real, quicker = care._log.newest, iter(["a", "b"])

    def newest() -> Any:
        found = real()
        if (run_id := next(quicker, None)) is not None:
            write(nights, run_id, NOW)
        return found

    monkeypatch.setattr(care._log, "newest", newest)
    care.remove_runs(["night-59", "night-60"])
    monkeypatch.undo()
    assert list(runs_in(nights, "segments")) == ["a", "b", "night-61", "night-97", "night-98", "night-99"]


def test_vacuum_removes_what_no_version_has_and_nothing_else(nights: Path) -> None:
    tables_command.compact(tables_under(str(nights)))
    (nights / "runs/note.txt").write_text("somebody's")
    (nights / "runs/month=2026-11/part-stopped.parquet").write_text("a writer was stopped")
    view = tables_command.vacuum(tables_under(str(nights)))
    assert {row.files for row in view.by_table} == {0}  # all younger than seven days
    make_old(nights)
    shown = tables_command.vacuum(tables_under(str(nights)), 1, dry_run=True)
    assert [row.files for row in shown.by_table] == [1, 0, 0]  # the others were in a version an hour ago
    files = {file for file in nights.rglob("*.parquet") if "_delta_log" not in str(file)}
    view = tables_command.vacuum(tables_under(str(nights)), 0)
    assert [row.files for row in view.by_table] == [7, 6, 6]
    gone = files - {file for file in nights.rglob("*.parquet") if "_delta_log" not in str(file)}
    assert len(gone) == 19 and (nights / "runs/note.txt").exists()
    assert len(runs_in(nights, "segments")) == 6


def test_nothing_is_changed_where_a_link_leads_elsewhere(
    nights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_old(tmp_path, 90)  # so that the log's clean-up would take versions
    elsewhere = tmp_path / "elsewhere"
    for linked in ("queues", "segments/_delta_log", "segments/month=2026-11", "runs/_delta_log/00000000000000000000.json"):
        place, name = nights / linked, linked.split("/")[0]
        place.rename(elsewhere)
        place.symlink_to(elsewhere)
        before = digests(tmp_path)
        for words in ("compact", "prune --keep-runs 1", "vacuum --older-than 0h --alone"):
            assert entry.main(["tables", *words.split(), "--tables", str(nights)]) == 3
            assert f"{place} is a link" in capsys.readouterr().err
        care = TableCare(f"{nights}/{name}", name)
        for change in (partial(care.compact, {}), partial(care.remove_runs, ["night-59"]), partial(care.vacuum, [])):
            with pytest.raises(TablesFailed, match="is a link"):
                change()
        assert digests(tmp_path) == before
        place.unlink()
        elsewhere.rename(place)


def test_old_versions_leave_the_log_at_a_checkpoint(tmp_path: Path) -> None:
    log = DeltaLog(NO_SESSION, f"file:{tmp_path}", TABLES["replica_parts"])

    def write_runs(first: int, last: int) -> None:
        for run_id in (f"r{number}" for number in range(first, last + 1)):
            log.replace_run(run_id, [log.write_file(run_id, arrow_table([{"store": "s"}], TABLES["replica_parts"]))])

    write_runs(0, 10)
    assert len(list((tmp_path / "_delta_log").glob("*.json"))) == 11
    make_old(tmp_path, 40)
    write_runs(11, 20)
    left = sorted(int(file.stem) for file in (tmp_path / "_delta_log").glob("*.json"))
    assert left == list(range(10, 21)) and DeltaQuery(str(tmp_path)).ask(["count(*) AS rows"]) == [{"rows": 21}]
    make_old(tmp_path, 40)
    (tmp_path / "_delta_log").rename(tmp_path / "elsewhere")
    (tmp_path / "_delta_log").symlink_to(tmp_path / "elsewhere")
    write_runs(21, 30)  # the log is not this folder's: nothing is removed there
    assert len(list((tmp_path / "elsewhere").glob("*.json"))) == 21


def test_rows_of_a_writer_that_was_stopped_go_once_they_are_old(nights: Path) -> None:
    write(nights, "zz-stopped", night(20), whole=False)
    since = int(night(10).timestamp() * 1e6)
    assert tables_command.prune(tables_under(str(nights)), since, None, datetime.now(UTC)).by_table[1].unfinished_runs == []
    assert "zz-stopped" in runs_in(nights, "segments")
    later = datetime.now(UTC) + timedelta(days=8)
    view = tables_command.prune(tables_under(str(nights)), since, None, later)
    assert view.gone == [] and view.by_table[1] == PrunedTable("segments", 6, ["zz-stopped"])
    assert "zz-stopped" not in runs_in(nights, "segments") and len(runs_in(nights, "segments")) == 3


def test_a_table_by_runs_becomes_one_by_months(nights: Path) -> None:
    place = nights / "runs"
    by_run = place.parent / "old"
    rows = DeltaTable(place).to_pyarrow_table().drop_columns([MONTH.name])
    from deltalake import write_deltalake

    write_deltalake(by_run, rows, partition_by=[RUN_ID.name])
    care, began = TableCare(str(by_run), "runs"), datetime.now(UTC)
    care.compact({run_id: month for run_id, month in months(nights).items() if run_id != "night-59"})
    table = DeltaTable(by_run)
    assert table.metadata().partition_columns == [MONTH.name] and len(care.live()) == len(set(months(nights).values()))
    found = {row["run_id"]: row["month"] for row in DeltaQuery(str(by_run)).ask(["run_id", "month"])}
    assert found.pop("night-59") in {time.strftime("%Y-%m") for time in (began, datetime.now(UTC))}
    assert found == {run_id: month for run_id, month in months(nights).items() if run_id != "night-59"}
    assert table.schema().fields[0].name == RUN_ID.name


@pytest.mark.parametrize("prepared", [False, True], ids=["many files", "compacted"])
def test_duckdb_reads_the_files_that_the_log_names(nights: Path, prepared: bool) -> None:
    if prepared:
        tables_command.compact(tables_under(str(nights)))
        tables_command.prune(tables_under(str(nights)), int(night(39).timestamp() * 1e6), None, NOW)
    for name in ("runs", "segments", "queues"):
        files = DeltaTable(nights / name).file_uris()
        read = f"read_parquet({files}, hive_partitioning = true, union_by_name = true)"
        shape = {row[0]: row[1] for row in duckdb.sql(f"DESCRIBE SELECT * FROM {read}").fetchall()}
        assert set(shape) == {column.name for column in (*TABLES[name], RUN_ID, MONTH)}
        counted = duckdb.sql(f"SELECT run_id, count(*) FROM {read} GROUP BY run_id ORDER BY run_id").fetchall()
        assert dict(counted) == runs_in(nights, name)
        arrow = DeltaTable(nights / name).to_pyarrow_dataset()
        assert duckdb.from_arrow(arrow).aggregate("count(*)").fetchall() == [(sum(dict(counted).values()),)]
        assert pa.types.is_string(arrow.schema.field(MONTH.name).type)


def test_a_filter_on_a_months_or_a_runs_time_opens_no_other_file(tmp_path: Path) -> None:
    for number in (40, 1, 0):
        rows = arrow_table([{"store": "s", "code": "c", "run_started_at": night(number)}], TABLES["findings"])
        log = DeltaLog(NO_SESSION, f"file:{tmp_path}/findings", TABLES["findings"])
        log.replace_run(f"r{number}", [log.write_file(f"r{number}", rows, night(number).strftime("%Y-%m"))])
    gone = [file.path for file in live_files(DeltaTable(tmp_path / "findings")) if file.run_id() != "r0"]
    for name in gone:
        (tmp_path / "findings" / name).unlink()
    query = DeltaQuery(f"{tmp_path}/findings")
    when = f"arrow_cast('{night(0).isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
    assert query.ask(["run_id"], f"WHERE run_started_at >= {when}") == [{"run_id": "r0"}]
    with pytest.raises(TablesFailed):
        query.ask(["run_id"], f"WHERE run_started_at <= {when}")


def test_what_the_log_says_of_a_file(nights: Path) -> None:
    lines = (nights / "runs/_delta_log/00000000000000000000.json").read_text().splitlines()
    (added,) = [action["add"] for action in map(json.loads, lines) if "add" in action]
    assert added["partitionValues"] == {"month": night(40).strftime("%Y-%m")}
    statistics = json.loads(added["stats"])
    assert {end: statistics[end]["run_id"] for end in ("minValues", "maxValues")} == dict.fromkeys(
        ("minValues", "maxValues"), "night-59"
    )
    assert statistics["nullCount"]["run_id"] == 0 and statistics["nullCount"]["verdict"] == statistics["numRecords"] == 2
