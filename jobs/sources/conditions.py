"""Conditions on single columns, as a source takes them over: it reads no row that one of them surely leaves out.

A condition only narrows what is read. Whoever hands one over asks it of the rows again: a row more is never wrong, a row less is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from store_io.base.errors import UsageError, parsed
from store_io.messages.message_filter import TIMES, Contents, MessageFilter, Range

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_TIMES = {field: name for name, field in TIMES.items()}  # a column of times -> the filter's range
_NUMBERS = {"phy_offset": "phy_offsets", "queue_offset": "queue_offsets", **{f"{time}_ms": name for time, name in _TIMES.items()}}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_OF = ("EqualTo", "EqualNullSafe", "In")
_MORE, _LESS = ("GreaterThan", "GreaterThanOrEqual"), ("LessThan", "LessThanOrEqual")
KINDS = (*_ONE_OF, *_MORE, *_LESS, "StringContains")


@dataclass(frozen=True)
class Condition:
    """One column compared with texts or whole numbers; a column of times with ms since 1970, rounded down.

    kind: one of KINDS, which are Spark's own names.  values: one, but for In.
    """

    kind: str
    column: str
    values: tuple[str | int, ...]

    @property
    def bounds(self) -> Range:
        """Return a half-open range in which each number lies that meets it; the values are numbers, at least one."""
        numbers: Sequence[Any] = self.values
        low, high = min(numbers), max(numbers)
        if self.kind in _ONE_OF:
            return low, high + 1
        coarse = self.column in _TIMES
        if self.kind in _MORE:
            return low + (self.kind == "GreaterThan" and not coarse), None
        return None, high + (self.kind == "LessThanOrEqual" or coarse)


def condition_of(kind: str, column: str, values: Iterable[object]) -> Condition | None:
    """Return the condition with these values; None if no source can use it."""
    given = list(map(_plain, values))
    plain = tuple(value for value in given if isinstance(value, str | int) and not isinstance(value, bool))
    if kind not in KINDS or len(plain) != len(given) or not (len(plain) == 1 or plain and kind == "In"):
        return None
    return Condition(kind, column, plain)


def of_spark(filters: Iterable[Filter]) -> list[Condition]:
    """Return the conditions among those that Spark hands to a reader."""
    found = []
    for one in filters:
        path: tuple[str, ...] = getattr(one, "attribute", ())
        value: Any = getattr(one, "value", None)
        kind = type(one).__name__
        if len(path) == 1:
            found.append(condition_of(kind, path[0], value if kind == "In" and isinstance(value, tuple | list) else (value,)))
    return [condition for condition in found if condition is not None]


def as_text(conditions: Iterable[Condition]) -> str:
    """Return conditions as an option of a source holds them, JSON."""
    return json.dumps([[one.kind, one.column, list(one.values)] for one in conditions])


def from_text(text: str) -> list[Condition]:
    """Return the conditions that `as_text` made a text of. Raises UsageError."""
    try:
        found = [condition_of(kind, column, values) for kind, column, values in parsed(json.loads, text)]
    except (TypeError, ValueError):
        found = [None]
    if any(one is None or not isinstance(one.column, str) for one in found):
        raise UsageError(f"option conditions={text[:100]!r}: only sources.read sets it, of what a question asks")
    return [one for one in found if one is not None]


def as_message_filter(condition: Condition) -> MessageFilter:
    """Return a filter that keeps at least what the condition keeps."""
    name, kind = condition.column, condition.kind
    texts = frozenset(value for value in condition.values if isinstance(value, str))
    numbers = frozenset(value for value in condition.values if isinstance(value, int))
    wanted: dict[str, Any] = {}
    if kind in _ONE_OF and name in ("topic", "tags") and not numbers:
        wanted[{"topic": "topics", "tags": "tags"}[name]] = texts
    elif kind in _ONE_OF and name == "queue_id" and not texts:
        wanted["queue_ids"] = numbers
    elif (field := _NUMBERS.get(name) or _TIMES.get(name)) and kind != "StringContains" and not texts:
        wanted[field] = condition.bounds
    return MessageFilter(**wanted)


def as_contents(condition: Condition) -> Contents | None:
    """Return contents that each message has which meets the condition; None: it is none on contents."""
    first = condition.values[0]
    if condition.column == "keys" and condition.kind != "In":
        asked = isinstance(first, str) and condition.kind in ("StringContains", *_ONE_OF)
        return Contents(in_keys=(str(first),)) if asked else None
    for name in ("unique_key", "msg_id"):
        texts = wanted_texts(condition, name)
        if texts is not None:
            return Contents(unique_keys=texts) if name == "unique_key" else Contents(msg_ids=texts)
    return None


def wanted_texts(condition: Condition, column: str) -> frozenset[str] | None:
    """Return the texts of this column that the condition keeps, and nothing else. None if it says nothing so simple."""
    texts = frozenset(value for value in condition.values if isinstance(value, str))
    is_simple = condition.column == column and condition.kind in _ONE_OF and len(texts) == len(set(condition.values))
    return texts if is_simple else None


def _plain(value: object) -> object:
    return (value - _EPOCH) // timedelta(milliseconds=1) if isinstance(value, datetime) and value.tzinfo is not None else value
