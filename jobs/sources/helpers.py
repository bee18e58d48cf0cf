"""The public functions of `jobs.sources`, which says what they are for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.source_notes import say
from jobs.sources.asked_table import asked_columns, asked_frame
from jobs.sources.conditions import as_text
from jobs.sources.copies import from_copy, make_copy
from jobs.sources.file_sources import ConsumeQueueSource, ExtentsSource, IndexSource
from jobs.sources.group_sources import OffsetsSource, TransactionsSource
from jobs.sources.in_tasks import Fold, cores_of, over_parts
from jobs.sources.message_source import MessagesSource
from jobs.sources.plain_where import plain_conditions, rows_that_meet
from jobs.sources.store_source import CONDITIONS, StoreSource
from schemas.sources import STORE
from store_io.base.errors import UsageError

SPANS = ("second", "minute", "hour", "day")
ZONES_S = 30  # that all time zones' offsets since 1970 are multiples of

Stores = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_BY_NAME: dict[str, type[StoreSource]] = {
    source.source: source
    for source in (MessagesSource, ConsumeQueueSource, IndexSource, ExtentsSource, OffsetsSource, TransactionsSource)
}
_registered: WeakSet[SparkSession] = WeakSet()  # Spark warns of each source that is registered once more


def register(spark: SparkSession) -> None:
    """Make the sources known to this session. None of its settings is changed.

    Raises UsageError if Spark could plan no source here: `load` would show Spark's own error about it.
    """
    _check_python(spark)
    for source in _BY_NAME.values():
        try:
            spark.dataSource.register(_for_cores(source, spark) if source is MessagesSource else source)
        except AnalysisException as problem:
            if problem.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # Spark has found the wheel's own (setup.py)
                raise
    _registered.add(spark)


def _for_cores(source: type[StoreSource], spark: SparkSession) -> type[StoreSource]:
    """Return the source for a session of so many cores: Spark plans it in a process that cannot ask the session."""
    cores = cores_of(spark)
    return (
        source
        if cores is None
        else type(source.__name__, (source,), {"cores": cores, "__module__": source.__module__, "__doc__": source.__doc__})
    )


def read(
    spark: SparkSession, source: str, store: Stores | None = None, *, where: str | Column | None = None, **options: object
) -> DataFrame:
    """Return one source of a store or of several, registered if it was not. Options as above, Python's True and False are
    understood. Each question to the frame, or to a view of it, reads what it needs: its columns, and by its conditions.

    store: a path, a pattern, or a list of these; None: the option fleet names them.
    where: a condition in SQL, or as a Column: the same rows as `.where` gives. It may ask columns that the frame does not have.
    Raises UsageError or another StoreError here, in one sentence, where `load` would show Spark's own error around it.
    """
    found, texts = _source_of(source, store, options)
    if spark not in _registered:
        register(spark)
    if where is None:
        return _frame(spark, found)
    columns = found.columns()
    asked = asked_columns(spark, where, list(found.known.values()))
    texts["columns"] = ",".join(dict.fromkeys((*columns, *asked)))
    return _frame(spark, type(found)(texts)).where(where).select(*columns)


def _frame(spark: SparkSession, found: StoreSource) -> DataFrame:
    schema = found.schema()
    say(found.notes())  # here, too: in a session of another maker what Spark's workers say may come to no terminal
    frame = from_copy(spark, found) if isinstance(found, MessagesSource) else None
    if frame is None:
        options = {name: text for name, text in found.given.items() if name != "columns"}
        frame = asked_frame(spark, found.name(), options, schema, found.most_rows())
    if frame is None:
        if "columns" not in found.given:
            count = len(schema)
            say([f"{found.name()}: in this session of Spark each question makes all {count} columns; name few, by columns=..."])
        frame = spark.read.format(found.name()).options(**found.given).load()
    return frame


def arrow(
    store: Stores | None = None, *, source: str = "messages", where: str | None = None, **options: object
) -> pa.RecordBatchReader:
    """Return one source's rows as a stream of Arrow batches, which this process reads without Spark or Java.

    DuckDB, polars and pandas take the stream, once. Options, notes and errors as of `read`, but that only registered copies of
    Spark's are not asked. where: what a source takes over, in the SQL that `plain_where` reads.
    """
    found, texts = _source_of(source, store, options)
    columns = found.columns()
    conditions = () if where is None else plain_conditions(where, found.known)
    texts["columns"] = ",".join(dict.fromkeys((*columns, *(one.column for one in conditions))))
    asked = type(found)({**texts, CONDITIONS: as_text(conditions)})
    if isinstance(asked, MessagesSource):
        asked.cores = 1  # one process reads whole segments
    reader = asked.reader(asked.schema())
    parts = reader.partitions()

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            for batch in reader.read(part):
                yield rows_that_meet(conditions, batch).select(columns)

    return pa.RecordBatchReader.from_batches(asked.arrow_schema(columns), batches())


def keep(
    spark: SparkSession,
    store: Stores | None,
    place: str | os.PathLike[str],
    form: str = "parquet",
    sort: Sequence[str] | None = None,
    **options: object,
) -> DataFrame:
    """Return a copy of messages at `place`, a folder or URI, for many questions: `read` and `traffic` take it from now on.

    form: parquet or delta.  sort: columns by which each file is sorted, so that Spark skips by their statistics; None: topic
    and store time. Options and errors as of `read`: `columns` chooses what the copy has. Questions with other options or
    columns read the store, and so do all once its segments have changed, which standard error says. A copy that an earlier
    process made of the same is taken as it is; UsageError for one of the store as it was before, or of other options.
    """
    found, _ = _source_of("messages", store, options)
    assert isinstance(found, MessagesSource)
    found.schema()
    say(found.notes())
    return make_copy(spark, found, os.fspath(place), form, sort)


def _check_python(spark: SparkSession) -> None:
    """Raise UsageError if Spark cannot plan a source here: it does so with the Python that executors have."""
    try:
        python = spark.sparkContext.pythonExec
    except Exception:  # Spark Connect has no context; its server plans
        return
    if "/" in python and not os.path.isabs(python) and not os.path.exists(python):
        archive = python.removeprefix("./").partition("/")[0]
        raise UsageError(
            f"spark.pyspark.python {python!r}: Spark plans data sources on this machine, too, with the Python of the executors;"
            f" unpack what pack has made here: mkdir {archive} && tar -xzf environment.tar.gz -C {archive}"
        )


def lag(spark: SparkSession, store: Stores | None = None, *, where: str | Column | None = None, **options: object) -> DataFrame:
    """Return the lag of consumer groups: a row for each group, topic and queue with a committed offset, most first.

    Columns: group, topic, queue_id, committed_offset, queue_end, lag, status, as in rocketmq.offsets; for several stores `store`
    before them. Options, `where` and errors as for `read`. Without the option release the newest one is assumed, which standard
    error says; so it does if a start takes no offsets, as a file of config/ is absent or damaged: no rows then say nothing about
    lag.
    """
    columns = (*_store_column("offsets", store, options), "group", "topic", "queue_id", "committed_offset", "queue_end", "lag")
    frame = read(spark, "offsets", store, where=where, **{**options, "columns": ",".join(("kind", *columns, "status"))})
    order = [F.desc_nulls_last("lag"), *(F.col(name) for name in columns[:-3])]
    return frame.where("kind = 'consumer'").drop("kind").orderBy(*order)


def traffic(
    spark: SparkSession,
    store: Stores | None = None,
    per: str = "minute",
    *,
    where: str | Column | None = None,
    **options: object,
) -> DataFrame:
    """Return messages and bytes of each topic by the time at which they were stored, the earliest first.

    per: second, minute, hour or day, in the session's time zone (session.start has UTC); UsageError for others. Columns: `per`,
    where it begins (null for messages with damaged times), topic, messages, bytes (of whole messages); of several stores `store`
    before them. Options, such as since and until, `where`, and errors as of `read`.
    """
    if per not in SPANS:
        raise UsageError(f"per={per!r}: {', '.join(SPANS)}")
    stores = _store_column("messages", store, options)
    named = {**options, "columns": ",".join((*stores, "topic", "store_time", "total_size"))}
    found, _ = _source_of("messages", store, named)
    assert isinstance(found, MessagesSource)
    if where is None and from_copy(spark, found) is None:
        types = ", ".join((*(f"{name} string" for name in (*stores, "topic")), "store_time timestamp, messages long, bytes long"))
        frame = over_parts(spark, found, _counted((*stores, "topic", "store_time"), 1 if per == "second" else ZONES_S), types)
        counted = F.sum("messages")
    else:
        frame = read(spark, "messages", store, where=where, **named).withColumnRenamed("total_size", "bytes")
        counted = F.count("*")
    grouped = frame.groupBy(*stores, F.date_trunc(per, "store_time").alias(per), "topic")
    return grouped.agg(counted.alias("messages"), F.sum("bytes").alias("bytes")).orderBy(per, *stores, "topic")


def _counted(keys: Sequence[str], span_s: int) -> Fold:
    """Return what counts a part's messages and bytes by these columns, the last a time, which is cut to so many seconds."""

    def count(_: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = []
        for batch in batches:
            cut = pc.floor_temporal(batch.column(keys[-1]), multiple=span_s, unit="second")
            own = [*(batch.column(key) for key in keys[:-1]), cut, batch.column("total_size")]
            table = pa.table(own, names=[*keys, "bytes"])
            tables.append(table.group_by(list(keys)).aggregate([([], "count_all"), ("bytes", "sum")]))
        if tables:
            whole = pa.concat_tables(tables).group_by(list(keys)).aggregate([("count_all", "sum"), ("bytes_sum", "sum")])
            yield from whole.combine_chunks().to_batches()

    return count


def _source_of(source: str, store: Stores | None, options: dict[str, object]) -> tuple[StoreSource, dict[str, str]]:
    """Return (the source with these options, the options as Spark passes them)."""
    if source not in _BY_NAME:
        raise UsageError(f"source {source!r}: {', '.join(_BY_NAME)}")
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    if isinstance(store, str | os.PathLike):
        texts["path"] = os.fspath(store)
    elif store is not None:
        texts["paths"] = json.dumps([os.fspath(one) for one in store])
    return _BY_NAME[source](texts), texts


def _store_column(source: str, store: Stores | None, options: dict[str, object]) -> tuple[str, ...]:
    if "columns" in options:
        raise UsageError("option columns: lag and traffic have columns of their own; read takes it")
    return (STORE.name,) if _source_of(source, store, options)[0].several else ()
