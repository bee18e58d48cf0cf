"""Several questions to one frame or view, and conditions that `read` takes over: always the rows that Spark alone would find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import sources
from jobs.sources.file_sources import ConsumeQueueSource, ExtentsSource, IndexSource
from jobs.sources.group_sources import OffsetsSource, TransactionsSource
from jobs.sources.message_source import MessagesSource
from jobs.sources.store_source import StoreSource
from store_io.base.errors import StoreError, UsageError
from tests.support.stores.rocksdb_stores import keyed_store

pytestmark = pytest.mark.spark

SPARKS_SETTING = "spark.sql.python.filterPushdown.enabled"
ASKED: dict[type[StoreSource], str] = {
    MessagesSource: "topic",
    ConsumeQueueSource: "queue_id",
    IndexSource: "phy_offset",
    ExtentsSource: "phy_offset",
    OffsetsSource: "group",
    TransactionsSource: "queue_offset",
}
"""Every source, and a column on which it takes conditions over."""


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Sets Spark's own setting, as a user may have it."""
    yield lambda value: spark.conf.set(SPARKS_SETTING, value)
    spark.conf.unset(SPARKS_SETTING)
    sources.register(spark)


def load(spark: SparkSession, kind: type[StoreSource], store: str, **options: str) -> DataFrame:
    return spark.read.format(kind.name()).options(release="5.3.3", **options).load(store)


def wrong_answers(spark: SparkSession, kind: type[StoreSource], store: str, **options: str) -> list[str]:
    """Ask one frame, and one view of another, several questions: what is answered wrongly."""
    column = ASKED[kind]
    by_value = Counter(row[column] for row in load(spark, kind, store, **options).select(column).collect())
    (value, number), (other, another) = sorted(by_value.items())[0], sorted(by_value.items())[-1]
    every = by_value.total()
    assert value != other and number < every > another
    frame = load(spark, kind, store, **options)
    found = {"part": frame.where(F.col(column) == value).count(), "all": frame.count()}
    load(spark, kind, store, **options).createOrReplaceTempView("asked")
    part = f"(SELECT `{column}` AS c FROM asked WHERE `{column}` = '{value}')"
    views = {
        "view, part": f"SELECT count(*) FROM {part}",
        "view, all": "SELECT count(*) FROM asked",
        "view, another part": f"SELECT count(*) FROM asked WHERE `{column}` = '{other}'",
        "view, by a function": f"SELECT count(*) FROM asked WHERE length(CAST(`{column}` AS string)) > 0",
        "union": f"SELECT count(*) FROM ({part} UNION ALL SELECT `{column}` FROM asked)",
        "join": f"SELECT count(*) FROM asked LEFT JOIN (SELECT DISTINCT * FROM {part}) ON `{column}` = c",
        "anti-join": f"SELECT count(*) FROM asked LEFT ANTI JOIN {part} ON `{column}` = c",
    }
    answers = spark.sql("SELECT " + ", ".join(f"({question})" for question in views.values())).collect()[0]
    found |= dict(zip(views, answers, strict=True))
    right = {"part": number, "all": every, "another part": another, "union": number + every, "anti-join": every - number}
    wanted = {name: right.get(name.removeprefix("view, "), every) for name in found}
    return [f"{kind.__name__}, {name}: {found[name]}, not {wanted[name]}" for name in found if found[name] != wanted[name]]


@pytest.mark.parametrize("kind", ASKED)
def test_one_frame_answers_several_questions(
    spark: SparkSession, store: str, setting: Callable[[str], None], kind: type[StoreSource]
) -> None:
    sources.register(spark)
    setting("true")  # the grave case: by default Spark hands nothing over
    assert wrong_answers(spark, kind, store) == []
    if kind is MessagesSource:
        assert wrong_answers(spark, kind, store, pushdown="true") == []


def test_one_frame_of_queues_in_rocksdb_answers_several_questions(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str], None]
) -> None:
    sources.register(spark)
    setting("true")
    made = keyed_store(tmp_path / "store").write()
    assert wrong_answers(spark, ConsumeQueueSource, str(made.root)) == []
    frame = sources.read(spark, "consumequeue", made.root, where="topic = 'Topic1' AND queue_offset >= 10", release="5.3.3")
    assert frame.count() == sum(topic == "Topic1" and number >= 10 for topic, _, number in made.entries) > 0
    (made.root / "consumequeue" / "CURRENT").write_text("MANIFEST-900000\n")
    with pytest.raises(AnalysisException, match=r"consumequeue/MANIFEST-900000: RocksDB cannot read it"):
        load(spark, ConsumeQueueSource, str(made.root))
    with pytest.raises(StoreError, match=r"^consumequeue/MANIFEST-900000: RocksDB cannot read it"):
        sources.read(spark, "consumequeue", made.root, release="5.3.3")


def test_spark_hands_over_conditions_only_if_it_keeps_questions_apart(
    spark: SparkSession, store: str, setting: Callable[[str], None]
) -> None:
    """If this fails with a new PySpark that answers all rightly, `right_with_pushed` may name it."""
    taking: Any = type(
        "MessagesSource",
        (MessagesSource,),
        {"right_with_pushed": frozenset({pyspark.__version__}), "__module__": MessagesSource.__module__},
    )
    spark.dataSource.register(taking)
    setting("true")
    wrong = wrong_answers(spark, MessagesSource, store, pushdown="true")
    sources.register(spark)  # the usual ones
    assert (not wrong) == (pyspark.__version__ in StoreSource.right_with_pushed), wrong


