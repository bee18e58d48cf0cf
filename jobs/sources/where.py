"""Takes an SQL condition apart with Spark itself: which columns it asks, and what of it a source can take over.

All columns of sources have small letters; Spark finds them by others, too.

Spark would hand such conditions to a source by itself (`StoreSource.right_with_pushed`), and then mixes up questions. So each
question gets a frame of its own here, whose source knows the conditions by an option.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql.types import StructType

from jobs.runtime.faults import reason
from jobs.sources.conditions import KINDS, Condition, condition_of
from schemas.tables import Column as StoreColumn
from schemas.tables import field_json
from store_io.base.errors import UsageError


@dataclass(frozen=True)
class Where:
    """What a condition asks.

    columns: all that it names.  conditions: what each row meets that meets the whole condition.
    """

    columns: tuple[str, ...]
    conditions: tuple[Condition, ...]


def take_apart(spark: SparkSession, where: str | Column, columns: list[StoreColumn]) -> Where:
    """Return what the condition asks of these columns; no row is read. Raises UsageError with Spark's reason."""
    schema = StructType.fromJson({"type": "struct", "fields": [field_json(column) for column in columns]})
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has no context; its plans lie elsewhere
        return Where((), ())
    try:
        nothing: Any = spark.createDataFrame(context.emptyRDD(), schema)
        execution = nothing.where(where)._jdf.queryExecution()
        names = [column.name().lower() for column in _each(execution.analyzed().condition().references().toSeq())]
        found = [_condition(spark, part) for part in _parts(execution.optimizedPlan())]
    except PySparkException as problem:
        raise UsageError(f"where {str(where)!r}: {reason(problem)}") from None
    return Where(tuple(names), tuple(one for one in found if one is not None))


def _parts(plan: Any) -> Iterator[Any]:
    """Yield the conditions that all hold, of a plan that has one branch. None: no row can meet them, or each does."""
    while plan.nodeName() != "Filter":
        if plan.children().isEmpty():
            return
        plan = plan.children().head()
    left = [plan.condition()]
    while left:
        part = left.pop()
        if part.nodeName() == "And":
            left += [part.right(), part.left()]
        else:
            yield part


def _condition(spark: SparkSession, part: Any) -> Condition | None:
    """Return what Spark would hand to a source; None if it would not, or no source could use it."""
    strategy = getattr(spark._jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy$")  # type: ignore[union-attr]
    translated = getattr(strategy, "MODULE$").translateFilter(part, False)
    if not translated.isDefined():
        return None
    found = translated.get()
    kind = found.getClass().getSimpleName()
    if kind not in KINDS:
        return None
    return condition_of(kind, found.attribute().lower(), map(_plain, found.values() if kind == "In" else [found.value()]))


def _plain(value: Any) -> Any:
    """Return a value as Python's; a time as ms since 1970, rounded down."""
    java = value.getClass().getName() if isinstance(value, JavaObject) else None
    if java == "java.sql.Timestamp":
        return value.getTime()
    return value.toEpochMilli() if java == "java.time.Instant" else value


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))
