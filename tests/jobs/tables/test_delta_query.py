"""SQL over a Delta table without Spark: the current columns, hostile texts, and sentences where there is no table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from jobs.tables.delta_query import BySpark, DeltaQuery, one_of, text
from jobs.tables.table_files import TablesFailed

HOSTILE = "it's \\' OR 1=1 --\n\u202e"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two runs' rows, each a file of its own."""
    place = f"{tmp_path}/a b#?ü/runs"
    for run_id, store in (("r1", "a"), ("r2", HOSTILE)):
        rows = {
            "run_id": [run_id, run_id],
            "store": [store, "z"],
            "started_at": [datetime(2026, 11, 22, tzinfo=UTC), None],
            "count": [2, 3],
        }
        write_deltalake(place, pa.table(rows), partition_by=["run_id"], mode="append")
    return place


def test_rows_of_the_columns_that_are_asked_for(table: str) -> None:
    query = DeltaQuery(table)
    assert query.exists()
    rows = query.ask(["store", "count", "younger"], 'ORDER BY "run_id", "count"')
    assert rows == [
        {"store": "a", "count": 2, "younger": None},
        {"store": "z", "count": 3, "younger": None},
        {"store": HOSTILE, "count": 2, "younger": None},
        {"store": "z", "count": 3, "younger": None},
    ]


def test_times_are_microseconds(table: str) -> None:
    rows = DeltaQuery(f"file:{table}").ask(["started_at"], "WHERE run_id = 'r1'")
    assert rows == [{"started_at": 1_795_305_600_000_000}, {"started_at": None}]


@pytest.mark.parametrize(
    ("values", "found"), [((HOSTILE,), ["r2"]), (("a", HOSTILE), ["r1", "r2"]), ((), []), (("' OR '1'='1",), [])]
)
def test_a_text_is_compared_as_it_is(table: str, values: tuple[str, ...], found: list[str]) -> None:
    rows = DeltaQuery(table).ask(
        ["run_id", 'sum("count") AS "count"'], f"WHERE {one_of('store', values)} GROUP BY run_id ORDER BY run_id"
    )
    assert rows == [{"run_id": run_id, "count": 2} for run_id in found]


def test_where_there_is_no_table(table: str, tmp_path: Path) -> None:
    assert not DeltaQuery(f"{tmp_path}/nothing").exists()
    assert not DeltaQuery(str(tmp_path)).exists()
    (tmp_path / "begun" / "_delta_log").mkdir(parents=True)
    assert not DeltaQuery(f"{tmp_path}/begun").exists()


def test_what_cannot_be_read_is_a_sentence(table: str, tmp_path: Path) -> None:
    for file in Path(table).glob("run_id=r1/*"):
        file.write_bytes(b"no Parquet")
    with pytest.raises(TablesFailed, match=r"^table .*: .*Parquet"):
        DeltaQuery(table).ask(["store"])
    for name in ("a%20b", "a\\b", "a\nb", "a\x7fb"):
        Path(f"{tmp_path}/{name}/_delta_log").mkdir(parents=True)
        with pytest.raises(TablesFailed, match="'%', a backslash or a control character in its name"):
            DeltaQuery(f"{tmp_path}/{name}")
    with pytest.raises(TablesFailed, match=r"^table nosuch://x/runs: .*scheme"):
        DeltaQuery("nosuch://x/runs")


@pytest.mark.spark
@pytest.mark.parametrize("value", [HOSTILE, "/data/new\\night", "/data/copy\\", "\\' OR 1=1 --", "it's"])
def test_spark_takes_a_text_as_it_is(spark: SparkSession, value: str) -> None:
    """Spark reads backslashes as escapes, and names in double quotes as texts unless it is told."""
    asked = BySpark(spark)._spark
    assert asked.sql(f'SELECT "a" FROM (SELECT {text(value)} AS a)').collect()[0].a == value
    assert asked.conf.get("spark.sql.ansi.enabled") == "true"