def test_no_setting_of_a_session_is_changed(spark: SparkSession, store: str, tmp_path: Path) -> None:
    def settings() -> set[tuple[str, str]]:
        return {(row["key"], row["value"]) for row in spark.sql("SET").collect()}

    before = settings()
    sources.register(spark)
    sources.read(spark, "messages", store, where="topic = 'T1'", release="5.3.3").count()
    sources.keep(spark, store, tmp_path / "copy", columns="topic,store_time,total_size", release="5.3.3")
    sources.traffic(spark, store, release="5.3.3").count()
    sources.lag(spark, store, release="5.3.3").count()
    assert settings() == before


# ---- where -----------------------------------------------------------------------------------------------------------

WHERE = [
    ("messages", "topic = 'T1' AND queue_id = 1", 5),
    ("messages", "Topic IN ('T0', 'T2') AND keys LIKE '%k1%' AND tags <> 'g0'", 5),
    ("messages", "unique_key = 'U7' OR unique_key = 'U8'", 2),
    ("messages", "unique_key = 'U7' AND phy_offset >= 0 AND rand() >= 0", 1),
    ("messages", "msg_id IN ('U1', 'U2', 'nobody') AND length(topic) = 2", 2),
    ("messages", "store_time >= timestamp'1970-01-02' AND NOT topic LIKE 'RMQ%'", 30),
    ("messages", "queue_offset BETWEEN 1 AND 2 AND topic = 'T0'", 4),
    ("messages", "topic = 'T0' AND topic = 'T1'", 0),
    ("messages", "1 = 0", 0),
    ("messages", "true", 33),
    ("consumequeue", "topic = 'T2' AND queue_offset > 0 AND queue_id = '1'", 4),
    ("offsets", "`group` IN ('g0', 'g1') AND lag > 2", 2),
    ("offsets", "kind = 'delay'", 0),
    ("transactions", "unique_key = 'half1' AND state = 'open'", 1),
]


@pytest.fixture(scope="module")
def rows_of(spark_session: Any, store: str) -> Callable[[str], DataFrame]:
    """All rows of a source, read once, in the session itself."""

    @cache
    def made(source: str) -> DataFrame:
        spark: SparkSession = spark_session.spark
        frame = sources.read(spark, source, store, release="5.3.3")
        return spark.createDataFrame(frame.collect(), frame.schema)

    return made


@pytest.mark.parametrize(("source", "condition", "count"), WHERE)
def test_where_gives_the_rows_that_spark_gives(
    spark: SparkSession, store: str, rows_of: Callable[[str], DataFrame], source: str, condition: str, count: int
) -> None:
    frame = sources.read(spark, source, store, where=condition, release="5.3.3")
    rows, alone = frame.collect(), rows_of(source)
    assert frame.columns == alone.columns and len(rows) == count
    assert sorted(rows, key=str) == sorted(alone.where(condition).collect(), key=str)


def test_what_where_takes_over_is_not_read(spark: SparkSession, store: str) -> None:
    """A whole question costs as many tasks as it has segments left."""
    every = sources.read(spark, "messages", store, release="5.3.3")
    last = every.agg({"phy_offset": "max"}).collect()[0][0]
    one = sources.read(spark, "messages", store, where=f"phy_offset >= {last}", columns="topic", release="5.3.3")
    assert (one.rdd.getNumPartitions(), one.columns, one.count()) == (1, ["topic"], 1)
    assert every.rdd.getNumPartitions() > 1
    two = sources.read(spark, "messages", [store, store + "/."], where=f"store = '{store}'", release="5.3.3")
    assert two.count() == every.count()


def test_where_asks_columns_that_the_frame_does_not_have(spark: SparkSession, store: str, tmp_path: Path) -> None:
    asked = {"columns": "topic,tags", "where": "unique_key = 'U7' and queue_id = 1", "release": "5.3.3"}
    frame = sources.read(spark, "messages", store, **asked)
    assert frame.columns == ["topic", "tags"] and [tuple(row) for row in frame.collect()] == [("T1", "g3")]
    sources.keep(spark, store, tmp_path / "copy", columns="topic,tags,unique_key,queue_id", release="5.3.3")
    frame = sources.read(spark, "messages", store, **asked)
    assert len(frame.inputFiles()) > 0 and [tuple(row) for row in frame.collect()] == [("T1", "g3")]
    with pytest.raises(UsageError, match="option 'where'"):
        sources.keep(spark, store, tmp_path / "part", where="topic = 'T1'", release="5.3.3")


def test_lag_and_traffic_take_where(spark: SparkSession, store: str) -> None:
    assert {row["group"] for row in sources.lag(spark, store, where="`group` = 'g1'", release="5.3.3").collect()} == {"g1"}
    rows = sources.traffic(spark, store, per="day", where="queue_id = 0 and topic in ('T0', 'T1')", release="5.3.3").collect()
    assert sorted((row["topic"], row["messages"]) for row in rows) == [("T0", 5), ("T1", 5)]


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("nothing = 1", "`nothing` cannot be resolved"),
        ("topic = 'a", "Syntax error"),
        ("topic = 'a'; DROP TABLE b", "Syntax error"),
        ("", "empty statement"),
        ("topic", "is not a boolean"),
        ("1 / 0 = 1 AND topic = 'T0'", "Division by zero"),
        ("lost = 'cut'", "depends on the release"),
    ],
)
def test_a_condition_that_makes_no_sense_is_told_in_a_sentence(
    spark: SparkSession, store: str, condition: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence) as told:
        sources.read(spark, "messages", store, where=condition)
    assert "\n" not in str(told.value)
