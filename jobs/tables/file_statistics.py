"""Statistics of a data file, as the log of its table has them: of every column, or none at all.

Readers skip files by them. As soon as the log has bounds of other columns and none of this one, delta-rs' dataset takes the
column for null, and so do pandas, DuckDB and polars, which read through it: rows vanish. So each column has the number of its
nulls, and its bounds unless all of it is null. So have flags, of which Spark writes and reads no bounds. Lists, maps and structs
have neither, and bytes have no bounds: no reader expects them.

The numbers come from the Parquet footer. What a footer does not say is read in the file: bounds of texts over 4 KiB, times as
Spark may write them, and whether there is a NaN, which is within no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from schemas.tables import RUN_ID

FOOTER_BYTES = 4096  # longest text of which pyarrow writes bounds into a footer
_BOUND_CHARACTERS = 32  # longest bound in a log, as Spark writes it
_LAST_CHARACTER = "\U0010ffff"
_NO_BOUNDS = "binary"  # in Delta's protocol
_BOUNDED_BY_SPARK = ("string", "integer", "long", "double", "timestamp")
_NAMED, _COUNTED = "dataSkippingStatsColumns", "dataSkippingNumIndexedCols"  # properties of tables
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Bound = bool | int | float | str  # as JSON has it
Read = Callable[
    [str, Sequence[int]], Iterable[pa.Array]
]  # name of a column, numbers of row groups -> their values, or the extremes


@dataclass(frozen=True)
class FileStatistics:
    """Statistics of one file. Picklable.

    nulls: column -> how many of its rows are null.
    bounds: column -> (not above its least value, not below its greatest value). None: those of one column cannot be said.
    """

    rows: int
    nulls: Mapping[str, int]
    bounds: Mapping[str, tuple[Bound, Bound]] | None

    def in_log(self, columns: Iterable[str]) -> dict[str, Any]:
        """Return the statistics as a log has them: of these columns of the table, those too that are younger than the file."""
        if self.bounds is None:
            return {"numRecords": self.rows}
        nulls = {name: self.nulls.get(name, self.rows) for name in columns}
        known = {name: self.bounds[name] for name in nulls if name in self.bounds}
        least, most = ({name: ends[end] for name, ends in known.items()} for end in (0, 1))
        return {"numRecords": self.rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def counted_columns(struct: Mapping[str, Any], partition: Iterable[str]) -> dict[str, str]:
    """Return column -> type of those that have statistics.

    struct: the table's columns as Delta's log has them.
    """
    parts = frozenset(partition)
    return {f["name"]: f["type"] for f in struct["fields"] if isinstance(f["type"], str) and f["name"] not in parts}


def property_for_spark(struct: Mapping[str, Any]) -> tuple[str, str]:
    """Return a property of a new table, and its value, by which Spark writes statistics of no column that it knows no bounds of.

    struct: the table's columns as Delta's log has them.
    """
    names = [f"`{field['name']}`" for field in struct["fields"] if field["type"] in _BOUNDED_BY_SPARK]
    return (_NAMED, ",".join(names)) if names else (_COUNTED, "0")


def is_partial(known: Mapping[str, Any], columns: Mapping[str, str]) -> bool:
    """Say whether a file's statistics in a log leave a column out though they have others.

    columns: those that have statistics, with their types.
    """
    rows, nulls = known.get("numRecords"), known.get("nullCount") or {}
    least, most = known.get("minValues") or {}, known.get("maxValues") or {}
    if rows is None or not (nulls or least or most):
        return False

    def is_said(name: str) -> bool:
        count = nulls.get(name)
        if count is None:
            return False
        return count >= rows or columns[name] == _NO_BOUNDS or None not in (least.get(name), most.get(name))

    return not all(is_said(name) for name in columns)


def statistics_of(footer: pq.FileMetaData, read: Read, schema: pa.Schema | None = None) -> FileStatistics:
    """Return the statistics of a Parquet file.

    read: gives values that the footer does not say enough of.
    schema: their types; None: as the footer has them.
    """
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
    nulls: dict[str, int] = {}
    bounds: dict[str, tuple[Bound, Bound]] = {}
    whole = True
    for field in schema or footer.schema.to_arrow_schema():
        if pa.types.is_nested(field.type):
            continue
        groups = [footer.row_group(number).column(places[field.name]).statistics for number in range(footer.num_row_groups)]
        silent = [number for number, group in enumerate(groups) if group is None or not group.has_null_count]
        values = list(read(field.name, silent)) if silent else []
        if sum(map(len, values)) != sum(footer.row_group(number).num_rows for number in silent):
            whole = False
            continue
        said = (group.null_count for number, group in enumerate(groups) if number not in silent)
        nulls[field.name] = sum(said) + sum(each.null_count for each in values)
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if nulls[field.name] == footer.num_rows or pa.types.is_binary(kind):
            continue
        ends = _ends(field.name, kind, groups, read)
        known = None if ends is None else _in_log(field.name, kind, *ends)
        if known is None:
            whole = False
        else:
            bounds[field.name] = known
    return FileStatistics(footer.num_rows, nulls, bounds if whole else None)


def statistics_in(source: Any) -> FileStatistics:
    """Return the statistics of a Parquet file that can be read. source: its path, or the open file."""
    file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")  # in ns a year after 2262 would become another one

    def read(name: str, groups: Sequence[int]) -> Iterator[pa.Array]:
        for group in groups:
            yield file.read_row_group(group, [name]).column(0)

    return statistics_of(file.metadata, read, file.schema_arrow)


class LongTexts:
    """Extremes of columns with a text that is too long for a footer, gathered while a file is written."""

    def __init__(self) -> None:
        self._found: dict[str, list[pa.Array]] = {}

    def add(self, table: pa.Table) -> None:
        """Take what is written as one row group or more."""
        for field, column in zip(table.schema, table.columns, strict=True):
            if pa.types.is_string(field.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > FOOTER_BYTES:
                self._found.setdefault(field.name, []).append(pa.array(pc.min_max(column).as_py().values(), field.type))

    def read(self, name: str, groups: Sequence[int]) -> Iterable[pa.Array]:
        """See `Read`: groups without bounds are among those that were taken."""
        return self._found.get(name, ()) if groups else ()


def _ends(name: str, kind: pa.DataType, groups: Sequence[Any], read: Read) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a column, times as whole numbers. None if there is a NaN, or if they are
    unknown."""
    ends: list[Any] = []
    unsaid = []
    for number, group in enumerate(groups):
        if group is None or (group.num_values and (pa.types.is_floating(kind) or not group.has_min_max)):
            unsaid.append(number)
        elif group.num_values:
            ends += (group.min_raw, group.max_raw) if pa.types.is_timestamp(kind) else (group.min, group.max)
    for values in read(name, unsaid) if unsaid else ():
        if pa.types.is_floating(kind) and pc.any(pc.is_nan(values)).as_py():
            return None
        found = pc.min_max(values.cast(pa.int64()) if pa.types.is_timestamp(kind) else values).as_py().values()
        ends += (value for value in found if value is not None)
    return (min(ends), max(ends)) if ends else None


def _in_log(name: str, kind: pa.DataType, low: Any, high: Any) -> tuple[Bound, Bound] | None:
    """Return the bounds of a column as a log has them; None if it cannot have them."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return (low, high) if name == RUN_ID.name else (low[:_BOUND_CHARACTERS], _not_below(high))
    if pa.types.is_timestamp(kind):
        per = _PER_SECOND[kind.unit]
        first, last = _time(low * 1000 // per), _time(-(-high * 1000 // per))
        return None if first is None or last is None else (first, last)
    if pa.types.is_floating(kind):
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None
    return (low, high) if pa.types.is_boolean(kind) or pa.types.is_integer(kind) else None


def _not_below(text: str) -> str:
    """Return a short text that no text with the same beginning is above, or the text itself if there is none."""
    if len(text) <= _BOUND_CHARACTERS:
        return text
    kept = text[:_BOUND_CHARACTERS].rstrip(_LAST_CHARACTER)
    if not kept:
        return text
    after = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if after == 0xD800 else after)  # what lies between are no characters


def _time(ms: int) -> str | None:
    """Return a time since 1970 as a log has it; None outside of the years 1 to 9999."""
    try:
        return (_EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None
