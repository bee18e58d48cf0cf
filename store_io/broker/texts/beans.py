"""The objects that a broker's managers read from their files: which fields they have, and of which kind.

As the release's parser lists them of its classes: TopicConfig, SubscriptionGroupConfig, GroupRetryPolicy, DataVersion,
ConsumerFilterData, BloomFilterData, TimerMetrics.Metric, OrderInfo, TopicQueueMappingSerializeWrapper,
TopicQueueMappingDetail, LogicQueueMappingItem, and the managers' own setters and getters (config.md 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from store_io.broker.releases import Version, changed_until
from store_io.broker.settings.config_rules import ConfigRules
from store_io.broker.texts.values import (
    ATOMIC,
    BOOLEAN,
    CHOICE,
    ENTRY,
    INT,
    INT_ENTRY,
    LONG,
    TEXT,
    TEXT_SET,
    Bean,
    ListOf,
    MapOf,
    Seldom,
    is_written,
)

_OLDEST = "4.6.1"
_TEXTS = MapOf(TEXT, nulls=True, plain=True)
QUEUE_OFFSETS = MapOf(ENTRY, keys=INT)
RETRY_POLICY = Seldom(
    Bean(
        {
            "type": CHOICE, "exponentialRetryPolicy": Bean({"initial": LONG, "max": LONG, "multiplier": LONG}),
            "customizedRetryPolicy": Bean({"next": ListOf(LONG)}),
        }
    )
)  # fmt: skip
_SUBSCRIPTION = Bean({"topic": TEXT, "expressionType": TEXT, "expression": TEXT, "version": LONG})
_VERSION = Bean({"timestamp": LONG, "counter": ATOMIC, "stateVersion": LONG})
_METRIC = Bean({"count": ATOMIC, "timeStamp": LONG})
_MAPPED_QUEUE = Bean(
    {
        "gen": INT, "queueId": INT, "bname": TEXT, "logicOffset": LONG, "startOffset": LONG, "endOffset": LONG,
        "timeOfStart": LONG, "timeOfEnd": LONG,
    }
)  # fmt: skip
# Class -> release -> the fields that it has from then on; None: no longer.
_FIELDS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "TopicConfig": {
        _OLDEST: {
            "topicName": TEXT, "readQueueNums": INT, "writeQueueNums": INT, "perm": INT, "topicFilterType": CHOICE,
            "topicSysFlag": INT, "order": BOOLEAN,
        },
        "5.0.0": {"attributes": _TEXTS},
    },
    "SubscriptionGroupConfig": {
        _OLDEST: {
            "groupName": TEXT, "consumeEnable": BOOLEAN, "consumeFromMinEnable": BOOLEAN, "consumeBroadcastEnable": BOOLEAN,
            "retryQueueNums": INT, "retryMaxTimes": INT, "brokerId": LONG, "whichBrokerWhenConsumeSlowly": LONG,
            "notifyConsumerIdsChangedEnable": BOOLEAN,
        },
        "5.0.0": {
            "consumeMessageOrderly": BOOLEAN, "groupSysFlag": INT, "consumeTimeoutMinute": INT, "groupRetryPolicy": RETRY_POLICY,
        },
        "5.1.1": {"subscriptionDataSet": Seldom(ListOf(_SUBSCRIPTION))},
        "5.1.3": {"attributes": _TEXTS},
    },
    "OrderInfo": {
        "5.0.0": {"offsetList": ListOf(LONG), "consumedCount": INT, "lastConsumeTimestamp": LONG, "commitOffsetBit": LONG},
        "5.1.0": {
            "offsetList": None, "consumedCount": None, "lastConsumeTimestamp": None, "commitOffsetBit": None,
            "popTime": LONG, "i": Seldom(LONG), "o": ListOf(LONG), "ot": MapOf(LONG, keys=LONG, nulls=True),
            "oc": MapOf(INT_ENTRY, keys=LONG, nulls=True), "l": LONG, "cm": LONG,
        },
        "5.1.1": {"a": TEXT},
    },
    "ConsumerFilterData": {
        _OLDEST: {
            "consumerGroup": TEXT, "topic": TEXT, "expression": TEXT, "expressionType": TEXT, "bornTime": LONG, "deadTime": LONG,
            "clientVersion": LONG, "bloomFilterData": Seldom(Bean({"bitNum": INT, "bitPos": ListOf(INT)})),
            "compiledExpression": Seldom(Bean({})),
        },
    },
    "TopicQueueMappingDetail": {
        "5.0.0": {
            "topic": TEXT, "scope": TEXT, "totalQueues": INT, "bname": TEXT, "epoch": LONG, "dirty": BOOLEAN,
            "currIdMap": MapOf(INT_ENTRY, keys=INT), "hostedQueues": MapOf(ListOf(_MAPPED_QUEUE), keys=INT),
        },
    },
}  # fmt: skip
# File -> release -> what its manager reads from then on beside its table.
_BESIDE: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "topics.json": {
        _OLDEST: {"dataVersion": Bean({"timestamp": LONG, "counter": ATOMIC})},
        "5.0.0": {"dataVersion": _VERSION},
    },
    "subscriptionGroup.json": {
        "5.0.0": {"forbiddenTable": MapOf(MapOf(INT_ENTRY), added=True)},
        "5.1.0": {"forbiddenTable": MapOf(MapOf(INT_ENTRY))},
        "5.3.1": {"dataVersion": _VERSION},
    },
    "consumerOffset.json": {
        "5.0.0": {"dataVersion": _VERSION, "groupTopicMap": MapOf(TEXT_SET, nulls=True, added=True)},
        "5.5.0": {"pullOffsetTable": MapOf(QUEUE_OFFSETS, added=True)},
    },
    "delayOffset.json": {"5.0.0": {"dataVersion": _VERSION}},
}
# Files whose table is added to the manager's own, which fails where that table or its version is null: (the table's name,
# whether an absent one is empty).
ADDED = {"topicQueueMapping.json": ("topicQueueMappingInfoMap", False), "timermetrics": ("timingCount", True)}


@cache
def _bean(name: str, version: Version) -> Bean:
    fields = changed_until(version, _FIELDS[name])
    return Bean({field: kind for field, kind in fields.items() if kind is not None})


def topic_of(rules: ConfigRules) -> Bean:
    return _bean("TopicConfig", rules.version)


def group_of(rules: ConfigRules) -> Bean:
    return _bean("SubscriptionGroupConfig", rules.version)


@cache
def _beside(name: str, version: Version) -> Mapping[str, Any]:
    return changed_until(version, _BESIDE[name])


def beside(name: str, rules: ConfigRules) -> Mapping[str, Any]:
    """Return field -> kind, of all that the manager of this file reads beside its table."""
    return _beside(name, rules.version)


@cache
def _others(version: Version) -> Mapping[str, Bean]:
    filters, orders, mappings = (_bean(name, version) for name in ("ConsumerFilterData", "OrderInfo", "TopicQueueMappingDetail"))
    return {
        "consumerFilter.json": Bean(
            {"filterDataByTopic": MapOf(Bean({"topic": TEXT, "groupFilterData": MapOf(filters)}))}
        ),
        "consumerOrderInfo.json": Bean({"table": MapOf(MapOf(orders, keys=INT))}),
        "topicQueueMapping.json": Bean({"topicQueueMappingInfoMap": MapOf(mappings), "dataVersion": _VERSION}),
        "timermetrics": Bean({"timingCount": MapOf(_METRIC), "dataVersion": _VERSION}),
    }  # fmt: skip


_SCALARS = frozenset({str, int, bool})
_NOTHING: dict[str, Any] = {}


class LeftOut:
    """A hook of the parser for files of which nothing is kept. An entry as a broker writes it becomes an empty one."""

    def __init__(self, name: str, rules: ConfigRules):
        entry = entry_of(name, rules) if name in ("consumerFilter.json", "timermetrics") else None
        self._fields = entry.fields if entry is not None else {}

    def __call__(self, read: dict[str, Any]) -> dict[str, Any]:
        if not self._fields.keys() & read.keys():
            return read
        for key, value in read.items():
            kind = self._fields.get(key)
            if not (type(value) in _SCALARS if kind is None else is_written(value, kind)):
                return read
        return _NOTHING


def other_of(name: str, rules: ConfigRules) -> Any:
    """Return the kind of value in a file of which no entry is kept; None if that is not known."""
    return _others(rules.version).get(name)


_ENTRIES = {
    "topics.json": "TopicConfig",
    "subscriptionGroup.json": "SubscriptionGroupConfig",
    "consumerFilter.json": "ConsumerFilterData",
    "consumerOrderInfo.json": "OrderInfo",
    "topicQueueMapping.json": "TopicQueueMappingDetail",
}


def entry_of(name: str, rules: ConfigRules) -> Bean | None:
    """Return the bean of an entry in a file's own table; None for an entry that is a number."""
    if name == "timermetrics":
        return _METRIC
    return _bean(_ENTRIES[name], rules.version) if name in _ENTRIES else None
