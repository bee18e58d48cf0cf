"""Turns a parser's result into the tables of a broker's managers; a value that a manager refuses is a fault.

Source: TopicConfigManager.decode, SubscriptionGroupManager.decode, ConsumerOffsetManager.decode, LmqConsumerOffsetManager.decode,
ScheduleMessageService.decode (config.md 2, 3).
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from schemas.rows import Row
from store_io.base.java.java_compat import parse_number
from store_io.broker.settings.config_rules import ConfigRules
from store_io.broker.texts.beans import ADDED, QUEUE_OFFSETS, RETRY_POLICY, beside, group_of, other_of, topic_of
from store_io.broker.texts.fastjson import OTHER_SHAPE, ConfigFault, Nothing, Pairs
from store_io.broker.texts.values import ANY, CHOICE, ENTRY, Bean, MapOf, field_of, fields_of, is_written, taken

Offset = tuple[str, str, int]  # group, topic, queue id
OFFSETS, LMQ_OFFSETS = "offsetTable", "lmqOffsetTable"
_INT, _LONG = 1 << 31, 1 << 63
LATEST_MS = 1 << 43  # in the year 2248
_TOPIC_NUMBERS: Row = {"readQueueNums": 16, "writeQueueNums": 16, "perm": 6, "topicSysFlag": 0}
_GROUP_NUMBERS: Row = {"retryQueueNums": 1, "retryMaxTimes": 16}
PLAIN_GROUP: Row = {"consumeEnable": True, **_GROUP_NUMBERS}
_KEPT_KEYS = frozenset({*_TOPIC_NUMBERS, *_GROUP_NUMBERS, "order", "attributes", "consumeEnable"})
_WRITTEN: dict[str, type] = {
    **dict.fromkeys((*_TOPIC_NUMBERS, *_GROUP_NUMBERS, "brokerId", "whichBrokerWhenConsumeSlowly", "groupSysFlag"), int),
    **dict.fromkeys(("order", "consumeEnable", "consumeFromMinEnable", "consumeBroadcastEnable"), bool),
    **dict.fromkeys(("consumeMessageOrderly", "notifyConsumerIdsChangedEnable"), bool),
    **dict.fromkeys(("topicName", "topicFilterType", "groupName"), str),
    "attributes": dict,
    "consumeTimeoutMinute": int,
}  # fmt: skip


@dataclass
class Table:
    """The table that one file gives its manager.

    entries: name, offset's place or level -> the value that is held.
    replaces: the table takes the place of the loaded one; else it is added.
    fails: the manager throws once it has taken the entries.
    counter, time_ms: those of its dataVersion; 0 without one.
    written: the table has the shape that a broker writes, and is named in it.
    left_out: the number of entries that the release does not take.
    """

    entries: dict[Any, Any]
    replaces: bool = False
    fails: str = ""
    counter: int = 0
    time_ms: int = 0
    written: bool = True
    left_out: int = 0


def topics_of(read: Any, rules: ConfigRules) -> Table:
    """Name -> numbers of queues, perm, attributes."""
    if isinstance(read, Nothing):
        return Table({}, written=False)
    return _rows_of(read, "topicConfigTable", _Rows(topic_of(rules), _topic, rules), beside("topics.json", rules), rules)


def groups_of(read: Any, rules: ConfigRules) -> Table:
    """Name -> the group's settings."""
    if isinstance(read, Nothing):
        if read.blank and rules.blank_groups_refused:
            raise ConfigFault("no object")
        return Table({}, written=False)
    rows = _Rows(group_of(rules), _group, rules)
    return _rows_of(read, "subscriptionGroupTable", rows, beside("subscriptionGroup.json", rules), rules)


def _rows_of(read: Any, name: str, rows: _Rows, others: Mapping[str, Any], rules: ConfigRules) -> Table:
    """Return a table of names whose entries are added to what is there, with the version that goes with them."""
    fields = {name: ANY, **others}
    entries: dict[str, Row] = {}
    named, version, fails = False, None, ""
    for field, value in _fields(read, fields, rules):
        if field == name:
            named, entries = True, {str(key): rows(row) for key, row in _named(value, rules).items()}
        else:
            made = taken(value, fields[field], rules)
            if field == "dataVersion":
                version, fails = made, _no_version(made)
    return Table(entries, fails=fails, counter=_counter_of(version), time_ms=time_of(version), written=named)


def offsets_of(read: Any, rules: ConfigRules) -> Table:
    """Return (group, topic, queue id) -> offset. The maps of what was read are emptied, so that nothing is held twice."""
    return _offsets_of(read, (OFFSETS,), rules)


def lmq_offsets_of(read: Any, rules: ConfigRules) -> Table:
    """Return the table of the file of offsets that a broker with enableLmq reads.

    Its second table has one offset for each light queue.
    """
    if not rules.skips_light_offsets:
        return _offsets_of(read, (OFFSETS, LMQ_OFFSETS), rules)
    if isinstance(read, Nothing):
        if read.blank:
            raise ConfigFault("no object")
        return Table({}, written=False)
    with suppress(ConfigFault):  # whatever is in it
        return Table({}, replaces=True, left_out=len(_offsets_of(read, (OFFSETS, LMQ_OFFSETS), rules).entries))
    return Table({}, replaces=True)


