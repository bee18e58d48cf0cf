"""The store as Spark data sources: the same rows as without Spark, and what is told of bad input."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from jobs import sources
from jobs.runtime import setup as environment
from jobs.runtime import source_notes
from jobs.sources import copies, helpers, read, register
from jobs.sources.conditions import Condition
from jobs.sources.copies import make_copy
from jobs.sources.file_sources import ConsumeQueueSource, ExtentsSource, IndexSource
from jobs.sources.group_sources import OffsetsSource, TransactionsSource
from jobs.sources.message_source import MessagesSource
from jobs.sources.store_source import StoreSource
from schemas.sources import SOURCES
from store_io.base.errors import NotAStore, StoreError, UsageError
from store_io.messages import question
from store_io.messages.choice import by_pieces
from tests.store_io.messages.test_message_rows import odd_store, plain, rows_of
from tests.support.answers.lost_messages import damaged_store
from tests.support.delta_readers import READERS, wrong, wrong_in_spark
from tests.support.failing_reads import REQUESTS, failing_calls
from tests.support.stores import builders
from tests.support.stores.builders import Message, Sizes, StoreBuilder
from tests.support.stores.corpus_tools import cases

spark_test = pytest.mark.spark


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(store, broker.conf) of a real one with queues of every kind."""
    (case,) = cases("g04-533-clean-all")
    root = case.unpack(tmp_path_factory.mktemp("real"))
    return root, root.parent / "broker.conf"


def key(row: dict[str, Any]) -> int:
    return int(row["phy_offset"])


NOON_MS = 1_795_176_000_000


def test_who_plans_a_question_loads_no_compiler() -> None:
    words = "import sys, jobs.sources.message_source; print({'llvmlite', 'numba', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, cwd=environment.ROOT, timeout=300)
    assert done.stdout.strip() == "set()", done.stderr


def test_a_stream_is_refused_in_a_sentence(real: tuple[Path, Path]) -> None:
    source = MessagesSource({"path": str(real[0])})
    reader = source.streamReader(source.schema())
    for ask in (reader.initialOffset, reader.getDefaultReadLimit, lambda: reader.read(InputPartition(None))):
        with pytest.raises(UsageError, match=r"rocketmq\.messages is no stream.*take spark\.read"):
            ask()


def test_a_session_of_many_cores_reads_a_segment_in_pieces(real: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_pieces, "LEAST_BYTES", 1 << 12)
    monkeypatch.setattr(by_pieces, "TASK_BYTES", 0)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=24))
    rows: list[list[Any]] = []
    for kind in (MessagesSource, helpers._for_cores(MessagesSource, spark)):
        source = pickle.loads(cloudpickle.dumps(kind({"path": str(real[0])})))
        source.cores = source.cores or 1
        reader: Any = source.reader(source.schema())
        parts = reader.partitions()
        assert len(parts) == 6 if source.cores == 1 else len(parts) > 12
        found = [row for part in parts for batch in pickle.loads(pickle.dumps(reader)).read(part) for row in batch.to_pylist()]
        rows.append(sorted(found, key=key))
        reader.take_over(Condition("EqualTo", "unique_key", ("u",)))
        assert len(reader.partitions()) == 6
    assert rows[0] == rows[1] and len(rows[0]) == 1702


def test_whole_segments_are_skipped_by_their_names(real: tuple[Path, Path]) -> None:
    source = MessagesSource({"path": str(real[0])})
    reader: Any = source.reader(source.schema())
    assert [part.value.file.start for part in reader.partitions()] == [131072 * i for i in range(6)]
    reader.take_over(Condition("GreaterThanOrEqual", "phy_offset", (200_000,)))
    reader.take_over(Condition("LessThan", "phy_offset", (262_144,)))
    assert [part.value.file.start for part in reader.partitions()] == [131072]
    packed, rules = pickle.dumps(reader), pickle.dumps(reader.search.store.rules)
    assert len(packed) - len(rules) < 7_500 and b"commitlog/0" not in packed


