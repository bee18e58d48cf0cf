"""Reads SQL conditions without Spark: as many as a source takes over, joined by AND. All mean what they mean to Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from jobs.sources.conditions import Condition
from schemas.tables import Column
from store_io.base.errors import UsageError

_VALUE = r"(?:'(?:[^'\\]|'')*'|[+-]?\d{1,19})"
_TERM = re.compile(
    rf"""\s*(?P<column>\w+|`\w+`)
    (?: \s*(?P<compared>==?|<=?|>=?)\s*(?P<value>{_VALUE})
      | \s+IN\s*\((?P<values>\s*{_VALUE}\s*(?:,\s*{_VALUE}\s*)*)\)
      | \s+BETWEEN\s+(?P<low>{_VALUE})\s+AND\s+(?P<high>{_VALUE})
      | \s+LIKE\s+'%(?P<part>(?:[^'%_\\]|'')+)%' )
    \s*(?:$|AND\s+(?=\S))""",
    re.IGNORECASE | re.VERBOSE,
)
_KINDS = {
    "=": "EqualTo",
    "==": "EqualTo",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
}
_COMPARE = {
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
}
_NUMBERS = ("integer", "long")
_FORM = "COLUMN =, <, <=, >, >= VALUE, IN (...), BETWEEN ... AND ..., LIKE '%TEXT%', joined by AND; ask more of the rows"


def plain_conditions(where: str, known: Mapping[str, Column]) -> tuple[Condition, ...]:
    """Return the conditions, all of which must hold. Raises UsageError for other SQL, for columns that are not known, and for
    values of another type."""
    found: list[Condition] = []
    at = 0
    while at < len(where) or not found:
        term = _TERM.match(where, at)
        if term is None:
            raise UsageError(f"where {where!r}: without Spark it takes {_FORM}")
        at = term.end()
        column = term["column"].strip("`").lower()
        if column not in known:
            raise UsageError(f"where {where!r}: column {column!r}: the columns are {', '.join(known)}")
        if term["part"] is not None:
            asked = [Condition("StringContains", column, (term["part"].replace("''", "'"),))]
        elif term["values"] is not None:
            asked = [Condition("In", column, tuple(map(_plain, re.findall(_VALUE, term["values"]))))]
        elif term["low"] is not None:
            bounds = (("GreaterThanOrEqual", term["low"]), ("LessThanOrEqual", term["high"]))
            asked = [Condition(kind, column, (_plain(text),)) for kind, text in bounds]
        else:
            asked = [Condition(_KINDS[term["compared"]], column, (_plain(term["value"]),))]
        type_ = known[column].type
        wanted = int if type_ in _NUMBERS else str if type_ == "string" else None
        if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for one in asked for value in one.values):
            raise UsageError(f"where {where!r}: a number of {column} is beyond 64 bits")
        if any(type(value) is not wanted for one in asked for value in one.values):
            what = {int: "whole numbers", str: "texts", None: f"{type_}, which is asked of the rows alone"}[wanted]
            raise UsageError(f"where {where!r}: {column} has {what}")
        found += asked
    return tuple(found)


def _plain(text: str) -> str | int:
    return text[1:-1].replace("''", "'") if text.startswith("'") else int(text)


def rows_that_meet(conditions: Iterable[Condition], batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that meet all conditions of `plain_conditions`."""
    for one in conditions:
        column = batch.column(one.column)
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64())
        if one.kind == "StringContains":
            met = pc.match_substring(column, one.values[0])
        elif one.kind in _COMPARE:
            met = _COMPARE[one.kind](column, pa.scalar(one.values[0], column.type))
        else:
            met = pc.is_in(column, value_set=pa.array(one.values, column.type))
        batch = batch.filter(met)
    return batch
