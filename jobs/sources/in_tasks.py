"""Has Spark's tasks do with the batches of a source what the JVM would do with their rows, and bring back little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.sources.store_source import StoreSource

Fold = Callable[[int, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def cores_of(spark: SparkSession) -> int | None:
    """Return on how many cores tasks of this session run, those of executors elsewhere too; None if it cannot say."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context
        return None


def over_parts(spark: SparkSession, source: StoreSource, fold: Fold, schema: str) -> DataFrame:
    """Return what `fold` makes of each part of the source, in tasks. The store is opened here, which may raise StoreError.

    fold: takes the part's number and its batches. Picklable.
    schema: of what it makes, as Spark reads it.
    """
    source.cores = cores_of(spark)
    reader = source.reader(source.schema())
    parts = list(reader.partitions())

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from fold(number, reader.read(parts[number]))

    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(work, schema)
