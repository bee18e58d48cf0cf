"""Rows without Spark: conditions mean what they mean to Spark, options what they mean to `read`, and no JVM starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs import sources
from jobs.runtime import setup as environment
from jobs.sources import copies
from jobs.sources.conditions import Condition
from jobs.sources.plain_where import plain_conditions
from schemas.sources import SOURCES
from schemas.tables import Column
from store_io.base.errors import NotAStore, StoreError, UsageError
from tests.support.answers.lost_messages import damaged_store
from tests.support.failing_reads import REQUESTS, failing_calls

RELEASE = "5.3.3"
KNOWN: dict[str, Column] = {column.name: column for column in SOURCES["messages"]}
SAME = [
    ("messages", "topic = 'T1' AND queue_id=1"),
    ("messages", "Topic in ('T0', 'T2') and keys LIKE '%k1%'"),
    ("messages", "msg_id IN ('U1','U2','nobody') and phy_offset >= 0 AND phy_offset < 3000"),
    ("messages", "tags >= 'g1' AND `topic` == 'T0' AND keys LIKE '% all%'"),
    ("messages", "queue_offset BETWEEN 1 AND 2 AND topic > 'T0'"),
    ("messages", "delay_level > 0"),
    ("messages", "total_size <= 9223372036854775807 AND unique_key = 'it''s'"),
    ("consumequeue", "topic = 'T2' AND queue_offset > 0"),
    ("index", "phy_offset < 2000 AND number > 2"),
    ("extents", "kind = 'message'"),
    ("offsets", "`group` IN ('g0', 'g1') AND lag > 2"),
    ("transactions", "unique_key = 'half1' AND state = 'open'"),
]


@pytest.mark.spark
@pytest.mark.parametrize(("source", "condition"), SAME)
def test_the_rows_are_those_that_spark_gives(spark: SparkSession, store: str, source: str, condition: str) -> None:
    table = sources.arrow(store, source=source, where=condition, release=RELEASE).read_all()
    frame = sources.read(spark, source, store, release=RELEASE)
    wanted = [row.asDict() for row in frame.where(condition).drop("properties", "store_time", "born_time").collect()]
    assert table.column_names == frame.columns
    found = table.drop_columns([name for name in ("properties", "store_time", "born_time") if name in table.column_names])
    assert sorted(found.to_pylist(), key=str) == sorted(wanted, key=str)


def test_what_a_condition_asks_is_not_among_the_columns_and_nothing_else_is_read(store: str) -> None:
    reader = sources.arrow(store, columns="tags,topic", where="unique_key = 'U7' AND queue_id = 1", release=RELEASE)
    assert reader.schema == pa.schema([("tags", pa.string()), ("topic", pa.string())])
    assert reader.read_all().to_pylist() == [{"tags": "g3", "topic": "T1"}]
    assert sources.arrow(store, where="topic = 'nobody'", release=RELEASE).read_all().num_rows == 0


def test_several_stores_and_what_is_concealed(store: str) -> None:
    both = [store, store + "/."]
    every = sources.arrow(store, release=RELEASE).read_all().num_rows
    rows = sources.arrow(both, columns="store,topic", where=f"store = '{store}'", release=RELEASE).read_all()
    assert set(rows.column("store").to_pylist()) == {store} and rows.num_rows == every
    hidden = sources.arrow(store, columns="keys", redact="hide", where="keys LIKE '%hidden%'", release=RELEASE).read_all()
    assert set(hidden.column("keys").to_pylist()) == {"(hidden)"} and hidden.num_rows == 30


def test_what_a_start_would_lose(tmp_path: Path) -> None:
    root, text, _ = damaged_store(tmp_path / "store")
    (tmp_path / "broker.conf").write_text(text, encoding="utf-8")
    named: dict[str, Any] = {"release": RELEASE, "broker_conf": tmp_path / "broker.conf", "columns": "phy_offset,lost"}
    every = sources.arrow(root, **named).read_all().to_pylist()
    lost = sources.arrow(root, lost=True, **named).read_all().to_pylist()
    assert lost and lost == [row for row in every if row["lost"] is not None]


def test_other_libraries_take_the_stream(store: str) -> None:
    messages = sources.arrow(store, columns="topic,total_size", release=RELEASE)
    found = duckdb.sql("SELECT topic, count(*) FROM messages WHERE topic LIKE 'T%' GROUP BY ALL ORDER BY ALL").fetchall()
    assert messages is not None and found == [("T0", 10), ("T1", 10), ("T2", 10)]
    assert len(sources.arrow(store, columns="topic", release=RELEASE).read_pandas()) == 33


def test_a_read_that_fails_ends_the_stream(store: str) -> None:
    def rows() -> int:
        return int(sources.arrow(store, columns="topic", release=RELEASE).read_all().num_rows)

    with failing_calls([Path(store)], REQUESTS) as calls:
        whole = rows()
    with failing_calls([Path(store)], REQUESTS, calls.count - 1), pytest.raises(StoreError, match="commitlog"):
        rows()
    assert rows() == whole == 33


def test_no_jvm_starts(store: str) -> None:
    words = (
        "import sys; from jobs import sources; from pyspark import SparkContext;"
        f"n = sources.arrow({store!r}, columns='topic', release='5.3.3').read_all().num_rows; print(n, SparkContext._gateway)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, cwd=environment.ROOT, timeout=300)
    assert done.stdout.strip() == "33 None", done.stderr


def test_conditions() -> None:
    assert plain_conditions("topic = 'a' AND Queue_Offset between -1 and 3 and keys like '%it''s AND%'", KNOWN) == (
        Condition("EqualTo", "topic", ("a",)),
        Condition("GreaterThanOrEqual", "queue_offset", (-1,)),
        Condition("LessThanOrEqual", "queue_offset", (3,)),
        Condition("StringContains", "keys", ("it's AND",)),
    )


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("", "without Spark it takes COLUMN ="),
        ("topic", "without Spark"),
        ("topic = 'a' OR topic = 'b'", "without Spark"),
        ("topic = 'a' AND", "without Spark"),
        ("topic = 'a", "without Spark"),
        (r"topic = 'a\'", "without Spark"),
        ("topic LIKE 'a%'", "without Spark"),
        ("keys LIKE '%a_b%'", "without Spark"),
        ("NOT topic = 'a'", "without Spark"),
        ("phy_offset > 1.5", "without Spark"),
        ("phy_offset >= 1e3", "without Spark"),
        ("topic = 'a'; DROP TABLE b", "without Spark"),
        ("nothing = 1", "column 'nothing': the columns are store, file,"),
        ("queue_id = '1'", "queue_id has whole numbers"),
        ("phy_offset >= -9223372036854775809", "a number of phy_offset is beyond 64 bits"),
        (f"phy_offset >= {'9' * 5000}", "without Spark"),
        ("topic IN ('a', 1)", "topic has texts"),
        ("store_time > 5", "store_time has timestamp"),
        ("lost = 'cut'", "depends on the release"),
    ],
)
def test_what_it_cannot_read_is_told_in_a_sentence(store: str, where: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as told:
        sources.arrow(store, where=where)
    assert "\n" not in str(told.value)


def test_a_place_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStore):
        sources.arrow(tmp_path / "gone")
    with pytest.raises(UsageError, match="source 'x'"):
        sources.arrow(tmp_path, source="x")


def test_a_folder_beside_a_copy_that_is_not_the_copys_stays(tmp_path: Path) -> None:
    (tmp_path / "copy.unfinished").mkdir()
    (tmp_path / "copy.unfinished" / "precious").touch()
    source: Any = SimpleNamespace(schema=lambda: None)
    with pytest.raises(StoreError, match=r"copy\.unfinished: File exists"):
        copies._write(Any, source, str(tmp_path / "copy"), "parquet", (), None)  # type: ignore[arg-type]
    assert (tmp_path / "copy.unfinished" / "precious").exists()
