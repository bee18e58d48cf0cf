"""The columns of the tables as Arrow schemas."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.arrow import DATASET_SCHEMAS, arrow_schema, arrow_type
from schemas.tables import DATASETS, TABLES


def test_every_column_has_a_type_and_its_comment() -> None:
    for columns in (*TABLES.values(), *DATASETS.values()):
        schema = arrow_schema(columns)
        assert schema.names == [column.name for column in columns]
        for column in columns:
            assert schema.field(column.name).metadata == {b"comment": column.comment.encode()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("long", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ({"type": "array", "elementType": "string", "containsNull": False}, pa.list_(pa.string())),
        ({"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}, pa.map_(pa.string(), pa.int64())),
        ({"type": "struct", "fields": [{"name": "a", "type": "binary"}]}, pa.struct([("a", pa.binary())])),
    ],
)
def test_types(given: object, expected: pa.DataType) -> None:
    assert arrow_type(given) == expected  # type: ignore[arg-type]


def test_datasets_are_those_of_the_tables() -> None:
    assert DATASET_SCHEMAS.keys() == DATASETS.keys()
