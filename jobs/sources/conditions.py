"""Spark's conditions as filters of messages. Where PySpark passes none to a source (4.0), nothing here is called."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from store_io.messages.message_filter import EVERY_MESSAGE, TIMES, Contents, MessageFilter, Range

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
with suppress(ImportError):
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        LessThan,
        LessThanOrEqual,
        StringContains,
    )

_TIMES = {field: name for name, field in TIMES.items()}  # a column of times -> the filter's range
_NUMBERS = {"phy_offset": "phy_offsets", "queue_offset": "queue_offsets", **{f"{time}_ms": name for time, name in _TIMES.items()}}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_message_filter(condition: Filter) -> tuple[MessageFilter, bool]:
    """Return (a filter that keeps at least what the condition keeps, whether it is exact)."""
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    value = getattr(condition, "value", None)
    if len(path) != 1 or value is None:
        return EVERY_MESSAGE, False
    name = path[0]
    values = list(value) if isinstance(condition, In) else [value]
    one_of = isinstance(condition, In | EqualTo | EqualNullSafe)
    if name == "topic" and one_of and all(isinstance(v, str) for v in values):
        return MessageFilter(topics=frozenset(values)), True
    if name == "tags" and one_of and all(isinstance(v, str) for v in values):
        return MessageFilter(tags=frozenset(values)), True
    if name == "queue_id" and one_of and all(type(v) is int for v in values):
        return MessageFilter(queue_ids=frozenset(values)), True
    bounds: Any
    if name in _NUMBERS and values and all(type(v) is int for v in values):
        bounds = _bounds(condition, values)
        return MessageFilter(**{_NUMBERS[name]: bounds}), len(values) == 1
    if name in _TIMES and all(isinstance(v, datetime) and v.tzinfo is not None for v in values) and values:
        bounds = _bounds(condition, [(v - _EPOCH) // timedelta(milliseconds=1) for v in values], coarse=True)
        return MessageFilter(**{_TIMES[name]: bounds}), False
    return EVERY_MESSAGE, False


def as_contents(condition: Filter) -> tuple[Contents, bool] | None:
    """Return (contents that each message has which meets the condition, whether only these have); None: it is none on
    contents."""
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    if path == ("keys",):
        text = getattr(condition, "value", None)
        if isinstance(text, str) and isinstance(condition, StringContains | EqualTo | EqualNullSafe):
            return Contents(in_keys=(text,)), isinstance(condition, StringContains)
    for name in ("unique_key", "msg_id"):
        texts = wanted_texts(condition, name)
        if texts is not None:
            return (Contents(unique_keys=texts) if name == "unique_key" else Contents(msg_ids=texts)), True
    return None


def _bounds(condition: Filter, values: Sequence[int], coarse: bool = False) -> Range:
    """Return the half-open range that the condition leaves. coarse: values were rounded down."""
    low, high = min(values), max(values)
    if isinstance(condition, In | EqualTo | EqualNullSafe):
        return low, high + 1
    if isinstance(condition, GreaterThanOrEqual):
        return low, None
    if isinstance(condition, GreaterThan):
        return (low if coarse else low + 1), None
    if isinstance(condition, LessThanOrEqual):
        return None, high + 1
    if isinstance(condition, LessThan):
        return None, (high + 1 if coarse else high)
    return None, None


def wanted_texts(condition: Filter, column: str) -> frozenset[str] | None:
    """Return the texts of this column that the condition keeps, and nothing else. None if it says nothing so simple."""
    if getattr(condition, "attribute", ()) != (column,) or not isinstance(condition, In | EqualTo | EqualNullSafe):
        return None
    value = condition.value
    values: list[Any] = list(value) if isinstance(condition, In) else [value]
    return frozenset(values) if all(isinstance(v, str) for v in values) else None