def test_of_a_fleet_what_can_be_read_is_read_and_the_others_are_named(
    real: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(source_notes, "_said", set())
    rows = [f'path = "{real[0]}"', 'path = "gone"', f'path = "{real[0]}"\nrelease = "none"']
    fleet = tmp_path / "fleet.toml"
    fleet.write_text("".join(f'[[store]]\nname = "s{number}"\n{row}\n' for number, row in enumerate(rows)))
    for _ in range(2):
        source = MessagesSource({"fleet": str(fleet), "release": "5.3.3"})
        reader: Any = source.reader(source.schema())
        assert {part.value[0] for part in reader.partitions()} == {"s0"}
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in said] == [f" s{number} cannot be read, and gives no row" for number in (1, 2)]
    assert "there is nothing of this name" in said[0] and "release" in said[1]
    fleet.write_text('[[store]]\npath = "gone"\n')
    with pytest.raises(NotAStore, match="there is nothing of this name"):
        MessagesSource({"fleet": str(fleet)}).schema()


def test_what_is_redacted_stays_in_the_tasks(real: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "salt").write_text("salt of this house")

    def keys(**options: str) -> list[str | None]:
        source = MessagesSource({"path": str(real[0]), "columns": "phy_offset,keys", **options})
        reader: Any = pickle.loads(pickle.dumps(source)).reader(source.schema())
        batches = [batch for part in reader.partitions() for batch in pickle.loads(pickle.dumps(reader)).read(part)]
        return [row["keys"] for batch in batches for row in batch.to_pylist()]

    plain, hidden, hashed = keys(), keys(redact="hide"), keys(redact="hash")
    assert {key for key in hidden if key is not None} == {"(hidden)"}
    tokens = {(key, token) for key, token in zip(plain, hashed, strict=True)}
    assert len(tokens) == len(set(plain)) == len(set(hashed)) > 100 and not set(plain) & set(hashed) - {None}
    same = [keys(redact="hash", redact_salt_file=str(tmp_path / "salt")) for _ in range(2)]
    assert same[0] == same[1] != hashed


SOURCES_OF_ROWS = [ConsumeQueueSource, ExtentsSource, IndexSource, MessagesSource, OffsetsSource, TransactionsSource]


@pytest.mark.parametrize("kind", SOURCES_OF_ROWS)
def test_a_read_that_fails_once_gives_no_other_rows(kind: type[StoreSource], tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 14, slots=9, index_max=200))  # which its index file alone shows
    for number in range(12):
        builder.put(Message("T", number % 2, b"x", uniq=f"M{number}"))
    root = builder.write(tmp_path / "store").root
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{0:3}}}')

    def rows() -> list[str]:
        source = kind({"path": str(root), "release": "5.3.3"})
        reader: Any = source.reader(source.schema())
        return [str(row) for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]

    with failing_calls([root], REQUESTS) as calls:
        true = rows()
    assert true or kind is TransactionsSource
    told = 0
    for number in range(calls.count):
        with failing_calls([root], REQUESTS, number) as failing:
            try:
                assert rows() == true, failing.failed
            except StoreError as problem:
                told += 1
                assert failing.failed[0] in str(problem) or failing.failed[0] == ".", failing.failed
    assert told


