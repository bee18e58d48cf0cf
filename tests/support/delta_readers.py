"""Counts rows of a Delta table by readers that skip files by its log's statistics, and compares with a plain look at all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

Count = Callable[[str, Any], int]  # column, a value or IS_NULL or IS_NOT_NULL -> rows
IS_NULL, IS_NOT_NULL = "is null", "is not null"


def by_dataset_of(table: DeltaTable) -> Count:
    rows = table.to_pyarrow_dataset()

    def count(name: str, value: Any) -> int:
        field = ds.field(name)
        asked = field.is_null() if value is IS_NULL else field.is_valid() if value is IS_NOT_NULL else field == value
        return int(rows.to_table([name], filter=asked).num_rows)

    return count


def by_pandas(table: DeltaTable) -> Count:
    """pandas gives its filters to delta-rs, and has none for nulls: these are counted in all rows, which it reads once."""
    rows = table.to_pandas()

    def count(name: str, value: Any) -> int:
        if value is IS_NULL or value is IS_NOT_NULL:
            nulls = int(rows[name].isna().sum())
            return nulls if value is IS_NULL else len(rows) - nulls
        return len(table.to_pandas(columns=[name], filters=[(name, "=", value)]))

    return count


def in_sql(name: str, value: Any, time: str) -> str:
    if value is IS_NULL or value is IS_NOT_NULL:
        return f'"{name}" {value}'
    text = time.format(value) if isinstance(value, datetime) else str(value).upper() if isinstance(value, bool) else repr(value)
    return f'"{name}" = ' + ("'" + value.replace("'", "''") + "'" if isinstance(value, str) else text)


def by_duckdb(table: DeltaTable) -> Count:
    asked = duckdb.connect()
    asked.register("asked", table.to_pyarrow_dataset())

    def count(name: str, value: Any) -> int:
        condition = in_sql(name, value, "TIMESTAMPTZ '{}'")
        return int(asked.sql(f"SELECT count(*) FROM asked WHERE {condition}").fetchall()[0][0])

    return count


def by_datafusion(table: DeltaTable) -> Count:
    asked = QueryBuilder().register("asked", table)

    def count(name: str, value: Any) -> int:
        condition = in_sql(name, value, "arrow_cast('{}', 'Timestamp(Microsecond, Some(\"UTC\"))')")
        answer = asked.execute(f"SELECT count(*) AS n FROM asked WHERE {condition}")
        return int(pa.RecordBatchReader.from_stream(answer).read_all()["n"][0].as_py())

    return count


def values_of(table: DeltaTable, most: int) -> Iterator[tuple[str, Any, int]]:
    """(column, value, rows that have it), by a plain look at all rows. most: so many values of a column, from all its rows."""
    rows = table.to_pyarrow_dataset().to_table()
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        yield name, IS_NULL, column.null_count
        yield name, IS_NOT_NULL, len(column) - column.null_count
        if not pa.types.is_nested(column.type) and not pa.types.is_binary(column.type):
            found = [row for row in column.value_counts().to_pylist() if row["values"] is not None]
            yield from ((name, row["values"], row["counts"]) for row in found[:: max(1, len(found) // most)])


def wrong(table: DeltaTable, count: Count, most: int = 99) -> list[tuple[str, Any, int, int]]:
    return [(name, value, got, rows) for name, value, rows in values_of(table, most) if (got := count(name, value)) != rows]


READERS = (by_dataset_of, by_pandas, by_duckdb, by_datafusion)


def wrong_in_spark(spark: SparkSession, place: Path, most: int, one_in: int = 1) -> list[Any]:
    """one_in: one in so many questions is asked; with 2 no column and no kind of question is left out."""
    from pyspark.sql import functions as F

    frame = spark.read.format("delta").load(str(place))
    expected = list(values_of(DeltaTable(place), most))[::one_in]

    def counted(number: int, name: str, value: Any) -> Any:
        column = F.col(name)
        asked = column.isNull() if value is IS_NULL else column.isNotNull() if value is IS_NOT_NULL else column == F.lit(value)
        return frame.where(asked).agg(F.lit(number).alias("number"), F.count("*").alias("n"))

    asked = [counted(number, name, value) for number, (name, value, _) in enumerate(expected)]
    found: dict[int, int] = {}
    for start in range(0, len(asked), 50):
        found |= {row["number"]: row["n"] for row in reduce(lambda a, b: a.union(b), asked[start : start + 50]).collect()}
    return [(*each, found[number]) for number, each in enumerate(expected) if found[number] != each[2]]
