"""Tables of config/ as a release writes them, byte for byte the form of its parser.

Source: RemotingSerializable.toJson(.., prettyFormat), TopicConfigSerializeWrapper, SubscriptionGroupManager.encode,
ConsumerOffsetManager.encode, DelayOffsetSerializeWrapper, DataVersion; fastjson's SerializeWriter and fastjson2's
JSONWriterUTF16 (config.md 4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.rows import Row
from store_io.broker.settings.config_rules import ConfigRules


def config_text(held: Row, rules: ConfigRules) -> bytes:
    """Return the text of a file. A map with integers for keys is one of offsets, which fastjson 1 writes on one line."""
    return "".join(_value(held, rules, 0)).encode("utf-8")


def _value(value: Any, rules: ConfigRules, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _map(value, rules, depth)
    elif isinstance(value, list) and value and rules.pair_a_line:
        yield from _lines("[", ([*_value(item, rules, depth + 1)] for item in value), "]", depth)
    elif isinstance(value, list):
        yield "[" + ",".join("".join(_value(item, rules, depth + 1)) for item in value) + "]"
    elif isinstance(value, str):
        yield _text(value)
    else:
        yield json.dumps(value)


def _map(held: Mapping[Any, Any], rules: ConfigRules, depth: int) -> Iterator[str]:
    in_line = not rules.pair_a_line and any(type(key) is int for key in held)
    if in_line:
        pairs = ",".join(f"{key}:{''.join(_value(value, rules, depth + 1))}" for key, value in held.items())
        yield "{" + pairs + "\n" + "\t" * depth + "}"
    elif held or rules.pair_a_line:
        rows = (
            [f"{key if type(key) is int else _text(str(key))}:", *_value(value, rules, depth + 1)] for key, value in held.items()
        )
        yield from _lines("{", rows, "}", depth)
    else:
        yield "{}"


def _lines(opening: str, rows: Iterator[list[str]], closing: str, depth: int) -> Iterator[str]:
    inner = "\n" + "\t" * (depth + 1)
    yield opening + inner
    for number, row in enumerate(rows):
        if number:
            yield "," + inner
        yield from row
    yield "\n" + "\t" * depth + closing


def _text(value: str) -> str:
    """Return the text with an escape for half of a surrogate pair, which no UTF-8 has."""
    halves = any("\ud800" <= character <= "\udfff" for character in value)
    return json.dumps(value, ensure_ascii=halves)


def version_row(counter: int, time_ms: int, rules: ConfigRules) -> Row:
    state = {"stateVersion": 0} if rules.attributes else {}
    return {"counter": counter, **state, "timestamp": time_ms}


def topic_row(name: str, queues: int, attributes: Mapping[str, str], rules: ConfigRules) -> Row:
    """Return a topic that clients may read and write."""
    return {
        **({"attributes": dict(attributes)} if rules.attributes else {}),
        "order": False, "perm": 6, "readQueueNums": queues, "topicFilterType": "SINGLE_TAG", "topicName": name, "topicSysFlag": 0,
        "writeQueueNums": queues,
    }  # fmt: skip


def group_row(name: str, rules: ConfigRules) -> Row:
    """Return a group with the settings of one that a broker makes by itself."""
    row: Row = {"brokerId": 0, "consumeBroadcastEnable": True, "consumeEnable": True, "consumeFromMinEnable": True}
    if rules.attributes:
        row = {
            "attributes": {}, **row, "consumeMessageOrderly": False, "consumeTimeoutMinute": 15, "groupName": name,
            "groupRetryPolicy": {"type": "CUSTOMIZED"}, "groupSysFlag": 0,
        }  # fmt: skip
    row |= {"groupName": name, "notifyConsumerIdsChangedEnable": True, "retryMaxTimes": 16, "retryQueueNums": 1}
    return {**row, "whichBrokerWhenConsumeSlowly": 1}
