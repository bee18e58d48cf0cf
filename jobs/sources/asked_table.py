"""A source as a table that Spark asks for the columns and conditions of each question, by itself.

Spark 4.2 prunes no source in Python: all columns are made, and taken apart again. Of any other table it asks only what a question
needs (`SupportsPushDownRequiredColumns`, `SupportsPushDownFilters`), each time that it plans one, and for each place at which the
question names the table. So a frame of `sources.read` is such a table, in Java (StoreTable.java). It makes the scan of the source
in Python for that place alone, with these columns and conditions as options. No jar is needed: Spark has a compiler for what it
generates, Janino.

It may go with the first release of Spark that prunes Python sources and is in `StoreSource.right_with_pushed`: 4.2 is neither.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from jobs.runtime.faults import reason
from schemas.tables import Column as StoreColumn
from schemas.tables import field_json
from store_io.base.errors import UsageError

_CLASS = "StoreTable"
_constructors: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # of the compiled class, by the connection to a JVM


def asked_frame(
    spark: SparkSession, source: str, options: Mapping[str, str], schema: StructType, most_rows: int | None
) -> DataFrame | None:
    """Return the source as such a table; None if the session's JVM is elsewhere, or its Spark has other interfaces.

    options: without `columns`, of which the schema says more.
    most_rows: None if it is not known.
    """
    try:
        jvm: Any = spark.sparkContext._jvm
    except Exception:  # Spark Connect has no context; its server plans
        return None
    try:
        words = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 5)  # type: ignore[union-attr]
        words[0], words[1], words[2] = spark._jsparkSession, source, jvm.java.util.HashMap()
        for name, text in options.items():
            words[2].put(name, text)
        words[3] = spark._jsparkSession.parseDataType(schema.json())
        words[4] = most_rows
        return DataFrame(_constructor(jvm).newInstance(words).frame(), spark)
    except (AttributeError, TypeError, Py4JError, PySparkException):  # another release has other interfaces
        return None


def _constructor(jvm: Any) -> Any:
    connection = jvm._gateway_client
    if connection not in _constructors:
        text = pkgutil.get_data(__package__, f"{_CLASS}.java")
        assert text is not None
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
        compiler.cook(text.decode())
        _constructors[connection] = compiler.getClassLoader().loadClass(_CLASS).getConstructors()[0]
    return _constructors[connection]


def asked_columns(spark: SparkSession, where: str | Column, columns: list[StoreColumn]) -> tuple[str, ...]:
    """Return the columns that a condition names, in small letters, as all of sources have them; no row is read.

    Raises UsageError with Spark's reason.
    """
    schema = StructType.fromJson({"type": "struct", "fields": [field_json(column) for column in columns]})
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect: its plans lie elsewhere
        return ()
    try:
        nothing: Any = spark.createDataFrame(context.emptyRDD(), schema)
        execution = nothing.where(where)._jdf.queryExecution()
        execution.optimizedPlan()  # raises what fails for any rows
        return tuple(column.name().lower() for column in _each(execution.analyzed().condition().references().toSeq()))
    except PySparkException as problem:
        raise UsageError(f"where {str(where)!r}: {reason(problem)}") from None


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))
