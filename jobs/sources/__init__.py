"""A copied store as Spark data sources, read where it lies: no audit, no tables.

    from jobs.sources import read, register

    register(spark)
    messages = spark.read.format("rocketmq.messages").schema("topic string, store_time timestamp").load("copies/broker-a")
    messages.groupBy("topic").agg({"store_time": "max"}).show()
    read(spark, "messages", "copies/broker-a", where="topic = 'orders' AND unique_key = '7F0001'").show()

Sources: rocketmq.messages, rocketmq.consumequeue, rocketmq.index, rocketmq.extents, rocketmq.offsets (how far consumer groups
and delay levels have come), rocketmq.transactions (half messages, and what became of them); their columns are in
schemas/sources.py. A task reads one segment, or a piece of 64 MiB at least where cores would have nothing to do, one index file,
a group of queues, a range of a database's keys or a stretch of the log, the longest first. No setting of a session is changed.

A frame of `read`, or a view of one, reads for each question what it asks: its columns, and by what the source takes over of its
conditions: on topic, queue id, tags, offsets, store time, group and store, and on messages also those on unique_key and msg_id
(equal, in) and keys (contains), which find their bytes as `query` does. Whole segments are skipped by the physical offsets in
their names or because they lack such bytes, messages before they become rows. Spark asks the whole condition again. No segment is
skipped by store times unless `trust_clock` says so: a clock that was set back, or a damaged time, could hide messages. The
argument `where` of read, lag and traffic may ask columns that the frame does not have. Of `spark.read` conditions are asked of
rows alone, and all columns are made that are named.

Several stores in one load: load(["copies/a", "copies/b"]), a pattern of this machine (load("copies/broker-*"), folders alone), or
the option fleet, a fleet file as `audit --fleet` takes it, with a release and a broker.conf for each; of a fleet, stores that
cannot be read are named on standard error and give no row. Rows then begin with a
column `store`, the same as in the tables of audits: the store's name in the fleet file, or else where it lies. Of one store the
column is there if `columns` names it.

For many questions make a copy once: keep(spark, STORE, PLACE, columns=...) writes Parquet or Delta, which read and traffic take
instead of the store from then on.

Without Spark: arrow(PLACE, columns=..., where=...) gives the same rows as a pyarrow.RecordBatchReader, read by this process, for
DuckDB, polars or pandas. Its `where` knows no more SQL than `plain_where` says.

Options of all: release, broker_conf (a file), commitlog, consumequeue, index (where a store keeps these parts elsewhere), fleet,
columns (names, separated by commas, or Spark's own .schema("topic string, store_time timestamp")), pushdown (true: Spark may hand
over conditions by itself, in a session in which its spark.sql.python.filterPushdown.enabled is on, if its release is in
StoreSource.right_with_pushed: none is yet, and then it changes nothing). Without release the newest known one is assumed, and
standard error says so, once; the rows of index, and those of consumequeue in files, do not depend on it. Of a double write of
queues, in files and in RocksDB, consumequeue has those from which the release serves consumers. Options of messages: body (none,
raw, decoded), decompress (true: the same as body = decoded), unpack (true: the messages of inner batches instead of the batches),
max_body_bytes, since and until (as on the command line), trust_clock (true: skip segments by their first messages' store times),
tables (those that audits of this copy wrote: skips segments that hold no message of the store times asked for, as an earlier
audit with the same release and settings saw them, and says on standard error how many), lost (true: only what a start would
lose), redact (hide, or hash: keyed tokens, the same ones within one load), redact_salt_file. The option lost and the column
`lost` want `release`, and have the whole store audited first, where the query is planned, by one process: for a large store take
export --lost.

Modules: `store_source`: what all sources share: options, columns, one store or several in one load; `asked_table`: a table that
Spark asks for what a question needs; `plain_where`: what an SQL condition asks, without Spark; `conditions`: what sources take
over of it, as filters of messages; `message_source`, `file_sources`, `group_sources`: the sources; `copies`: for many questions;
`in_tasks`: what tasks do with a source's batches; `helpers`: the functions above, loaded when they are first used: the process
that plans a source needs one module alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.sources.helpers import SPANS as SPANS
    from jobs.sources.helpers import Stores as Stores
    from jobs.sources.helpers import arrow as arrow
    from jobs.sources.helpers import keep as keep
    from jobs.sources.helpers import lag as lag
    from jobs.sources.helpers import read as read
    from jobs.sources.helpers import register as register
    from jobs.sources.helpers import traffic as traffic


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(importlib.import_module(f"{__name__}.helpers"), name)
