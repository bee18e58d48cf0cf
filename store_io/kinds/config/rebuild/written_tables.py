"""The text of a file of config/ that a repair writes, of which the release takes every entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from schemas.rows import Row
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.settings.config_rules import LMQ_OFFSETS, ConfigRules
from store_io.broker.texts.beans import entry_of
from store_io.broker.texts.fastjson import ConfigFault, Pairs
from store_io.broker.texts.values import Bean, field_of, taken
from store_io.broker.texts.written import config_text
from store_io.kinds.config.config_reader import taken_from
from store_io.kinds.config.texts.salvage import (
    FILTERS,
    FORBIDDEN,
    LAYOUTS,
    LIGHT_OFFSETS,
    OFFSETS,
    PULL_OFFSETS,
    Layout,
    entries_of,
    put_entry,
)
from store_io.source.byte_source import name_of

_UNVERSIONED = (FILTERS, "table")
_INT = 1 << 31


@dataclass(frozen=True)
class WrittenTables:
    """The text of a file in the release's own form, and the tables in it."""

    data: bytes
    tables: Mapping[str, Mapping[Any, Any]]


def written_tables(path: str, tables: Mapping[str, Mapping[Any, Any]], version: Row, rules: ConfigRules) -> WrittenTables | None:
    """Return the file with these tables as the release can hold them; None if the release would not take it."""
    own, *more = LAYOUTS[path]
    bean = entry_of(name_of(path), rules)
    held: dict[str, Mapping[Any, Any]] = {own.name: tables.get(own.name, {})}
    if bean is not None:
        held[own.name] = _carried_rows(own, held[own.name], bean, rules)
    plain = dict(held)
    for layout in more:
        wanted = {PULL_OFFSETS: rules.pull_offsets, FORBIDDEN: rules.attributes}.get(layout.name, False)
        rows = dict(entries_of(tables.get(layout.name, {}), layout))
        if layout.name == FORBIDDEN:
            rows = {keys: value for keys, value in rows.items() if -_INT <= value < _INT}
        if wanted and rows:
            kept: dict[Any, Any] = {}
            for keys, value in rows.items():
                put_entry(kept, keys, value)
            held[layout.name] = kept
    for each in (held, plain) if held != plain else (plain,):
        data = config_text(_in_order(path, each, version, rules), rules)
        read = taken_from(path, data, rules)
        if read.name and not read.hollow:
            return WrittenTables(data, each)
    return None


def _in_order(path: str, tables: Mapping[str, Mapping[Any, Any]], version: Row, rules: ConfigRules) -> Row:
    """Return the parts of the file as a broker writes them, by their names."""
    own = LAYOUTS[path][0].name
    parts: Row = dict(tables)
    if own == FILTERS:
        parts[own] = {topic: {**held, "topic": topic} for topic, held in tables[own].items()}
    if path == LMQ_OFFSETS:
        groups = ((key, key.partition("@")[2], queues) for key, queues in tables[own].items())
        light = {key: queues[0] for key, group, queues in groups if group.startswith(LMQ_PREFIX) and queues.keys() == {0}}
        parts[own] = {key: queues for key, queues in tables[own].items() if key not in light}
        parts[LIGHT_OFFSETS] = light
    if own not in _UNVERSIONED and (rules.attributes or own != OFFSETS):
        parts["dataVersion"] = version
    return dict(sorted(parts.items()))


def _carried_rows(layout: Layout, table: Mapping[Any, Any], bean: Bean, rules: ConfigRules) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for keys, row in entries_of(table, layout):
        if isinstance(row, dict):
            put_entry(found, keys, _carried(row, bean, rules))
    return found


def _carried(row: Mapping[str, Any], bean: Bean, rules: ConfigRules) -> Row:
    """Return an entry without what the release would refuse: such a field gets its default."""
    found: Row = {}
    pairs = row.written if isinstance(row, Pairs) else row.items()
    for key, value in pairs:
        name = field_of(key, bean, rules) if isinstance(key, str) else ""
        if not name:
            if isinstance(key, str) and not key.startswith(("@", "$")) and isinstance(value, str | int) and _is_plain(value):
                found[key] = value
            continue
        try:
            made = taken(_with_text_keys(value), bean.fields[name], rules)
        except (ConfigFault, ValueError, ArithmeticError, TypeError, AttributeError, RecursionError):
            continue
        chosen = value if _is_plain(value) else made
        if chosen is not None and _is_plain(chosen):
            found[name] = chosen
    return found


def _with_text_keys(value: Any) -> Any:
    """Return a value whose keys are texts, as the release's parser has them."""
    if isinstance(value, dict) and not isinstance(value, Pairs):
        return {str(key): _with_text_keys(held) for key, held in value.items()}
    return [_with_text_keys(held) for held in value] if isinstance(value, list) else value


def _is_plain(value: Any, depth: int = 8) -> bool:
    """Say whether it is written as it was read."""
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    if value is None or isinstance(value, Decimal | Pairs) or not depth:
        return False
    if isinstance(value, dict):
        return all(isinstance(key, str | int) and _is_plain(held, depth - 1) for key, held in value.items())
    return isinstance(value, list) and all(_is_plain(held, depth - 1) for held in value)
