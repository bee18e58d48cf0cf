"""Every column of every table and dataset, asked of several readers: none skips a file in which the row is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from jobs.commands import tables_command
from jobs.runtime.session import Session
from jobs.tables import delta_rs_log
from jobs.tables.datasets import DatasetPlan, scan_and_write
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_tables import Tables, arrow_table, run_rows
from jobs.tables.file_statistics import FileStatistics
from jobs.tables.table_care import tables_under
from schemas.tables import DATASETS, RUN_ID, STORE, TABLES
from store_io.audit.audit_store import StoreAudit
from store_io.log.scan.segment_scan import SegmentTask
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support.delta_readers import IS_NULL, READERS, Count, by_dataset_of, wrong, wrong_in_spark
from tests.support.handmade import samples
from tests.support.stores.builders import Message, Sizes, StoreBuilder

NO_SESSION: Any = None
FIRST = datetime(2026, 10, 24, 2, 15, 0, 123_456, UTC)  # no whole millisecond


def write(place: Path, night: int) -> None:
    """A run as an audit writes it: an outcome of each kind, and a few datasets."""
    began = FIRST + timedelta(days=night)
    run = replace(samples.RUN, run_id=f"night-{night:02}", started_at=began, finished_at=began)
    outcomes = [samples.lacking(samples.damaged()), samples.clean(), samples.not_audited()][: 1 + night % 3]
    for name, rows in run_rows(run, outcomes).items():
        log = DeltaLog(NO_SESSION, f"file:{place}/{name}", TABLES[name])
        file = [log.write_file(run.run_id, arrow_table(rows, TABLES[name]), f"{began:%Y-%m}")] if rows else []
        log.replace_run(run.run_id, file)
    if night % 10 == 0:
        write_datasets(place, run.run_id, place.parent / f"store-{night}")


def write_datasets(place: Path, run_id: str, root: Path) -> None:
    builder = StoreBuilder("5.4.0", Sizes(segment=1 << 16), batch_topics=["batch"], lmq=True)
    for number in range(6):
        builder.put(
            Message(
                "主题",
                number % 3,
                b"%d" % number,
                tags="标签🚀" if number % 2 else None,
                keys=f"a\t\"{number}'\\ ü \U0010ffff",
                uniq=f"U{number}",
            )
        )
        builder.put(
            Message("batch", 1, b"inner", uniq=f"B{number}", inner_count=1 + number % 4, keys="k" * 5000 if number == 3 else None)
        )
        builder.put(Message("lite", 2, b"l", lmq=("%LMQ%one",), keys="\U0010ffff" * 40 if number == 5 else None))
    store = builder.write(root)
    audit = StoreAudit(AuditRequest("s", StoreLocation(str(root)), "5.4.0", store.broker_conf))
    plan = DatasetPlan(str(place), run_id, tuple(DATASETS))
    written = [scan_and_write(task, plan, "s").files for task in audit.first_tasks() if isinstance(task, SegmentTask)]
    for name, columns in DATASETS.items():
        log = DeltaLog(NO_SESSION, f"file:{place}/{name}", columns, (RUN_ID, STORE))
        log.replace_run(run_id, [files[name] for files in written])


def all_wrong(place: Path, most: int, readers: Sequence[Callable[[DeltaTable], Count]] = READERS) -> list[Any]:
    found: list[Any] = []
    for folder in sorted(place.iterdir()):
        table = DeltaTable(folder)
        for reader in readers:
            found += [(folder.name, reader.__name__, *each) for each in wrong(table, reader(table), most)]
    return found


def wrong_in_most(place: Path, most: int) -> list[Any]:
    """Of all tables by one reader, and of a table and a dataset by all of them."""
    found = all_wrong(place, most, [by_dataset_of])
    for name in ("runs", "messages"):
        table = DeltaTable(place / name)
        found += [(name, reader.__name__, *each) for reader in READERS for each in wrong(table, reader(table), most)]
    return found


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights of two months, and more than a table's log has between two checkpoints. Nobody changes them."""
    place = tmp_path_factory.mktemp("nights") / "tables"
    for night in range(12):
        write(place, night)
    return place


def as_before(self: FileStatistics, _: Iterable[str]) -> dict[str, Any]:
    """What earlier versions wrote."""
    known = {name: ends for name, ends in (self.bounds or {}).items() if name in ("run_id", "run_started_at", "phy_offset")}
    least, most = ({name: ends[end] for name, ends in known.items()} for end in (0, 1))
    return {"numRecords": self.rows, "minValues": least, "maxValues": most, "nullCount": {}}


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("five") / "tables"
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(FileStatistics, "in_log", as_before)
        for night in range(5):
            write(place, night)
    return place


@pytest.fixture
def older(five: Path, tmp_path: Path) -> Path:
    """Five nights of an earlier version."""
    return Path(shutil.copytree(five, tmp_path / "tables"))


def version(place: Path, name: str) -> int:
    return int(DeltaTable(place / name).version())


def mend(place: Path, name: str, most: int = 32) -> int:
    return DeltaLog(NO_SESSION, f"file:{place}/{name}", TABLES[name]).mend_statistics(most)


@pytest.mark.parametrize("most", [2, pytest.param(99, marks=pytest.mark.soak)], ids=["some values", "all values"])
def test_after_one_audit(most: int, tmp_path: Path) -> None:
    write(tmp_path / "tables", 0)
    assert {folder.name for folder in (tmp_path / "tables").iterdir()} == {*TABLES, *DATASETS}
    assert all_wrong(tmp_path / "tables", most) == []


