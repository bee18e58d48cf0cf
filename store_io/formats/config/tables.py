"""What a parser read -> the tables of a broker's managers; what a manager refuses is a fault.

Source: TopicConfigManager.decode, SubscriptionGroupManager.decode, ConsumerOffsetManager.decode, LmqConsumerOffsetManager.decode,
ScheduleMessageService.decode (docs/config.md 2, 3).
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.rows import Row
from store_io.base.java_compat import parse_number
from store_io.formats.config.fastjson import OTHER_SHAPE, ConfigFault, Nothing
from store_io.rules.config.reading import ConfigRules

Offset = tuple[str, str, int]  # group, topic, queue id
_TOPIC_NUMBERS: Row = {"readQueueNums": 16, "writeQueueNums": 16, "perm": 6, "topicSysFlag": 0}
_GROUP_NUMBERS: Row = {"retryQueueNums": 1, "retryMaxTimes": 16}
PLAIN_GROUP: Row = {"consumeEnable": True, **_GROUP_NUMBERS}
_KEPT_KEYS = frozenset({*_TOPIC_NUMBERS, *_GROUP_NUMBERS, "order", "attributes", "consumeEnable"})
_WRITTEN_KEYS = _KEPT_KEYS | {
    "topicName", "topicFilterType", "groupName", "brokerId", "whichBrokerWhenConsumeSlowly", "consumeFromMinEnable",
    "consumeBroadcastEnable", "consumeMessageOrderly", "notifyConsumerIdsChangedEnable", "groupSysFlag", "consumeTimeoutMinute",
    "groupRetryPolicy", "subscriptionDataSet",
}  # fmt: skip


@dataclass
class Table:
    """What one file gives its manager. entries: name, offset's place or level -> what is held.

    replaces: it takes the place of what was loaded; else it is added.  fails: the manager throws when it has taken the entries.
    counter: of its dataVersion.  written: it has the shape that a broker writes: the table is named in it.
    """

    entries: dict[Any, Any]
    replaces: bool = False
    fails: str = ""
    counter: int = 0
    written: bool = True


def topics_of(read: Any, rules: ConfigRules) -> Table:
    """Name -> numbers of queues, perm, attributes."""
    if isinstance(read, Nothing):
        return Table({}, written=False)
    held = member(read, "topicConfigTable", rules)
    shared: dict[Any, Row] = {}
    entries = {str(name): _topic(topic, rules, shared) for name, topic in _map(held).items()}
    fails = "dataVersion is null" if member(read, "dataVersion", rules) is None else ""
    return Table(entries, fails=fails, counter=_counter(read, rules), written=held is not _ABSENT)


def groups_of(read: Any, rules: ConfigRules) -> Table:
    """Name -> the group's settings."""
    if isinstance(read, Nothing):
        if read.blank and rules.blank_groups_refused:
            raise ConfigFault("no object")
        return Table({}, written=False)
    held = member(read, "subscriptionGroupTable", rules)
    shared: dict[Any, Row] = {}
    entries = {str(name): _group(group, rules, shared) for name, group in _map(held).items()}
    null = rules.null_group_version_refused and member(read, "dataVersion", rules) is None
    return Table(entries, fails="dataVersion is null" if null else "", counter=_counter(read, rules), written=held is not _ABSENT)


def offsets_of(read: Any, rules: ConfigRules) -> Table:
    """(group, topic, queue id) -> offset. The maps of what was read are emptied, so that nothing is held twice."""
    if isinstance(read, Nothing):
        if read.blank and rules.blank_offsets_refused or read.text and rules.empty_text_offsets_refused:
            raise ConfigFault("no object")
        return Table({}, written=False)
    found: dict[Offset, int] = {}
    texts: dict[str, str] = {}  # each topic and group once, though many keys name it
    written = False
    for name in ("offsetTable", "lmqOffsetTable"):
        held = member(read, name, rules)
        written = written or isinstance(held, dict)
        table = _map({} if held is None else held)
        if found:  # of a group in both tables the second: its queues stay beside one another
            for place in [place for place in found if f"{place[1]}@{place[0]}" in table]:
                del found[place]
        for key in list(table):
            _take_offsets(str(key), table.pop(key), found, texts, rules)
    return Table(found, replaces=True, counter=_counter(read, rules), written=written)


def _take_offsets(key: str, held: Any, found: dict[Offset, int], texts: dict[str, str], rules: ConfigRules) -> None:
    topic, _, group = key.partition("@")
    topic, group = texts.setdefault(topic, topic), texts.setdefault(group, group)
    if isinstance(held, Mapping):
        for queue_id, offset in held.items():
            found[group, topic, integer(queue_id, 32)] = _long(offset, rules)
    else:  # lmqConsumerOffset.json: one queue per name
        found[group, topic, 0] = _long(held, rules)


