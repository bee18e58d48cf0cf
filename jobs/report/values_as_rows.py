"""The two edges of what the history says: rows of tables become values, and values become JSON.

Values are frozen dataclasses. A field without a default is a column that is asked for, and a key of the JSON, under its own
name. Metadata of a field says where one of the two differs. Times are µs since 1970 in UTC, as tables hold them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from schemas.rows import Row

T = TypeVar("T")
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 and 9999, in µs


def time_of(micros: int | None) -> str | None:
    """Return a time of the tables as JSON has it, which is ISO 8601 in UTC to the second.

    A time beyond all years becomes the nearest possible one.
    """
    if micros is None:
        return None
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=min(max(micros, _FIRST_TIME), _LAST_TIME))
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")


def micros_of(when: datetime) -> int:
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


# ---- what metadata of a field says: `read` makes the value of a column, `written` the keys of the JSON -----------------

_Written = Callable[[str, Any], Row]
TIME: dict[str, _Written] = {"written": lambda name, held: {name: time_of(held)}}
HIDDEN: dict[str, _Written] = {"written": lambda name, held: {}}
IN_PLACE = ""  # in place of a file: the same one
IF_ELSEWHERE: dict[str, _Written] = {"written": lambda name, held: {} if held == IN_PLACE else {name: held}}
IF_KNOWN: dict[str, _Written] = {"written": lambda name, held: {} if held is None else {name: held}}
FLAT: dict[str, _Written] = {"written": lambda name, held: as_json(held)}
SETTINGS = {"read": lambda rows: {row["key"]: row["value"] for row in rows or ()}, **HIDDEN}


def columns_of(shape: type[Any]) -> tuple[str, ...]:
    """Return the columns of which values of a dataclass are made."""
    return tuple(f.name for f in fields(shape) if f.init and f.default is MISSING and f.default_factory is MISSING)


def values(shape: type[T], rows: Iterable[Row]) -> list[T]:
    """Return rows of a table, or of an answer of SQL, as values of a dataclass."""
    made = [(f.name, f.metadata["read"]) for f in fields(shape) if "read" in f.metadata]  # type: ignore[arg-type]
    if not made:
        return [shape(**row) for row in rows]
    return [shape(**row | {name: read(row[name]) for name, read in made}) for row in rows]


@cache
def _written(shape: Any) -> list[tuple[str, _Written | None]]:
    return [(f.name, f.metadata.get("written")) for f in fields(shape)]


def as_json(value: Any) -> Row:
    """Return the keys of a value, as JSON has them. Values in it are written in their turn."""
    row: Row = {}
    shape: Any = type(value)
    for name, written in _written(shape):
        held = getattr(value, name)
        if written is None:
            row[name] = held
        else:
            row |= written(name, held)
    return row


def json_text(value: object) -> str:
    """Return a value as the commands write it: indented JSON, ASCII."""
    return json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False, default=as_json) + "\n"
