"""Columns of `tables` as Arrow schemas: for Parquet files, and for batches between Python and Spark. Comments are metadata."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from schemas.tables import DATASETS, Column, ColumnType

_SIMPLE = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_type(of: ColumnType) -> pa.DataType:
    """Return a column's type."""
    if isinstance(of, str):
        return _SIMPLE[of]
    if of["type"] == "array":
        return pa.list_(arrow_type(of["elementType"]))
    if of["type"] == "map":
        return pa.map_(arrow_type(of["keyType"]), arrow_type(of["valueType"]))
    return pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in of["fields"]])


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Return the columns in their order, nullable, each with its comment."""
    return pa.schema([pa.field(c.name, arrow_type(c.type), metadata={"comment": c.comment}) for c in columns])


DATASET_SCHEMAS: dict[str, pa.Schema] = {name: arrow_schema(columns) for name, columns in DATASETS.items()}
"""Record-level dataset -> its schema. Texts that come from few values (topic, kind) are dictionaries in the files."""