def delays_of(read: Any, rules: ConfigRules) -> Table:
    """Level -> offset."""
    if isinstance(read, Nothing):
        return Table({}, written=False)
    held = member(read, "offsetTable", rules)
    entries = {integer(level, 32): _long(offset, rules) for level, offset in _map(held).items()}
    return Table(entries, counter=_counter(read, rules), written=held is not _ABSENT)


def form_of(read: Any, rules: ConfigRules) -> Table:
    """Of a file of which only is asked whether it holds an object: nothing of it is kept."""
    return Table({}, replaces=True, written=not isinstance(read, Nothing))


# ---- one entry -----------------------------------------------------------------------------------------------------


class SharedSettings:
    """A hook of the parser: topics and groups with equal settings share them. Of a million topics that is most of the memory.

    What is not looked at is left out, unless an entry has a key that no broker writes: that may be another name of one.
    """

    def __init__(self) -> None:
        self._shared: dict[Any, Row] = {}

    def __call__(self, read: Row) -> Row:
        name = "topicName" if "topicName" in read else "groupName"
        if not isinstance(read.get(name), str) or not read.keys() <= _WRITTEN_KEYS:
            return read
        kept = {key: value for key, value in read.items() if key in _KEPT_KEYS}
        if not kept.get("attributes", True):
            del kept["attributes"]
        try:
            return self._shared.setdefault(tuple(kept.items()), kept)
        except TypeError:  # attributes, or a value of another shape
            return kept


def _topic(topic: Any, rules: ConfigRules, shared: dict[Any, Row]) -> Row:
    row = _numbers(topic, _TOPIC_NUMBERS, rules)
    order = member(topic, "order", rules)
    row = {"order": order is True or str(order).lower() == "true", **row}
    attributes = member(topic, "attributes", rules)
    if attributes is not _ABSENT and attributes:
        row["attributes"] = {str(key): str(value) for key, value in _map(attributes).items()}
        return row
    return shared.setdefault(tuple(row.values()), row)


def _group(group: Any, rules: ConfigRules, shared: dict[Any, Row]) -> Row:
    row = _numbers(group, _GROUP_NUMBERS, rules)
    enabled = member(group, "consumeEnable", rules)
    row = {"consumeEnable": enabled in (_ABSENT, None, True) or str(enabled).lower() == "true", **row}
    return shared.setdefault(tuple(row.values()), row)


def _numbers(entry: Any, defaults: Row, rules: ConfigRules) -> Row:
    if not isinstance(entry, dict):
        raise ConfigFault(OTHER_SHAPE)
    row = {}
    for name, default in defaults.items():
        value = member(entry, name, rules)
        if value is _ABSENT:
            row[name] = default
        elif value is None:
            row[name] = 0 if rules.null_number_is_zero else default
        else:
            row[name] = integer(value, 32)
    return row


# ---- values --------------------------------------------------------------------------------------------------------


class _Absent:
    pass


_ABSENT = _Absent()


def member(entry: Any, name: str, rules: ConfigRules) -> Any:
    """The value of that name, by likeness where the parser takes that; `_ABSENT` without one."""
    if not isinstance(entry, dict):
        raise ConfigFault(OTHER_SHAPE)
    if name in entry:
        return entry[name]
    if rules.names_by_likeness:
        wanted = name.lower()
        for key in entry:
            if len(key) <= 2 * len(name) and key.lower().replace("_", "").replace("-", "") == wanted:
                return entry[key]
    return _ABSENT


def _map(held: Any) -> dict[str, Any]:
    if held is _ABSENT:
        return {}
    if not isinstance(held, dict):
        raise ConfigFault(OTHER_SHAPE)
    return held


def _counter(read: Any, rules: ConfigRules) -> int:
    version = member(read, "dataVersion", rules)
    if not isinstance(version, dict):
        if version is _ABSENT or version is None:
            return 0
        raise ConfigFault(OTHER_SHAPE)
    counter = member(version, "counter", rules)
    return 0 if counter is _ABSENT or counter is None else integer(counter, 64)


def integer(value: Any, bits: int) -> int:
    """The value as a number of that many bits. Raises ConfigFault where a parser takes it for none."""
    limit = 1 << (bits - 1)
    if type(value) is int and -limit <= value < limit:
        return value
    number: int | None = None
    if isinstance(value, str):
        number = parse_number(value.strip(), bits)
    elif isinstance(value, float) and math.isfinite(value) and -limit <= value < limit:
        number = int(value)
    if number is None:
        raise ConfigFault(f"{reprlib.repr(value)} is no integer")
    return number


def _long(value: Any, rules: ConfigRules) -> int:
    if rules.long_wraps and type(value) is int:
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)
    return integer(value, 64)