def test_after_many_nights_and_after_compaction(nights: Path, tmp_path: Path) -> None:
    assert wrong_in_most(nights, 1) == []
    before = {name: version(nights, name) for name in (*TABLES, *DATASETS)}
    assert [mend(nights, name) for name in TABLES] == [0] * len(TABLES)
    shutil.copytree(nights, tmp_path / "tables")
    tables_command.compact(tables_under(str(tmp_path / "tables")))
    assert len(DeltaTable(tmp_path / "tables/runs").file_uris()) == 2  # months
    assert wrong_in_most(tmp_path / "tables", 1) == []
    assert {name: version(nights, name) for name in before} == before


def test_tables_of_an_earlier_version_are_mended_by_compact(older: Path) -> None:
    assert {name for name, *_ in all_wrong(older, 2, [by_dataset_of])} == {*TABLES, *DATASETS}
    tables_command.compact(tables_under(str(older)))
    assert wrong_in_most(older, 2) == []
    before = version(older, "messages")
    tables_command.compact(tables_under(str(older)))
    assert version(older, "messages") == before


def test_the_next_audits_mend_so_many_files_each(older: Path) -> None:
    rows, runs = (DeltaTable(older / "runs").to_pyarrow_table() for _ in range(2))
    assert rows.num_rows == 9
    asked = [mend(older, "runs", 2) for _ in range(4)]
    assert asked == [2, 2, 1, 0] and version(older, "runs") == 4 + 3
    table = DeltaTable(older / "runs")
    assert wrong(table, by_dataset_of(table)) == [] and len(table.file_uris()) == 5
    assert (
        table.to_pyarrow_table()
        .sort_by([("run_id", "ascending"), ("store", "ascending")])
        .equals(runs.sort_by([("run_id", "ascending"), ("store", "ascending")]))
    )


def test_a_file_that_another_writer_takes_out_meanwhile_does_not_come_back(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = delta_rs_log.statistics_in

    def slowly(file: pq.ParquetFile) -> FileStatistics:
        with monkeypatch.context() as undisturbed:
            undisturbed.setattr(delta_rs_log, "statistics_in", real)
            DeltaTable(older / "runs").delete("run_id = 'night-01'")
        return real(file)

    monkeypatch.setattr(delta_rs_log, "statistics_in", slowly)
    with pytest.raises(CommitFailedError):
        mend(older, "runs")
    assert DeltaTable(older / "runs").to_pyarrow_table().num_rows == 7
    monkeypatch.setattr(delta_rs_log, "statistics_in", real)
    assert mend(older, "runs") == 4 and DeltaTable(older / "runs").to_pyarrow_table().num_rows == 7


def test_a_file_that_is_gone_stays_as_it_is_and_the_others_are_mended(older: Path) -> None:
    table = DeltaTable(older / "runs")
    os.unlink(older / "runs" / table.get_add_actions(flatten=True)["path"][0].as_py())
    assert mend(older, "runs") == 4 and mend(older, "runs") == 0


def test_a_column_that_is_younger_than_a_file_is_null_in_it(tmp_path: Path) -> None:
    columns_now = TABLES["plan_steps"]
    fewer = [column for column in columns_now if column.name != "action"]
    for run_id, columns in (("a", fewer), ("b", columns_now)):
        log = DeltaLog(NO_SESSION, f"file:{tmp_path}/plan_steps", columns)
        rows = arrow_table([{"store": "s", "number": 1}], columns)
        log.replace_run(run_id, [log.write_file(run_id, rows, "2026-11")])
    assert mend(tmp_path, "plan_steps") == 1  # that of before the column
    table = DeltaTable(tmp_path / "plan_steps")
    assert by_dataset_of(table)("action", IS_NULL) == 2 and wrong(table, by_dataset_of(table)) == []
    log = DeltaLog(NO_SESSION, f"file:{tmp_path}/plan_steps", fewer)
    log.replace_run("c", [log.write_file("c", arrow_table([{"store": "s"}], fewer), "2026-11")])  # by an older program
    table = DeltaTable(tmp_path / "plan_steps")
    assert by_dataset_of(table)("action", IS_NULL) == 3 and mend(tmp_path, "plan_steps") == 0


# ---- Spark, as a reader and as a writer ----------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("one_in", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_spark_finds_every_row(one_in: int, spark_session: Session, nights: Path) -> None:
    for name in ("plan_steps", "messages"):
        assert wrong_in_spark(spark_session.spark, nights / name, 1, one_in) == [], name


@pytest.mark.spark
def test_an_audit_mends_what_spark_has_written_anew(spark_session: Session, older: Path) -> None:
    spark_session.spark.sql(f"DELETE FROM delta.`{older}/messages` WHERE queue_id = 1")  # Spark writes no bounds of flags
    tables = Tables(spark_session, str(older))
    tables.write_run(replace(samples.RUN, run_id="now"), [samples.damaged()])
    assert wrong_in_most(older, 2) == []


@pytest.mark.spark
def test_spark_as_the_writer_leaves_statistics_out(
    spark_session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.tables.delta_log.delta_rs_misreads", lambda place: True)
    log = DeltaLog(spark_session, f"file:{tmp_path}/runs", TABLES["runs"])
    rows = arrow_table(run_rows(samples.RUN, [samples.damaged(), samples.clean()])["runs"], TABLES["runs"])
    for run_id in ("a", "b", "a"):
        log.replace_run(run_id, [log.write_file(run_id, rows, "2026-11")])
    assert log.mend_statistics(2) == 0
    table = DeltaTable(tmp_path / "runs")
    assert table.to_pyarrow_table().num_rows == 4 and len(table.file_uris()) == 2
    assert [wrong(table, reader(table)) for reader in READERS] == [[]] * 4
    assert wrong_in_spark(spark_session.spark, tmp_path / "runs", 1, 5) == []  # the four above have asked everything