@pytest.mark.parametrize("trusting", [False, True])
def test_segments_are_skipped_by_time_only_where_the_clock_is_trusted(tmp_path: Path, trusting: bool) -> None:
    hour = 3_600_000
    b = builders.StoreBuilder(sizes=builders.Sizes(segment=512))
    for i in range(5):  # one message a segment, ten hours apart
        b.put(builders.Message(body=b"x" * 300, store_time=NOON_MS + 10 * i * hour))
        b.roll()
    store = b.write(tmp_path / "store", spare=False).root
    source = MessagesSource({"path": str(store), "trust_clock": str(trusting), "since": str(NOON_MS + 5 * hour)})
    reader: Any = source.reader(source.schema())
    reader.take_over(Condition("LessThan", "store_time_ms", (NOON_MS + 15 * hour,)))
    assert sorted(part.value.file.start // 512 for part in reader.partitions()) == ([0, 1] if trusting else [0, 1, 2, 3, 4])
    (row,) = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert row["store_time_ms"] == NOON_MS + 10 * hour


def test_what_is_assumed_and_not_there_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    b = builders.StoreBuilder("5.3.3")
    b.put(builders.Message())
    root = b.write(tmp_path / "store", config={"consumerOffset.json": '{"offset\x1b'}).root
    monkeypatch.setattr(source_notes, "_said", set())
    for kind, given, words in (
        (OffsetsSource, {"path": str(root)}, ["No release was named", "cannot be parsed"]),
        (TransactionsSource, {"paths": json.dumps([str(root), str(root)])}, ["No release was named"]),
        (TransactionsSource, {"path": str(root), "release": "5.3.3"}, []),
        (MessagesSource, {"paths": json.dumps([str(root), str(root)])}, ["No release was named"]),
        (MessagesSource, {"path": str(root), "release": "5.3.3"}, []),
        (ExtentsSource, {"path": str(root)}, ["No release was named"]),
        (ConsumeQueueSource, {"path": str(root)}, []),  # read alike by each release
        (IndexSource, {"path": str(root)}, []),
    ):
        source = kind(given)
        assert len(dict.fromkeys(source.notes())) == len(words)
        source.reader(source.schema()).partitions()
        said = capsys.readouterr().err.splitlines()
        assert len(said) == len(words) and all(word in line for word, line in zip(words, said, strict=True))
        assert all(line.startswith(f"{source.name()}: ") and "\x1b" not in line for line in said)


# ---- Spark -----------------------------------------------------------------------------------------------------------


def lost_rows(root: Path, conf: Path, **options: str) -> list[dict[str, Any]]:
    """What the source gives, read in this process: planned, sent to tasks, read there."""
    given = {"path": str(root), "release": "5.3.3", "broker_conf": str(conf), **options}
    source = MessagesSource(given)
    reader = source.reader(source.schema())
    parts = pickle.loads(pickle.dumps(reader.partitions()))
    there = pickle.loads(pickle.dumps(reader))
    return sorted((row for part in parts for batch in there.read(part) for row in batch.to_pylist()), key=key)


def test_what_a_start_would_lose(tmp_path: Path) -> None:
    root, text, at = damaged_store(tmp_path / "store")
    conf = tmp_path / "broker.conf"
    conf.write_text(text, encoding="utf-8")
    rows = lost_rows(root, conf, lost="true")
    assert [row["phy_offset"] for row in rows] == at[12:] and {row["lost"] for row in rows} == {"cut"}
    rows = lost_rows(root, conf, columns="phy_offset,lost")
    assert [row["lost"] for row in rows] == [None] * 11 + ["cut"] * 8
    for asked in ({"lost": "true"}, {"columns": "phy_offset,lost"}):
        with pytest.raises(UsageError, match="depends on the release; say it with the option release"):
            MessagesSource({"path": str(root), **asked}).schema()
    path = next((root / "commitlog").iterdir())
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(StoreError, match="would not start"):
        lost_rows(root, conf, lost="true")


@spark_test
def test_every_row_and_type(spark: SparkSession, tmp_path: Path) -> None:
    store = odd_store(tmp_path / "store")
    register(spark)
    frame = spark.read.format("rocketmq.messages").option("body", "raw").load(str(store.root))
    assert frame.columns == [column.name for column in SOURCES["messages"] if column.name != "lost"]
    assert frame.schema["phy_offset"].metadata["comment"].startswith("Key: physical offset")
    found = sorted((row.asDict() for row in frame.collect()), key=key)
    wanted = plain(rows_of(store.root, columns=tuple(frame.columns)))
    local = datetime.now().astimezone().tzinfo  # collected timestamps are local and without a zone
    for row in found:
        for name in ("store_time", "born_time"):
            row[name] = row[name] and row[name].replace(tzinfo=local).astimezone(UTC)
    times = ("store_time", "born_time")
    for mine, reference in zip(found, wanted, strict=True):
        assert {k: v for k, v in mine.items() if k not in times} == {k: v for k, v in reference.items() if k not in times}
        assert all((mine[k] is None) == (reference[k] is None) for k in times)
    seconds = {row["phy_offset"]: row["s"] for row in frame.selectExpr("phy_offset", "unix_millis(store_time) s").collect()}
    assert all(seconds[row["phy_offset"]] in (row["store_time_ms"], None) for row in wanted)


@spark_test
def test_the_other_sources(spark: SparkSession, real: tuple[Path, Path]) -> None:
    root, conf = str(real[0]), str(real[1])
    queues = read(spark, "consumequeue", root, broker_conf=conf)
    index = read(spark, "index", root, broker_conf=conf)
    extents = read(spark, "extents", root, broker_conf=conf)
    for frame, name in ((queues, "consumequeue"), (index, "index"), (extents, "extents")):
        assert frame.columns == [column.name for column in SOURCES[name]]
    (case,) = cases("g04-533-clean-all")
    entries = case.entries() or []
    # A broker that starts on this clean store keeps every entry.
    assert queues.where("status = 'valid'").count() == sum("t" in entry for entry in entries)
    assert index.where("status = 'counted'").count() == sum("x" in entry for entry in entries)
    one = [e for e in entries if e.get("t") == "Topic1" and e["q"] == 0 and e["p"] < 200_000]
    found = queues.where("topic = 'Topic1' and queue_id = 0 and phy_offset < 200000 and queue_offset >= 2")
    assert sorted(row.phy_offset for row in found.collect()) == sorted(e["p"] for e in one)[2:] != []
    assert extents.where("kind = 'message'").agg({"message_count": "sum"}).first() == Row(**{"sum(message_count)": 1702})
    assert extents.where("phy_offset >= 600000").count() == 3


@spark_test
def test_traffic_and_transactions_of_several_stores(spark: SparkSession, tmp_path: Path) -> None:
    minute = 60_000
    start = 1_795_000_000_000 // minute * minute
    for name, sizes in (("a", (10, 20)), ("b", (30,))):
        builder = builders.StoreBuilder("5.3.3")
        for number, size in enumerate(sizes):
            builder.put(builders.Message("T", body=b"x" * size, store_time=start + number * minute))
        half = (("REAL_TOPIC", "T"), ("REAL_QID", "0"))
        builder.put(builders.Message(builders.HALF_TOPIC, uniq=f"half-{name}", properties=half, store_time=start + 9 * minute))
        builder.write(tmp_path / name)
    stores = [str(tmp_path / name) for name in "ab"]
    frame = sources.traffic(spark, stores, release="5.3.3").where("topic = 'T'")
    rows = [(row.store, int(row.minute.timestamp() * 1000) - start, row.messages, row.bytes) for row in frame.collect()]
    assert [row[:3] for row in rows] == [(stores[0], 0, 1), (stores[1], 0, 1), (stores[0], minute, 1)]
    assert rows[2][3] - rows[0][3] == 10 and rows[1][3] - rows[0][3] == 20  # longer bodies
    halves = read(spark, "transactions", str(tmp_path / "?"), release="5.3.3")
    assert [tuple(row) for row in halves.select("store", "transaction_id", "real_topic", "state").orderBy("store").collect()] == [
        (stores[0], "half-a", "T", "open"),
        (stores[1], "half-b", "T", "open"),
    ]


@spark_test
def test_the_page_of_data_sources_shows_what_its_lines_print(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (environment.ROOT / "docs" / "notebooks.md").read_text("utf-8")
    found = re.search(r"```python\n(?:.*\n)+?with session.start\(\) as started:\n((?:    .*\n)+)```\n```\n((?:.*\n)+?)```", text)
    assert found
    monkeypatch.chdir(environment.ROOT)
    exec(textwrap.dedent(found[1]), {"sources": sources, "started": SimpleNamespace(spark=spark)})
    assert capsys.readouterr().out.rstrip() == found[2].rstrip()


@spark_test
def test_a_schema_chooses_columns(spark: SparkSession, real: tuple[Path, Path]) -> None:
    register(spark)
    frame = spark.read.schema("queue_id int, topic string").format("rocketmq.messages").load(str(real[0]))
    assert frame.columns == ["queue_id", "topic"] and frame.count() == 1702
    with pytest.raises(AnalysisException, match="not change their types"):
        spark.read.schema("queue_id string").format("rocketmq.messages").load(str(real[0])).count()


@spark_test
def test_a_table_of_the_catalog_keeps_its_options(spark: SparkSession, real: tuple[Path, Path]) -> None:
    register(spark)
    spark.sql(f"CREATE TABLE kept USING rocketmq.messages OPTIONS (path '{real[0]}', release '5.3.3', columns 'topic,queue_id')")
    spark.sql(f"CREATE TEMPORARY VIEW seen USING rocketmq.messages OPTIONS (path '{real[0]}', release '5.3.3')")
    try:
        assert spark.table("seen").count() == 1702
        jvm: Any = spark.sparkContext._jvm
        identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier("kept")
        stored = spark._jsparkSession.sessionState().catalog().getTableMetadata(identifier).schema().json()
        schema = StructType.fromJson(json.loads(stored))
        assert schema.fieldNames() == ["topic", "queue_id"]
        source = MessagesSource({})  # so a session without Delta's catalog makes it for SELECT
        reader = source.reader(schema)
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        assert sum(batch.num_rows for batch in batches) == 1702 and batches[0].schema.names == ["topic", "queue_id"]
    finally:
        spark.sql("DROP TABLE kept")
        spark.sql("DROP VIEW seen")
    for asked in (lambda: source.schema(), lambda: source.reader(StructType().add("topic", "string"))):
        with pytest.raises(UsageError, match="wants a store"):
            asked()


@spark_test
def test_bad_input_is_told_in_one_sentence(spark: SparkSession, real: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match=r"^.*gone: there is nothing of this name$"):
        read(spark, "messages", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="option 'relase'"):
        read(spark, "messages", str(real[0]), relase="5.3.3")
    register(spark)
    with pytest.raises(AnalysisException, match="there is nothing of this name"):
        spark.read.format("rocketmq.messages").load(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": "topic,nothing"}, "column 'nothing'"),
        ({"columns": "topic,topic"}, "a column twice"),
        ({"body": "cooked"}, "none, raw or decoded"),
        ({"body": "raw", "decompress": "true"}, "say one of them"),
        ({"storage_option": "aws_region=eu-1"}, "takes none; give --storage-option to the command run"),
        ({"release": "3.2.6"}, "none before 4.6.1 is known"),
        ({"broker_conf": "no.conf"}, "No such file"),
        ({"since": "yesterday"}, "not a time"),
        ({"since": "2027-01-01", "until": "2026-01-01"}, "since 2027-01-01 and until 2026-01-01: the range is empty"),
        ({"unpack": "maybe"}, "true or false"),
        ({"max_body_bytes": "0"}, "a number from 1"),
        ({"path": ""}, "wants a store"),
        ({"redact": "blur"}, "hide or hash"),
        ({"redact": "hash", "redact_salt_file": "nothing-here"}, "No such file"),
    ],
)
def test_options_that_make_no_sense(real: tuple[Path, Path], options: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MessagesSource({"path": str(real[0]), **options}).schema()


@pytest.mark.parametrize("text", ["[1]", '"a"', "[", "{}", '["a", null]', "[" * 100_000])
def test_a_list_of_stores_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="not a JSON list of texts"):
        MessagesSource({"paths": text})


@pytest.mark.cluster
@pytest.mark.skipif(not environment.is_ready(), reason="needs the environment that spark-submit.sh makes")
def test_executors_elsewhere_read_the_same(real: tuple[Path, Path], tmp_path: Path) -> None:
    """Entries and not messages: an executor elsewhere compiles the decoder anew, which takes most of a minute."""
    script = f"""
from jobs.runtime import session
from jobs.sources import read
with session.start(["--master", "local-cluster[1,1,1024]"]) as started:
    frame = read(started.spark, "consumequeue", {str(real[0])!r}, broker_conf={str(real[1])!r})
    print(frame.where("phy_offset >= 131072").selectExpr("count(*)", "sum(size)").first())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(environment.ROOT), "STORE_AUDIT_HOME": str(environment.home())},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    (case,) = cases("g04-533-clean-all")
    sizes = [entry["s"] for entry in case.entries() or [] if "t" in entry and entry["p"] >= 131072]
    assert (done.stdout.strip(), done.returncode) == (f"Row(count(1)={len(sizes)}, sum(size)={sum(sizes)})", 0), done.stderr


def test_a_python_that_executors_alone_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark plans a source here with it, and would say so in pages."""
    monkeypatch.chdir(tmp_path)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(pythonExec="./environment/bin/python"))
    with pytest.raises(UsageError, match=r"mkdir environment && tar -xzf environment\.tar\.gz -C environment"):
        register(spark)
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").touch()
    helpers._check_python(spark)


