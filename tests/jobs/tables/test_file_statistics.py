"""Statistics of one file: bounds that hold, at each end, and none where a column cannot have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.tables.file_statistics import LongTexts, counted_columns, is_partial, statistics_in, statistics_of

LAST = "\U0010ffff"


def known(values: Any, kind: pa.DataType, name: str = "c", **options: Any) -> dict[str, Any]:
    """The statistics of a column in a log."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array(values, kind)}), sink, **options)
    return statistics_in(pa.BufferReader(sink.getvalue())).in_log([name])


def bounds(values: Any, kind: pa.DataType, name: str = "c", **options: Any) -> Any:
    found = known(values, kind, name, **options)
    return (found["minValues"][name], found["maxValues"][name]) if "minValues" in found else None


@pytest.mark.parametrize("size", [1, 31, 32, 33, 4095, 4096, 4097, 40_000])
@pytest.mark.parametrize("last", ["b", "\ud7ff", "\ue000", "🚀", LAST])
def test_a_long_text_is_cut_to_a_bound(size: int, last: str) -> None:
    text = ("a" * 31 + last + last * size)[:size]
    low, high = bounds([text], pa.string())
    assert low.encode() <= text.encode() <= high.encode() and text.startswith(low) and len(low) == min(size, 32)
    assert len(high) <= 32 and (high == text) == (size <= 32)


def test_a_text_without_a_shorter_bound_is_its_own() -> None:
    assert bounds([LAST * 40, "a"], pa.string()) == ("a", LAST * 40)
    assert bounds([LAST * 31 + "b" * 9], pa.string())[1] == LAST * 31 + "c"


def test_ids_of_runs_are_never_cut() -> None:
    assert bounds(["r" * 100], pa.string(), "run_id") == ("r" * 100, "r" * 100)


def test_groups_with_and_without_long_texts_are_one_file() -> None:
    texts = ["m", "n", "z" * 5000, "k", "b", "c"]
    assert bounds(texts, pa.string(), row_group_size=2) == ("b", "z" * 31 + "{")
    assert bounds([None, None, *texts], pa.string(), row_group_size=2) == ("b", "z" * 31 + "{")


@pytest.mark.parametrize("size", [4096, 4097])
def test_long_texts_are_remembered_while_a_file_is_written(size: int) -> None:
    long, footer, schema = LongTexts(), [], pa.schema([("c", pa.string()), ("n", pa.int64())])
    with pq.ParquetWriter(pa.BufferOutputStream(), schema, metadata_collector=footer) as writer:
        for texts in (["m", "n"], ["z" * size, None], ["b", "c"]):
            table = pa.table({"c": texts, "n": [1, 2]}, schema)
            long.add(table)
            writer.write_table(table)
    found = statistics_of(footer[0], long.read).in_log(["c", "n"])
    assert (found["minValues"], found["maxValues"]) == ({"c": "b", "n": 1}, {"c": "z" * 31 + "{", "n": 2})
    assert (found["numRecords"], found["nullCount"]) == (6, {"c": 1, "n": 0})


@pytest.mark.parametrize(
    ("us", "low", "high"),
    [
        (1_000, "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.001Z"),
        (1_001, "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z"),
        (1_999, "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z"),
        (-1, "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00.000Z"),
        (253_402_300_799_999_000, "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_of_whole_milliseconds_around_the_value(us: int, low: str, high: str) -> None:
    assert bounds([us, None], pa.timestamp("us", "UTC")) == (low, high)


def test_times_as_spark_may_write_them_are_read() -> None:
    values = [1_000_001, None, 2_000_000]
    found = known(values, pa.timestamp("ns"), use_deprecated_int96_timestamps=True, row_group_size=2)
    assert (found["minValues"], found["maxValues"]) == ({"c": "1970-01-01T00:00:00.001Z"}, {"c": "1970-01-01T00:00:00.002Z"})
    assert found["nullCount"] == {"c": 1}
    far = [1_767_225_600_000_000, 16_725_225_600_000_000]  # 2026, and 2500, which is beyond what ns can say
    assert bounds(far, pa.timestamp("us"), use_deprecated_int96_timestamps=True) == (
        "2026-01-01T00:00:00.000Z",
        "2500-01-01T00:00:00.000Z",
    )


@pytest.mark.parametrize("us", [-62_135_596_800_000_001, 253_402_300_799_999_001, 1 << 62])
def test_a_time_outside_of_all_years_leaves_the_file_without_statistics(us: int) -> None:
    assert known([us], pa.timestamp("us", "UTC")) == {"numRecords": 1}


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_within_no_bounds_leaves_the_file_without_statistics(odd: float) -> None:
    assert known([1.0, odd, None], pa.float64()) == {"numRecords": 3}
    assert known([1.0, 1.0, None, odd], pa.float64(), row_group_size=2) == {"numRecords": 4}
    assert bounds([1.5, None, 2.5], pa.float64(), row_group_size=1) == (1.5, 2.5)


def test_flags_have_bounds_and_nulls_alone_have_none() -> None:
    assert known([True, None, False], pa.bool_())["maxValues"] == {"c": True} and bounds([False], pa.bool_()) == (False, False)
    assert known([None, None], pa.bool_()) == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"c": 2}}


def test_lists_and_the_partition_have_no_statistics_and_bytes_no_bounds() -> None:
    struct = {
        "fields": [
            {"name": "month", "type": "string"}, {"name": "l", "type": {"type": "array"}}, {"name": "b", "type": "binary"},
            {"name": "younger", "type": "long"},
        ]
    }  # fmt: skip
    columns = counted_columns(struct, ["month"])
    assert columns == {"b": "binary", "younger": "long"}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"l": [["x"], None], "b": [b"y", None], "month": ["m", "m"]}), sink)
    found = statistics_in(pa.BufferReader(sink.getvalue())).in_log(columns)
    assert found == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {"b": 1, "younger": 2}}
    assert not is_partial(found, columns)


@pytest.mark.parametrize(
    ("parts", "partial"),
    [
        ({}, False),
        ({"numRecords": 2}, False),
        ({"numRecords": 2, "minValues": {"a": 1}, "maxValues": {"a": 1}, "nullCount": {}}, True),
        ({"numRecords": 2, "minValues": {"a": 1}, "maxValues": {"a": 1}, "nullCount": {"a": 0, "b": 2}}, False),
        ({"numRecords": 2, "minValues": {"a": 1}, "maxValues": {"a": 1}, "nullCount": {"a": 0, "b": 1}}, True),
        ({"numRecords": 2, "minValues": {"a": 1, "b": False}, "maxValues": {"a": 1}, "nullCount": {"a": 0, "b": 1}}, True),
        ({"numRecords": 2, "minValues": {"a": 1, "b": False}, "maxValues": {"a": 1, "b": False}, "nullCount": {"a": 0}}, True),
        (
            {
                "numRecords": 2,
                "minValues": {"a": 1, "b": False},
                "maxValues": {"a": 1, "b": False},
                "nullCount": {"a": 0, "b": 0},
            },
            False,
        ),
    ],
)
def test_what_is_partial(parts: dict[str, Any], partial: bool) -> None:
    assert is_partial(parts, {"a": "long", "b": "boolean"}) == partial