def _offsets_of(read: Any, names: tuple[str, ...], rules: ConfigRules) -> Table:
    if isinstance(read, Nothing):
        if read.blank and rules.blank_offsets_refused or read.text and rules.empty_text_offsets_refused:
            raise ConfigFault("no object")
        return Table({}, written=False)
    tables: dict[str, dict[Offset, int]] = {}  # of a repeated name the last
    texts: dict[str, str] = {}  # each topic and group once, though many keys name it
    others = beside("consumerOffset.json", rules)
    fields = {**dict.fromkeys(names, ANY), **others}
    written, version = False, None
    for name, held in _fields(read, fields, rules):
        if name in others:
            made = held if not isinstance(held, Pairs) and is_written(held, others[name]) else taken(held, others[name], rules)
            version = made if name == "dataVersion" else version
            continue
        written = written or isinstance(held, dict)
        table = _named({} if held is None else held, rules)
        found = tables[name] = {}
        for key in list(table):
            held_there = table.pop(key)
            if name == OFFSETS and not isinstance(held_there, dict):
                raise ConfigFault(OTHER_SHAPE)
            _take_offsets(str(key), held_there, found, texts, rules)
    return Table(_joined(tables), replaces=True, counter=_counter_of(version), time_ms=time_of(version), written=written)


def _joined(tables: Mapping[str, dict[Offset, int]]) -> dict[Offset, int]:
    """Return both tables as one. A topic and group in both has only what the light queues' table says."""
    offsets, light = tables.get(OFFSETS, {}), tables.get(LMQ_OFFSETS)
    if not light:
        return offsets
    named = {place[:2] for place in light}
    return {**{place: offset for place, offset in offsets.items() if place[:2] not in named}, **light}


def _take_offsets(key: str, held: Any, found: dict[Offset, int], texts: dict[str, str], rules: ConfigRules) -> None:
    topic, _, group = key.partition("@")
    topic, group = texts.setdefault(topic, topic), texts.setdefault(group, group)
    if isinstance(held, Mapping):
        for queue_id, offset in _numbers(held, rules):
            found[group, topic, queue_id] = offset
    else:  # lmqConsumerOffset.json: one queue per name
        found[group, topic, 0] = _entry(held, rules)


def delays_of(read: Any, rules: ConfigRules) -> Table:
    """Return level -> offset."""
    if isinstance(read, Nothing):
        return Table({}, written=False)
    fields = {OFFSETS: ANY, **beside("delayOffset.json", rules)}
    entries: dict[int, int] = {}
    named, version, fails = False, None, ""
    for name, held in _fields(read, fields, rules):
        if name == OFFSETS:
            named, entries = True, dict(_numbers(_map(held), rules))
        else:
            version = taken(held, fields[name], rules)
            fails = _no_version(version) if version is not None else ""  # here null is no fault
    return Table(entries, fails=fails, counter=_counter_of(version), time_ms=time_of(version), written=named)


def form_of(name: str) -> Callable[[Any, ConfigRules], Table]:
    """Return the decoder of a file that only has to be taken or refused. No entry is kept."""
    added = ADDED.get(name)

    def decode(read: Any, rules: ConfigRules) -> Table:
        kind = other_of(name, rules)
        if isinstance(read, Nothing) and (read.brace or read.blank and not read.text and rules.fastjson2):
            read = {}  # an empty object there
        if isinstance(read, Nothing) or kind is None:
            return Table({}, replaces=True, written=not isinstance(read, Nothing))
        made = taken(read, kind, rules) or {}
        fails = ""
        if added:
            table, by_itself = added
            if made.get(table, {} if by_itself else None) is None:
                raise ConfigFault(OTHER_SHAPE)
            fails = _no_version(made["dataVersion"]) if "dataVersion" in made else ""
        return Table({}, replaces=True, fails=fails)

    return decode


# ---- one entry -----------------------------------------------------------------------------------------------------


class SharedSettings:
    """A hook of the parser: topics and groups with equal settings share them. With a million topics that is most of the memory.

    Fields that are not looked at are left out. An entry that no broker writes so is looked at whole, as is any other object:
    attributes may have names like those of fields.
    """

    def __init__(self) -> None:
        self._shared: dict[Any, Row] = {}

    def __call__(self, read: Row) -> Row:
        if not (read.keys() >= _TOPIC_NUMBERS.keys() or read.keys() >= _GROUP_NUMBERS.keys()):
            return read
        for key, value in read.items():
            if key == "groupRetryPolicy" and is_written(value, RETRY_POLICY):
                continue
            if key == "topicFilterType" and not is_written(value, CHOICE):
                return read
            if type(value) is not _WRITTEN.get(key) or type(value) is int and not -_INT <= value < _INT:
                return read
        kept = {key: value for key, value in read.items() if key in _KEPT_KEYS}
        if not kept.get("attributes", True):
            del kept["attributes"]
        try:
            return self._shared.setdefault(tuple(kept.items()), kept)
        except TypeError:  # attributes
            return kept


