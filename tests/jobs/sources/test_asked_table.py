"""Frames of `read` make the columns that a question asks, and its rows are those of a frame that makes all."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import sources
from jobs.runtime import source_notes
from jobs.sources import asked_table, helpers
from store_io.messages.open_store import most_rows
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import Message, Sizes, StoreBuilder

pytestmark = pytest.mark.spark

RELEASE = "5.3.3"
TEXTS = {"topic": ("T0", "T1", "T2", "nobody"), "tags": ("g0", "g1"), "unique_key": ("U7", "U8"), "keys": ("k3 all", "k1")}
NUMBERS = {"queue_id": 2, "queue_offset": 6, "phy_offset": 9000, "total_size": 300, "store_time_ms": 10}
COLUMNS = [*TEXTS, *NUMBERS]


class Questions:
    """Random questions in SQL to a view called {m}: with joins, windows, subqueries, functions in Python, unions."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def condition(self, alias: str, depth: int = 0) -> str:
        r = self.random
        if depth < 2 and r.random() < 0.4:
            glue = r.choice([" AND ", " OR ", " AND NOT "])
            return f"({self.condition(alias, depth + 1)}{glue}{self.condition(alias, depth + 1)})"
        if r.random() < 0.5:
            column = r.choice(list(TEXTS))
            texts = TEXTS[column]
            return r.choice([
                f"{alias}.{column} = '{r.choice(texts)}'",
                f"{alias}.{column} IN ('{r.choice(texts)}', '{r.choice(texts)}')",
                f"{alias}.{column} LIKE '%{r.choice(texts)[:1]}%'",
                f"{alias}.{column} IS NOT NULL",
                f"{alias}.{column} <=> NULL",
                f"asked_length({alias}.{column}) > 2",
                f"{alias}.{column} NOT IN (SELECT {column} FROM {{m}} WHERE {column} > '{r.choice(texts)}')",
            ])  # fmt: skip
        column = r.choice(list(NUMBERS))
        return f"{alias}.{column} {r.choice(['=', '<', '<=', '>', '>=', '<>'])} {r.randint(0, NUMBERS[column])}"

    def rows(self, depth: int = 0) -> tuple[str, list[str]]:
        """A relation in brackets, and its columns."""
        r = self.random
        if depth >= 2 or r.random() < 0.35:
            names = r.sample(COLUMNS, r.randint(1, 4))
            where = f" WHERE {self.condition('a')}" if r.random() < 0.6 else ""
            return f"(SELECT {', '.join(f'a.{name}' for name in names)} FROM {{m}} a{where})", names
        inner, names = self.rows(depth + 1)
        kind = r.choice(["union", "join", "semi", "window", "group", "scalar", "distinct", "limited"])
        name = r.choice(names)
        if kind == "union":
            return f"(SELECT {name} FROM {inner} UNION ALL SELECT {name} FROM {{m}} b WHERE {self.condition('b')})", [name]
        if kind == "join":
            how, more = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]), r.choice(COLUMNS)
            other = f"(SELECT * FROM {{m}} b WHERE {self.condition('b')})"
            return f"(SELECT x.{name}, y.{more} AS other FROM {inner} x {how} {other} y ON x.{name} = y.{name})", [name]
        if kind == "semi":
            how = r.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            other = f"(SELECT * FROM {{m}} b WHERE {self.condition('b')})"
            return f"(SELECT x.* FROM {inner} x {how} {other} y ON x.{name} = y.{name})", names
        if kind == "window":
            return f"(SELECT {name}, count(*) OVER (PARTITION BY {name}) AS n FROM {inner} x)", [name]
        if kind == "group":
            return f"(SELECT {name}, count(*) AS n FROM {inner} x GROUP BY {name} HAVING count(*) >= 1)", [name]
        if kind == "scalar":
            return f"(SELECT {name}, (SELECT max(phy_offset) FROM {{m}} c WHERE {self.condition('c')}) AS top FROM {inner} x)", [
                name
            ]
        if kind == "distinct":
            return f"(SELECT DISTINCT {name} FROM {inner} x)", [name]
        return f"(SELECT {name} FROM {inner} x ORDER BY {name} LIMIT 7)", [name]

    def question(self) -> str:
        rows, _ = self.rows()
        return f"SELECT {self.random.choice(['count(*)', '*', '*'])} FROM {rows} q"


@pytest.fixture(scope="module")
def views(peoples_spark: SparkSession, store: str) -> Iterator[SparkSession]:
    """Views of the same rows: asked, which makes what it is asked for, and whole, of rows that were read once."""
    spark = peoples_spark
    spark.udf.register("asked_length", lambda text: None if text is None else len(text), "int")
    frame = sources.read(spark, "messages", store, release=RELEASE)
    frame.createOrReplaceTempView("asked")
    spark.createDataFrame(frame.collect(), frame.schema).createOrReplaceTempView("whole")
    yield spark
    spark.catalog.dropTempView("asked")
    spark.catalog.dropTempView("whole")


def sorted_rows(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(8, 400))])
def test_random_questions_to_one_view(views: SparkSession, seed: int) -> None:
    question = Questions(seed).question()
    assert sorted_rows(views.sql(question.format(m="asked"))) == sorted_rows(views.sql(question.format(m="whole"))), question


