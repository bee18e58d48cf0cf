"""The objects that a broker's managers read from their files: which fields they have, and of which kind.

Source: TopicConfig, SubscriptionGroupConfig, DataVersion, ConsumerFilterData, TimerMetrics.Metric, OrderInfo,
TopicQueueMappingSerializeWrapper, TopicQueueMappingDetail, LogicQueueMappingItem, and the managers' own setters
(docs/config.md 3).
"""

from __future__ import annotations

from typing import Any

from store_io.formats.config.values import (
    ATOMIC,
    BOOLEAN,
    CHOICE,
    ENTRY,
    INT,
    INT_ENTRY,
    LONG,
    TEXT,
    Bean,
    ListOf,
    MapOf,
    is_integer,
)
from store_io.rules.config.reading import ConfigRules

_TEXTS = MapOf(TEXT, nulls=True, plain=True)
VERSION = Bean({"timestamp": LONG, "counter": ATOMIC, "stateVersion": LONG})
_OLD_VERSION = Bean({"timestamp": LONG, "counter": ATOMIC})
_OLD_TOPIC = {
    "topicName": TEXT, "readQueueNums": INT, "writeQueueNums": INT, "perm": INT, "topicFilterType": CHOICE, "topicSysFlag": INT,
    "order": BOOLEAN,
}  # fmt: skip
_OLD_GROUP = {
    "groupName": TEXT, "consumeEnable": BOOLEAN, "consumeFromMinEnable": BOOLEAN, "consumeBroadcastEnable": BOOLEAN,
    "retryQueueNums": INT, "retryMaxTimes": INT, "brokerId": LONG, "whichBrokerWhenConsumeSlowly": LONG,
    "notifyConsumerIdsChangedEnable": BOOLEAN,
}  # fmt: skip
_TOPIC = Bean({**_OLD_TOPIC, "attributes": _TEXTS})
_GROUP = Bean(
    {
        **_OLD_GROUP, "consumeMessageOrderly": BOOLEAN, "groupSysFlag": INT, "consumeTimeoutMinute": INT, "attributes": _TEXTS,
        "groupRetryPolicy": Bean({}),
    }
)  # fmt: skip
QUEUE_OFFSETS = MapOf(ENTRY, keys=INT)
FORBIDDEN = MapOf(MapOf(INT_ENTRY))
_FILTER = Bean(
    {
        "consumerGroup": TEXT, "topic": TEXT, "expression": TEXT, "expressionType": TEXT, "bornTime": LONG, "deadTime": LONG,
        "clientVersion": LONG, "bloomFilterData": Bean({}),
    }
)  # fmt: skip
_ORDER = Bean(
    {
        "popTime": LONG, "i": LONG, "o": ListOf(LONG), "ot": MapOf(LONG, keys=LONG, nulls=True),
        "oc": MapOf(INT_ENTRY, keys=LONG, nulls=True),
        "l": LONG, "cm": LONG, "a": TEXT,
    }
)  # fmt: skip
_METRIC = Bean({"count": ATOMIC, "timeStamp": LONG})
_MAPPED_QUEUE = Bean(
    {
        "gen": INT, "queueId": INT, "bname": TEXT, "logicOffset": LONG, "startOffset": LONG, "endOffset": LONG,
        "timeOfStart": LONG, "timeOfEnd": LONG,
    }
)  # fmt: skip
_MAPPING = Bean(
    {
        "topic": TEXT, "scope": TEXT, "totalQueues": INT, "bname": TEXT, "epoch": LONG, "dirty": BOOLEAN,
        "currIdMap": MapOf(INT_ENTRY, keys=INT), "hostedQueues": MapOf(ListOf(_MAPPED_QUEUE), keys=INT),
    }
)  # fmt: skip
_LONG = 1 << 63
_OTHERS = {
    "consumerFilter.json": Bean(
        {"filterDataByTopic": MapOf(Bean({"topic": TEXT, "groupFilterData": MapOf(_FILTER)}))}
    ),
    "consumerOrderInfo.json": Bean({"table": MapOf(MapOf(_ORDER, keys=INT))}),
    "topicQueueMapping.json": Bean({"topicQueueMappingInfoMap": MapOf(_MAPPING), "dataVersion": VERSION}),
    "timermetrics": Bean(
        {"timingCount": MapOf(_METRIC), "dataVersion": VERSION}
    ),
}  # fmt: skip
# Files whose table is added to the manager's own, which fails where that table or its version is null: (the table's name,
# whether an absent one is empty).
ADDED = {"topicQueueMapping.json": ("topicQueueMappingInfoMap", False), "timermetrics": ("timingCount", True)}


def topic_of(rules: ConfigRules) -> Bean:
    return _TOPIC if rules.attributes else Bean(_OLD_TOPIC)


def group_of(rules: ConfigRules) -> Bean:
    return _GROUP if rules.attributes else Bean(_OLD_GROUP)


def version_of(rules: ConfigRules) -> Bean:
    return VERSION if rules.attributes else _OLD_VERSION


# Their entries as a broker writes them.
_ENTRIES = {"consumerFilter.json": _FILTER, "timermetrics": _METRIC}
_WRITTEN = {TEXT: str, LONG: int, ATOMIC: int}
_SCALARS = frozenset({str, int, bool})
_NOTHING: dict[str, Any] = {}


class LeftOut:
    """A hook of the parser for files of which nothing is kept: an entry as a broker writes it becomes an empty one."""

    def __init__(self, name: str):
        kind = _ENTRIES.get(name)
        self._types: dict[str, type] = {}
        if kind is not None:
            self._types = {field: _WRITTEN[of] if isinstance(of, str) else dict for field, of in kind.fields.items()}

    def __call__(self, read: dict[str, Any]) -> dict[str, Any]:
        if not self._types.keys() & read.keys():
            return read
        for key, value in read.items():
            kind = type(value)
            if kind is dict and self._types.get(key) is dict and _is_plain(value):
                continue
            if kind is not self._types.get(key, kind) or kind not in _SCALARS or kind is int and not -_LONG <= value < _LONG:
                return read
        return _NOTHING


def _is_plain(held: dict[str, Any]) -> bool:
    """Whether no release looks at it twice: names that are no integers, with numbers, texts, and lists of numbers."""
    return not any(map(is_integer, held)) and all(
        type(value) in _SCALARS or type(value) is list and all(type(one) is int for one in value) for value in held.values()
    )


def other_of(name: str) -> Any:
    """What a file is read as of which no entry is kept; None where that is not known."""
    return _OTHERS.get(name)


def entry_of(name: str, rules: ConfigRules) -> Bean | None:
    """What an entry of a file's own table is read as; None of one that is a number."""
    made = {"topics.json": topic_of(rules), "subscriptionGroup.json": group_of(rules)}
    return made.get(name) or {"consumerOrderInfo.json": _ORDER, "topicQueueMapping.json": _MAPPING, **_ENTRIES}.get(name)