@spark_test
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_copy_of_messages_is_taken_from_then_on(
    spark: SparkSession,
    real: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    store = tmp_path / "store"
    shutil.copytree(real[0], store)
    columns = "topic,queue_id,phy_offset,store_time,store_time_ms,total_size,inner_batch,properties"
    plain = read(spark, "messages", store, columns=columns, release="5.3.3").drop("properties").orderBy("phy_offset").collect()
    per_hour = sources.traffic(spark, store, per="hour", release="5.3.3").collect()
    copy = sources.keep(spark, store, tmp_path / "copy", form, columns=columns, release="5.3.3")
    assert copy.drop("properties").orderBy("phy_offset").collect() == plain
    files = list((tmp_path / "copy").glob("*.parquet"))
    groups = [pq.ParquetFile(path).metadata.row_group(0) for path in files]
    assert groups and all(group.column(3).statistics.has_min_max for group in groups)  # store_time
    for path in files:
        topics = pq.read_table(path).column("topic").to_pylist()
        assert topics == sorted(topics) and not topics == []
    if form == "delta":
        table = DeltaTable(tmp_path / "copy")
        assert [found for reader in READERS for found in wrong(table, reader(table), 3)] == []  # flags too
        assert wrong_in_spark(spark, tmp_path / "copy", 1) == []
    else:
        of_topic = f"FROM '{tmp_path}/copy/*.parquet' WHERE topic = '{plain[0]['topic']}'"
        wanted = sum(row["topic"] == plain[0]["topic"] for row in plain)
        assert duckdb.connect().execute(f"SELECT count(*) {of_topic}").fetchall() == [(wanted,)]
        rows = pq.read_table(tmp_path / "copy", filters=[("topic", "==", plain[0]["topic"])])
        assert rows.num_rows == copy.where(copy["topic"] == plain[0]["topic"]).count() == wanted

    def places(frame: Any) -> set[str]:
        return {Path(name.removeprefix("file:").rpartition("/copy/")[0].replace("///", "/")) for name in frame.inputFiles()}

    taken = read(spark, "messages", str(store), columns="topic,store_time", release="5.3.3")
    assert places(taken) == {tmp_path} and taken.columns == ["topic", "store_time"]
    assert sources.traffic(spark, store, per="hour", release="5.3.3").collect() == per_hour
    middle = sorted(row["store_time_ms"] for row in plain)[len(plain) // 2]
    later = read(spark, "messages", store, columns="phy_offset", since=middle, release="5.3.3")
    assert places(later) == {tmp_path}
    assert later.count() == sum(row["store_time_ms"] >= middle for row in plain)
    for other in ({"columns": "keys"}, {"columns": "topic", "unpack": True}, {"columns": "topic", "release": "4.9.8"}):
        assert places(read(spark, "messages", store, **{"release": "5.3.3", **other})) == set()
    monkeypatch.setattr(copies, "_kept", {})  # as of another process
    asked: dict[str, Any] = {"form": form, "columns": columns, "release": "5.3.3"}
    written = {path: path.stat().st_mtime_ns for path in files}
    assert places(sources.keep(spark, store, tmp_path / "copy", **asked)) == {tmp_path}
    assert {path: path.stat().st_mtime_ns for path in files} == written
    assert places(read(spark, "messages", str(store), columns="topic", release="5.3.3")) == {tmp_path}
    with pytest.raises(UsageError, match="was made with other options or columns"):
        sources.keep(spark, store, tmp_path / "copy", **{**asked, "columns": "topic"})
    capsys.readouterr()
    os.utime(next((store / "commitlog").iterdir()))
    with pytest.raises(UsageError, match="was made before the store changed; name a new folder"):
        sources.keep(spark, store, tmp_path / "copy", **asked)
    changed = read(spark, "messages", store, columns="topic,store_time", release="5.3.3")
    assert places(changed) == set() and "not as it was when" in capsys.readouterr().err


@spark_test
@pytest.mark.parametrize("place", ["dbfs:/copies/a", "s3://nobody/copies/a", "viewfs://cluster/copies/a"])
def test_a_copy_at_a_place_that_spark_does_not_reach_is_refused_before_any_work(
    spark: SparkSession, real: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(copies, "_write", None)
    with pytest.raises(UsageError, match=f"the copy '{place}': Spark reads nothing there: "):
        sources.keep(spark, real[0], place, columns="topic", release="5.3.3")


@spark_test
def test_tasks_of_copies_and_traffic_are_for_the_sessions_cores(
    spark: SparkSession, real: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(question, "written_bytes", lambda _, files, cores: asked.append(cores) or [file.size for file in files])
    sources.traffic(spark, real[0], release="5.3.3")
    assert asked == [spark.sparkContext.defaultParallelism] == [2]


@spark_test
def test_a_copy_that_fails_is_not_there(
    spark: SparkSession, real: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(StoreError, match="the copy could not be written"):
        sources.keep(spark, real[0], tmp_path / "copy", columns="topic,properties", sort=["properties"], release="5.3.3")
    assert list(tmp_path.iterdir()) == []
    none = sources.keep(spark, real[0], tmp_path / "copy", columns="topic,store_time_ms", until="2001-01-01", release="5.3.3")
    assert none.count() == 0 and none.columns == ["topic", "store_time_ms"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"form": "orc"}, "form='orc': parquet or delta"),
        ({"place": "{store}/copy"}, "inside"),
        ({"place": "{store}/../there"}, "is there already"),
        ({"sort": ["keys"]}, "sort 'keys': the columns of the copy are topic, tags"),
        ({"place": "dbfs:/copies/a"}, r"the copy 'dbfs:/copies/a': tasks cannot write there \(.*\); they write to folders of"),
        ({"place": "viewfs://cluster/copies/a"}, r"'viewfs://cluster/copies/a': tasks cannot write there \(.*hdfs"),
        ({"place": "hdfs://127.0.0.1:9/copies/a"}, r"'hdfs://127.0.0.1:9/copies/a': tasks cannot write there \(no NameNode"),
    ],
)
def test_a_copy_that_cannot_be_made(real: tuple[Path, Path], tmp_path: Path, more: dict[str, Any], sentence: str) -> None:
    store = tmp_path / "store"
    shutil.copytree(real[0], store)
    (tmp_path / "there").mkdir()
    source = MessagesSource({"path": str(store), "columns": "topic,tags"})
    nothing: Any = None
    asked = {"place": str(tmp_path / "new"), "form": "parquet", "sort": None, **more}
    with pytest.raises(UsageError, match=sentence):
        make_copy(nothing, source, asked["place"].format(store=store), asked["form"], asked["sort"])