def asked_of(frame: DataFrame) -> list[list[str]]:
    """The columns of each scan of a question, as its plan has them."""
    return [sorted(re.findall(r"(\w+):", columns)) for columns in re.findall(r"BatchScan .*? struct<(.*?)>", plan_of(frame))]


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_each_place_of_a_question_asks_for_its_own(spark: SparkSession, store: str) -> None:
    frame = sources.read(spark, "messages", store, release=RELEASE)
    part = frame.where("topic = 'T1'").select("queue_id")
    assert asked_of(part) == [["queue_id", "topic"]]
    assert asked_of(part.union(frame.select("total_size"))) == [["queue_id", "topic"], ["total_size"]]
    assert asked_of(frame.groupBy().count()) == [["position"]]
    assert asked_of(frame.select(F.length("keys"))) == [["keys"]]
    assert "EqualTo, topic, [T1]" in plan_of(part)
    frame.createOrReplaceTempView("asked_here")
    assert asked_of(spark.sql("SELECT max(store_time) FROM asked_here")) == [["store_time"]]
    both = sources.read(spark, "messages", [store, store + "/."], release=RELEASE)
    assert both.count() == 2 * frame.count()
    assert {row[0] for row in both.where(f"store = '{store}'").select("store").collect()} == {store}


def test_a_small_store_is_broadcast_in_a_join(spark: SparkSession, store: str, tmp_path: Path) -> None:
    spark.range(40).selectExpr("concat('T', id % 4) AS topic", "id").write.parquet(str(tmp_path / "known"))
    known = spark.read.parquet(str(tmp_path / "known"))
    messages = sources.read(spark, "messages", store, release=RELEASE)
    joined = known.join(messages.select("topic", "queue_id"), "topic", "left")
    plain = joined.hint("merge", "topic")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", 100_000)
    try:
        assert "BroadcastHashJoin" in plan_of(joined) and asked_of(joined) == [["queue_id", "topic"]]
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", 1000)
        sorted_one = known.join(messages.select("topic", "queue_id"), "topic", "left")
        assert "SortMergeJoin" in plan_of(sorted_one)
        wanted = sorted_rows(sorted_one)
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    assert sorted_rows(plain) == sorted_rows(joined) == wanted and len(wanted) > 300


def test_sizes_follow_the_columns_and_are_bounds(spark: SparkSession, store: str, tmp_path: Path) -> None:
    def size(frame: DataFrame) -> int:
        return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

    for name in helpers._BY_NAME:
        frame = sources.read(spark, name, store, release=RELEASE)
        most = most_rows(StoreLocation(store), name)
        assert most is not None and frame.count() <= most
        assert size(frame.groupBy().count()) < size(frame) < 1 << 30
    (tmp_path / "commitlog").mkdir()
    assert most_rows(StoreLocation(str(tmp_path)), "messages") is None  # a store that may be elsewhere: not known
    assert size(sources.read(spark, "messages", tmp_path, release=RELEASE)) > 1 << 60


def test_a_cached_frame_holds_all_its_columns(spark: SparkSession, store: str) -> None:
    frame = sources.read(spark, "messages", store, columns="topic,tags,queue_id", release=RELEASE)
    wanted = sorted_rows(frame)
    cached = frame.where("queue_id = 0").cache()
    try:
        assert cached.count() == len([row for row in frame.collect() if row["queue_id"] == 0])
        assert sorted_rows(cached) == sorted_rows(frame.where("queue_id = 0"))
        assert sorted_rows(frame) == wanted
    finally:
        cached.unpersist()


def test_the_frame_is_as_sparks_own_reader_makes_it(spark: SparkSession, store: str) -> None:
    for source in helpers._BY_NAME:
        frame = sources.read(spark, source, store, release=RELEASE)
        alone = spark.read.format(f"rocketmq.{source}").options(release=RELEASE).load(store)
        assert frame.schema == alone.schema and sorted_rows(frame) == sorted_rows(alone)


def test_what_is_lost_is_sought_only_if_it_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    builder = StoreBuilder(RELEASE, Sizes(segment=1 << 12))
    builder.put(Message("T", body=b"x"))
    root = builder.write(tmp_path / "store").root
    frame = sources.read(spark, "messages", root, columns="topic,lost", release=RELEASE)
    assert asked_of(frame.groupBy("topic").count()) == [["topic"]] and frame.count() == 1
    assert frame.collect()[0]["lost"] is None


def test_in_another_session_all_columns_are_made_and_that_is_said_once(
    spark: SparkSession, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(_: Any) -> None:
        raise AttributeError("another Spark")

    monkeypatch.setattr(source_notes, "_said", set())
    monkeypatch.setattr(asked_table, "_constructor", other)
    for _ in range(2):
        assert sources.read(spark, "messages", store, release=RELEASE).count() == 33
    assert capsys.readouterr().err.count("each question makes all 37 columns; name few, by columns=") == 1
    frame = sources.read(spark, "messages", store, columns="tags", where="unique_key = 'U7'", release=RELEASE)
    assert [tuple(row) for row in frame.collect()] == [("g3",)]
    assert capsys.readouterr().err == ""


def test_conditions_come_with_times_in_ms(spark: SparkSession, store: str) -> None:
    frame = sources.read(spark, "messages", store, release=RELEASE)
    when = "store_time >= timestamp'1970-01-01 00:00:00.002' AND queue_id IN (0, 1) AND inner_batch = false"
    plan = plan_of(frame.where(when))
    assert "[GreaterThanOrEqual, store_time, [2]]" in plan and "[In, queue_id, [0, 1]]" in plan and "[EqualTo, inner" not in plan
