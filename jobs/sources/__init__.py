"""A copied store as Spark data sources, read where it lies: no audit, no tables.

    from jobs.sources import register

    register(spark)
    messages = spark.read.format("rocketmq.messages").schema("topic string, store_time timestamp").load("copies/broker-a")
    messages.where("topic = 'orders'").agg({"store_time": "max"}).show()

Sources: rocketmq.messages, rocketmq.consumequeue, rocketmq.index, rocketmq.extents, rocketmq.offsets (how far consumer groups
and delay levels have come), rocketmq.transactions (half messages, and what became of them); their columns are in
schemas/sources.py. A task reads one segment, or a piece of 64 MiB at least where cores would have nothing to do, one index file,
a group of queues or a stretch of the log, the longest first. Conditions on topic, queue id, tags, offsets, store time, group and
store are pushed down, and on messages also those on unique_key and msg_id (equal, in) and keys (contains), which find their
bytes as `query` does: whole segments are skipped by the physical offsets in their names or because they lack such bytes,
messages before they become rows. What Spark leaves to a source alone is in PushedFilters of explain("formatted"). No segment is
skipped by store times unless `trust_clock` says so: a clock that was set back, or a damaged time, could hide messages.

Several stores in one load: load(["copies/a", "copies/b"]), a pattern of this machine (load("copies/broker-*"), folders alone), or
the option fleet, a fleet file as `audit --fleet` takes it, with a release and a broker.conf for each; of a fleet, stores that
cannot be read are named on standard error and give no row. Rows then begin with a
column `store`, the same as in the tables of audits: the store's name in the fleet file, or else where it lies. Of one store the
column is there if `columns` names it.

For many questions make a copy once: keep(spark, STORE, PLACE, columns=...) writes Parquet or Delta, which read and traffic take
instead of the store from then on.

Options of all: release, broker_conf (a file), commitlog, consumequeue, index (where a store keeps these parts elsewhere), fleet,
columns (names, separated by commas, or Spark's own .schema("topic string, store_time timestamp"): Spark does not pass to a
source which ones a query needs, so that all that are named are made, for count() as well), pushdown (false: for a session in
which Spark's own spark.sql.python.filterPushdown.enabled is off). Without release the newest known one is assumed, and standard
error says so, once; the rows of consumequeue and index do not depend on it.
Options of messages: body (none, raw, decoded), decompress (true: the same as body = decoded), unpack (true: the messages of inner
batches instead of the batches), max_body_bytes, since and until (as on the command line), trust_clock (true: skip segments by
their first messages' store times), tables (those that audits of this copy wrote: skips segments that hold no message of the store
times asked for, as an earlier audit with the same release and settings saw them, and says on standard error how many), lost
(true: only what a start would lose), redact (hide, or hash: keyed tokens, the same ones within one load), redact_salt_file. The
option lost and the column `lost` want `release`, and have the whole store audited first, where the query is planned, by one
process: for a large store take export --lost.

Modules: `store_source`: what all sources share: options, columns, one store or several in one load; `conditions`: Spark's
conditions as filters of messages; `message_source`, `beside_messages`: the sources; `copies`: for many questions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.runtime.source_notes import say
from jobs.sources.beside_messages import ConsumeQueueSource, ExtentsSource, IndexSource, OffsetsSource, TransactionsSource
from jobs.sources.copies import from_copy, make_copy
from jobs.sources.message_source import MessagesSource
from jobs.sources.store_source import StoreSource
from schemas.sources import STORE
from store_io.base.errors import UsageError

PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"
SPANS = ("second", "minute", "hour", "day")

Stores = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_BY_NAME: dict[str, type[StoreSource]] = {
    source.source: source
    for source in (MessagesSource, ConsumeQueueSource, IndexSource, ExtentsSource, OffsetsSource, TransactionsSource)
}


def register(spark: SparkSession) -> None:
    """Make the sources known to this session, and have Spark hand conditions to them.

    Raises UsageError if Spark could plan no source here: `load` would show Spark's own error about it.
    """
    _check_python(spark)
    spark.conf.set(PUSHDOWN_CONF, "true")  # off by default, and then Spark refuses a reader that could take conditions
    for source in _BY_NAME.values():
        spark.dataSource.register(_for_cores(source, spark) if source is MessagesSource else source)


def _for_cores(source: type[StoreSource], spark: SparkSession) -> type[StoreSource]:
    """The source for a session of so many cores: Spark plans it in a process that cannot ask the session."""
    try:
        cores = spark.sparkContext.defaultParallelism
    except Exception:  # Spark Connect has no context
        return source
    return type(source.__name__, (source,), {"cores": cores, "__module__": source.__module__, "__doc__": source.__doc__})


def read(spark: SparkSession, source: str, store: Stores | None = None, **options: object) -> DataFrame:
    """One source of a store or of several, registered if it was not; options as above, Python's True and False are understood.

    store: a path, a pattern, or a list of these; None: the option fleet names them.
    Raises UsageError or another StoreError here, in one sentence, where `load` would show Spark's own error around it.
    """
    found, texts = _source_of(source, store, options)
    register(spark)
    found.schema()
    say(found.notes())  # here, too: in a session of another maker what Spark's workers say may come to no terminal
    copy = from_copy(spark, found) if isinstance(found, MessagesSource) else None
    return spark.read.format(found.name()).options(**texts).load() if copy is None else copy


def keep(
    spark: SparkSession,
    store: Stores | None,
    place: str | os.PathLike[str],
    form: str = "parquet",
    sort: Sequence[str] | None = None,
    **options: object,
) -> DataFrame:
    """A copy of messages at `place`, a new folder or URI, for many questions: `read` and `traffic` take it from now on.

    form: parquet or delta.  sort: columns by which each file is sorted, so that Spark skips by their statistics; None: topic
    and store time. Options and errors as of `read`: `columns` chooses what the copy has. Questions with other options or
    columns read the store, and so do all once its segments have changed, which standard error says.
    """
    found, _ = _source_of("messages", store, options)
    assert isinstance(found, MessagesSource)
    return make_copy(spark, found, read(spark, "messages", store, **options), os.fspath(place), form, sort)


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


def lag(spark: SparkSession, store: Stores | None = None, **options: object) -> DataFrame:
    """Return the lag of consumer groups: a row for each group, topic and queue with a committed offset, most first.

    Columns: group, topic, queue_id, committed_offset, queue_end, lag, status, as in rocketmq.offsets; for several stores `store`
    before them. Options and errors as for `read`. Without the option release the newest one is assumed, which standard error
    says; so it does if a start takes no offsets, as a file of config/ is absent or damaged: no rows then say nothing about lag.
    """
    columns = (*_store_column("offsets", store, options), "group", "topic", "queue_id", "committed_offset", "queue_end", "lag")
    frame = read(spark, "offsets", store, **{**options, "columns": ",".join(("kind", *columns, "status"))})
    order = [F.desc_nulls_last("lag"), *(F.col(name) for name in columns[:-3])]
    return frame.where("kind = 'consumer'").drop("kind").orderBy(*order)


def traffic(spark: SparkSession, store: Stores | None = None, per: str = "minute", **options: object) -> DataFrame:
    """Messages and bytes of each topic by the time at which they were stored, the earliest first.

    per: second, minute, hour or day, in the session's time zone (session.start has UTC); UsageError for others. Columns: `per`,
    where it begins (null for messages with damaged times), topic, messages, bytes (of whole messages); of several stores `store`
    before them. Options, such as since and until, and errors as of `read`.
    """
    if per not in SPANS:
        raise UsageError(f"per={per!r}: {', '.join(SPANS)}")
    stores = _store_column("messages", store, options)
    columns = ",".join((*stores, "topic", "store_time", "total_size"))
    frame = read(spark, "messages", store, **{**options, "columns": columns})
    grouped = frame.groupBy(*stores, F.date_trunc(per, "store_time").alias(per), "topic")
    return grouped.agg(F.count("*").alias("messages"), F.sum("total_size").alias("bytes")).orderBy(per, *stores, "topic")


def _source_of(source: str, store: Stores | None, options: dict[str, object]) -> tuple[StoreSource, dict[str, str]]:
    """(the source with these options, the options as Spark passes them)."""
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
