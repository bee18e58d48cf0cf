"""SQL over Delta tables, by delta-rs in this process: no JVM, no Spark job. By Spark where delta-rs cannot read them.

For questions with small answers, such as the rows of `runs`. 1,000 runs of 50 stores are read in about a second, where Spark
needs 25: it begins with a JVM, and reads each run's small file in a task. The answer is held in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from jobs.report.values_as_rows import columns_of, values
from jobs.tables.table_files import delta_rs_options, hadoop_path, is_local, of_table, refuse_misread
from schemas.rows import Row
from schemas.table_views import VIEWS
from schemas.tables import TABLES, Column, ColumnType, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_NO_TABLE = ("DELTA_TABLE_NOT_FOUND", "PATH_NOT_FOUND")  # the latter without the folder
_TYPES = {
    "string": "VARCHAR",
    "integer": "INT",
    "long": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
}


class DeltaQuery:
    """One table in its newest version. Raises TablesFailed if it cannot be read.

    uri: a folder or a URI.
    declared: the table's columns as this version writes them, which give a column that is younger than the table its type.
    """

    def __init__(self, uri: str, declared: Iterable[Column] = ()):
        self.uri = uri
        self._types = {column.name: column.type for column in declared}
        self.table: Any = of_table(self.uri, self._open)
        self._names = {field.name for field in self.table.schema().fields} if self.table is not None else set()

    def exists(self) -> bool:
        """Say whether the table has a version."""
        return self.table is not None

    def ask(self, select: Sequence[str], rest: str = "") -> list[Row]:
        """Return the rows of a SELECT on the table, which must exist. Raises TablesFailed.

        select: columns, or expressions ("sum(count) AS count"). A column that is younger than the table is null.
        rest: what follows in the statement ("WHERE ... GROUP BY ...").
        """
        what = ", ".join(self._column(item) if item.isidentifier() else item for item in select)
        return list(of_table(self.uri, lambda: answer({"asked": self}, f"SELECT {what} FROM asked {rest}")))

    def read(self, shape: type[T], rest: str = "") -> list[T]:
        """Return rows of the table, which must exist, as values of a dataclass. Raises TablesFailed."""
        return values(shape, self.ask(columns_of(shape), rest))

    def stored(self) -> str:
        """Return SQL for all declared columns of the table, registered as `asked`. One that is younger than the table is null."""
        return ", ".join(map(self._column, self._types))

    def _column(self, name: str) -> str:
        return f'"{name}"' if name in self._names else f'{null(self._types.get(name, "string"))} AS "{name}"'

    def _open(self) -> Any:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        local = is_local(self.uri)
        place = hadoop_path(self.uri) if local else self.uri
        if local and not os.path.isdir(f"{place}/_delta_log"):
            return None
        refuse_misread(self.uri)
        try:
            return DeltaTable(place, storage_options=delta_rs_options(place))
        except TableNotFoundError as problem:
            if "scheme" in str(problem):  # of an address that delta-rs does not know at all
                raise
            return None


def answer(tables: Mapping[str, DeltaQuery], sql: str) -> list[Row]:
    """Return the rows of a statement on tables, by their names in it."""
    from deltalake import QueryBuilder

    builder = QueryBuilder()
    for name, asked in tables.items():
        builder = builder.register(name, asked.table)
    return _rows(pa.RecordBatchReader.from_stream(builder.execute(sql)).read_all())  # pa.table() would import pandas


def _rows(found: pa.Table) -> list[Row]:
    for index, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):  # µs since 1970 in UTC: what the tables hold may lie outside of datetime
            found = found.set_column(index, field.name, found.column(index).cast(pa.int64()))
    rows: list[Row] = found.to_pylist()
    return rows


class SparkTable:
    """One table by Spark, as `DeltaQuery` has it by delta-rs. Raises TablesFailed if it cannot be read."""

    def __init__(self, spark: SparkSession, uri: str, declared: Iterable[Column]):
        from pyspark.sql.types import StructType

        frame = of_table(uri, lambda: loaded(spark, uri))
        self.frame = None if frame is None else frame.to(StructType.fromJson(struct_of(*declared)).toNullable())

    def exists(self) -> bool:
        """Say whether the table has a version."""
        return self.frame is not None

    def stored(self) -> str:
        """Return SQL for all declared columns of the table. One that is younger than the table is null."""
        return "*"


class BySpark:
    """Opens tables that delta-rs cannot read by Spark, and asks them."""

    def __init__(self, spark: SparkSession):
        self._spark = spark.newSession()  # with views of its own
        for name in ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers"):  # the second needs the first
            self._spark.conf.set(name, "true")

    def open(self, uri: str, declared: Iterable[Column]) -> SparkTable:
        """Return a table in its newest version."""
        return SparkTable(self._spark, uri, declared)

    def answer(self, tables: Mapping[str, Any], sql: str) -> list[Row]:
        """See `answer`."""
        for name, asked in tables.items():
            asked.frame.createOrReplaceTempView(name)
        return _rows(self._spark.sql(sql).toArrow())


def loaded(spark: SparkSession, uri: str) -> DataFrame | None:
    """Return a table as Spark has it; None if there is no version, as when a writer has only made the folder."""
    from pyspark.errors import AnalysisException

    try:
        return spark.read.format("delta").load(uri)
    except AnalysisException as problem:
        if problem.getCondition() in _NO_TABLE:
            return None
        raise


def named_in(statement: str) -> tuple[list[str], list[str]]:
    """Return the tables that a statement of SQL reads, and what comes after WITH: the views that it names."""
    views: list[str] = []
    for view, definition in reversed(VIEWS.items()):
        if _names(view, " ".join((statement, *views))):
            views.insert(0, f"{view} AS ({definition})")
    return [name for name in TABLES if _names(name, " ".join((statement, *views)))], views


def _names(table: str, statement: str) -> bool:
    return re.search(rf"\b{table}\b", re.sub("'[^']*'", "", statement)) is not None


def text(value: str) -> str:
    """Return a text as SQL has it. To Spark a backslash is an escape, to delta-rs it is none: both understand `chr`."""
    return "'" + value.replace("'", "''").replace("\\", "' || chr(92) || '") + "'"


def null(kind: ColumnType) -> str:
    """Return SQL for a null of this type of a column. DataFusion cannot unnest a null without a type."""
    if isinstance(kind, str):
        return f"CAST(NULL AS {_TYPES[kind]})"
    if kind["type"] == "array":
        return f"CASE WHEN FALSE THEN make_array({null(kind['elementType'])}) END"
    fields = ", ".join(f"{text(field['name'])}, {null(field['type'])}" for field in kind["fields"])
    return f"CASE WHEN FALSE THEN named_struct({fields}) END"


def one_of(column: str, values: Iterable[str]) -> str:
    """Return a condition: the column is one of these. Never true without any."""
    listed = ", ".join(text(value) for value in values)
    return f'"{column}" IN ({listed})' if listed else "FALSE"