class _Rows:
    """Entries as they are kept, one for each that the parser gives; those that share their settings share it."""

    def __init__(self, kind: Bean, keep: Callable[[Row, dict[Any, Row]], Row], rules: ConfigRules):
        self._kind, self._keep, self._rules = kind, keep, rules
        self._made: dict[int, Row] = {}
        self._shared: dict[Any, Row] = {}

    def __call__(self, read: Any) -> Row:
        """Return the row of a value that was read. Raises ConfigFault.

        read: kept alive by the caller until all rows are asked for.
        """
        row = self._made.get(id(read))
        if row is None:
            found = taken(read, self._kind, self._rules)
            if found is None:
                raise ConfigFault(OTHER_SHAPE)
            row = self._made[id(read)] = self._keep(found, self._shared)
        return row


def _topic(found: Row, shared: dict[Any, Row]) -> Row:
    row = {"order": bool(found.get("order")), **{name: found.get(name, default) for name, default in _TOPIC_NUMBERS.items()}}
    attributes = found.get("attributes")
    if attributes:
        return {**row, "attributes": {key: "null" if value is None else str(value) for key, value in attributes.items()}}
    return shared.setdefault(tuple(row.values()), row)


def _group(found: Row, shared: dict[Any, Row]) -> Row:
    enabled = {"consumeEnable": found.get("consumeEnable", True)}
    row = {**enabled, **{name: found.get(name, default) for name, default in _GROUP_NUMBERS.items()}}
    return shared.setdefault(tuple(row.values()), row)


# ---- values --------------------------------------------------------------------------------------------------------


class _Absent:
    pass


_ABSENT = _Absent()


def member(entry: Any, name: str, rules: ConfigRules) -> Any:
    """Return the value of that name; `_ABSENT` without one. A similar name counts if the parser takes one."""
    if not isinstance(entry, dict):
        raise ConfigFault(OTHER_SHAPE)
    if name in entry:
        return entry[name]
    kind = Bean({name: ANY})
    return next((value for key, value in entry.items() if field_of(key, kind, rules)), _ABSENT)


def _fields(read: Any, fields: Mapping[str, Any], rules: ConfigRules) -> Iterator[tuple[str, Any]]:
    if not isinstance(read, dict):
        raise ConfigFault(OTHER_SHAPE)
    return fields_of(read, Bean(fields), rules)


def _named(held: Any, rules: ConfigRules) -> dict[str, Any]:
    """Return a map of names."""
    table = _map(held)
    if isinstance(table, Pairs):
        taken(table, MapOf(ANY, nulls=True), rules)
    return table


def _map(held: Any) -> dict[str, Any]:
    if not isinstance(held, dict):
        raise ConfigFault(OTHER_SHAPE)
    return held


def _numbers(held: Mapping[str, Any], rules: ConfigRules) -> Iterable[tuple[int, int]]:
    """Return a map of integers, as a broker writes it or not."""
    if not isinstance(held, Pairs) and all(_is_written(key, offset) for key, offset in held.items()):
        return [(int(key), offset) for key, offset in held.items()]
    made = taken(held, QUEUE_OFFSETS, rules)
    return () if made is None else made.items()


def _is_written(key: str, offset: Any) -> bool:
    """Say whether a broker writes such an entry."""
    return type(offset) is int and -_LONG <= offset < _LONG and key.isdecimal() and len(key) <= 9 and key.isascii()


def _entry(held: Any, rules: ConfigRules) -> int:
    offset = taken(held, ENTRY, rules)
    if offset is None:
        raise ConfigFault("null as an offset")
    return int(offset)


def _no_version(version: Row | None) -> str:
    """Return why a manager cannot take this version over; "" if it can."""
    if version is None:
        return "dataVersion is null"
    return "the counter of dataVersion is null" if version.get("counter", 0) is None else ""


def _counter_of(version: Row | None) -> int:
    return (version or {}).get("counter") or 0


def time_of(version: Row | None) -> int:
    """Return the time of a dataVersion in ms; 0 if it has none that a broker's clock can have shown."""
    time = (version or {}).get("timestamp")
    return time if type(time) is int and 0 < time < LATEST_MS else 0


def integer(value: Any, bits: int) -> int:
    """Return the value as a number of that many bits. Raises ConfigFault if a parser takes it for none."""
    limit = 1 << (bits - 1)
    if type(value) is int and -limit <= value < limit:
        return value
    number: int | None = None
    if isinstance(value, str):
        number = parse_number(value.strip(), bits)
    elif isinstance(value, Decimal) and -limit <= value < limit:
        number = int(value)
    if number is None:
        raise ConfigFault(f"{reprlib.repr(value)} is no integer")
    return number
