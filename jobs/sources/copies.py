"""Keeps copies of messages as Parquet or Delta; the helpers of `jobs.sources` take them instead of the store in this process.

A copy answers a question if it was made with the same options and has all columns that are asked for, and if the segments are as
they were when it was made: names, lengths and times of modification. Otherwise the store is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from jobs.cli.argument_places import absolute, refuse_inside, refuse_not_utf8
from jobs.messages.message_arguments import open_named
from jobs.runtime.faults import reason
from jobs.runtime.source_notes import say
from jobs.sources.message_source import MessagesSource
from jobs.tables.file_statistics import property_for_spark
from schemas.sources import LOST
from store_io.base.errors import StoreError, UsageError
from store_io.base.paths import is_uri

FORMATS = ("parquet", "delta")
SORTED = ("topic", "store_time_ms", "store_time")
GROUP_BYTES = 16 << 20  # of a Parquet row group, each with its own statistics
_OF_A_QUESTION = frozenset(("columns", "since", "until", "pushdown"))  # options that choose among the rows of a copy
_TIMES_CONF = "spark.sql.parquet.outputTimestampType"

Segments = frozenset[tuple[str, int, int]]  # path, length and time of each


@dataclass(frozen=True)
class _Copy:
    place: str
    form: str
    columns: tuple[str, ...]
    options: Mapping[str, str]
    times: tuple[int | None, int | None]
    segments: Segments


_kept: list[_Copy] = []  # the latest first


def make_copy(
    spark: SparkSession, source: MessagesSource, frame: DataFrame, place: str, form: str, sort: Sequence[str] | None
) -> DataFrame:
    """Write the frame, which `source` reads, and have questions take it from now on. Raises UsageError, StoreError.

    Only the copy of one store is taken, and only without what is lost: that hangs on more than segments.
    """
    if form not in FORMATS:
        raise UsageError(f"form={form!r}: {' or '.join(FORMATS)}")
    place = absolute(os.fspath(place))
    refuse_inside(place, "the copy", [path for store in source.stores for path in store.roots])
    if form == "delta":
        refuse_not_utf8("the copy", place)
    if not is_uri(place) and os.path.lexists(place):
        raise UsageError(f"the copy {place!r}: is there already; name a new folder")
    columns = source.columns()
    order = [name for name in SORTED if name in columns] if sort is None else list(sort)
    for name in order:
        if name not in columns:
            raise UsageError(f"sort {name!r}: the columns of the copy are {', '.join(columns)}")
    is_taken = len(source.stores) == 1 and not source.lost and LOST not in columns
    before = _segments(source) if is_taken else frozenset()
    ordered = _times_with_statistics(spark, frame.sortWithinPartitions(*order) if order else frame)
    writer = ordered.write.format(form).option("parquet.block.size", str(GROUP_BYTES)).mode("error")
    if form == "delta":
        name, value = property_for_spark(ordered.schema.jsonValue())
        writer = writer.option(f"delta.{name}", value)
    try:
        writer.save(place)
    except Exception as problem:
        raise StoreError(f"{place}: the copy could not be written: {reason(problem)}") from None
    if is_taken:
        _kept.insert(0, _Copy(place, form, columns, _options(source), source.times, before))
    else:
        say([f"{place}: a copy of several stores, or with what is lost, is read by its own name alone"])
    return spark.read.format(form).load(place)


def from_copy(spark: SparkSession, source: MessagesSource) -> DataFrame | None:
    """Return the rows that `source` would read, from a copy; None if no copy has them."""
    columns, options = source.columns(), _options(source)
    for copy in _kept if len(source.stores) == 1 else ():
        if (
            copy.options != options
            or not set(columns) <= set(copy.columns)
            or not (is_uri(copy.place) or os.path.isdir(copy.place))
        ):
            continue
        low, high = source.times
        if copy.times != source.times and (copy.times != (None, None) or "store_time_ms" not in copy.columns):
            continue
        if _segments(source) != copy.segments:
            say([f"{source.name()}: the store is not as it was when {copy.place} was made of it, so the store is read"])
            continue
        frame = spark.read.format(copy.form).load(copy.place)
        if copy.times != source.times:
            frame = frame if low is None else frame.where(frame["store_time_ms"] >= low)
            frame = frame if high is None else frame.where(frame["store_time_ms"] < high)
        return frame.select(*columns)
    return None


def _options(source: MessagesSource) -> dict[str, str]:
    """Return what rows depend on besides time and columns; the store by its place."""
    given = {name: text for name, text in source.given.items() if name not in {*_OF_A_QUESTION, "path", "paths"}}
    store = source.stores[0]
    return {**given, "store": repr((store.key, store.path, store.parts, store.release, store.broker_conf))}


def _segments(source: MessagesSource) -> Segments:
    opened = open_named(source.stores[0])
    return frozenset((file.path, file.size, opened.listing.by_path[file.path].mtime_ns) for file in opened.segments())


def _times_with_statistics(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the frame in a session beside the user's own, in which Parquet holds times as numbers.

    The type that Spark takes by default has no statistics. No option of a writer says so, and the user's session stays as it is.
    """
    try:
        jvm: Any = spark.sparkContext._jvm
    except Exception:  # Spark Connect has no context: without statistics, then
        return frame
    beside = spark._jsparkSession.cloneSession()
    beside.conf().set(_TIMES_CONF, "TIMESTAMP_MICROS")
    plan = frame._jdf.queryExecution().analyzed()
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(beside, plan), spark)
