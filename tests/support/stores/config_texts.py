"""Files of config/ as brokers write them, with the bytes of each entry. Imports nothing of the product.

text = config_text("config/topics.json", random, pretty=True)
kept = text.untouched(start, end)    # the entries of which no byte is in that range
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from random import Random
from typing import Any

FILES = (
    "config/topics.json",
    "config/subscriptionGroup.json",
    "config/consumerOffset.json",
    "config/delayOffset.json",
    "config/consumerFilter.json",
    "config/consumerOrderInfo.json",
    "config/topicQueueMapping.json",
    "config/timermetrics",
)
NAMES = ("orders", "%RETRY%g", "a b", "标签", "_x", "q't", "back\\slash", "{0:1}", "x,y", "\U0001f407")
Key = tuple[Any, ...]


@dataclass
class ConfigText:
    """data: the file.  entries: (table, keys) -> value.  spans: the bytes that say so; the next one after them counts too."""

    data: bytes = b""
    entries: dict[Key, Any] = field(default_factory=dict)
    spans: dict[Key, list[tuple[int, int]]] = field(default_factory=dict)

    def says(self, key: Key, value: Any) -> bool:
        """Whether the file has that value in that table."""
        return key in self.entries and self.entries[key] == value

    def untouched(self, start: int, end: int) -> dict[Key, Any]:
        """Those that a change of that range leaves whole."""
        return {
            key: self.entries[key]
            for key, spans in self.spans.items()
            if all(last <= start or first >= end for first, last in spans)
        }


def config_text(path: str, random: Random, pretty: bool) -> ConfigText:
    """A random one. pretty: a pair a line, as fastjson2 writes; else all in one line."""
    names = random.sample(NAMES, random.randrange(2, 8))
    made = _Text(pretty)
    version = {"counter": random.randrange(20), "stateVersion": 0, "timestamp": 1_700_000_000_000 + random.randrange(9999)}
    made.add("{")
    made.add(f'"dataVersion":{_json(version, pretty)},')
    if path.endswith("topics.json"):
        made.rows("topicConfigTable", {name: _topic(name, random) for name in names})
    elif path.endswith("subscriptionGroup.json"):
        made.numbers("forbiddenTable", {name: {other: random.randrange(99) for other in names[:2]} for name in names[1:3]})
        made.add(",")
        made.rows("subscriptionGroupTable", {name: _group(name, random) for name in names})
    elif path.endswith("consumerOffset.json"):
        for table in ("offsetTable", "pullOffsetTable"):
            held = {
                f"{name}@g{n}": {q: random.randrange(10**6) for q in range(random.randrange(1, 5))}
                for n, name in enumerate(names)
            }
            made.numbers(table, held)
            made.add("," if table == "offsetTable" else "")
    elif path.endswith("delayOffset.json"):
        made.levels("offsetTable", {level: random.randrange(10**6) for level in range(1, random.randrange(3, 18))})
    elif path.endswith("consumerFilter.json"):
        made.filters({name: {f"g{n}": _filter(name, f"g{n}") for n in range(random.randrange(1, 4))} for name in names})
    elif path.endswith("consumerOrderInfo.json"):
        row = {"a": "attempt", "cm": 0, "i": 60000, "l": 17, "o": [0, 3], "oc": {1: 1}, "popTime": 5}
        made.nested("table", {f"{name}@g": dict.fromkeys(range(2), row) for name in names})
    elif path.endswith("topicQueueMapping.json"):
        held_queue = [{"bname": "b", "endOffset": -1, "gen": 0, "logicOffset": 0, "queueId": 0, "startOffset": 0}]
        row = {"bname": "b", "currIdMap": {0: 0}, "epoch": 1, "hostedQueues": {0: held_queue}, "totalQueues": 1}
        made.rows("topicQueueMappingInfoMap", dict.fromkeys(names, row))
    else:
        made.rows("timingCount", {name: {"count": random.randrange(9), "timeStamp": 17} for name in names})
    made.add("}")
    return ConfigText(bytes(made.data), made.entries, made.spans)


class _Text:
    def __init__(self, pretty: bool):
        self.data = bytearray()
        self.entries: dict[Key, Any] = {}
        self.spans: dict[Key, list[tuple[int, int]]] = {}
        self._pretty = pretty
        self._head: list[tuple[int, int]] = []  # of a table that is known by its name alone

    def add(self, text: str) -> tuple[int, int]:
        start = len(self.data)
        self.data += (text + ("\n\t" if self._pretty and text[-1:] in ("{", ",", "}") else "")).encode()
        return start, start + len(text.encode())

    def rows(self, table: str, held: dict[str, Any]) -> None:
        self.add(f'"{table}":{{')
        for number, (name, row) in enumerate(held.items()):
            self.add("," if number else "")
            self._put((table, name), row, [self.add(f"{_json(name, False)}:{_json(row, self._pretty)}")])
        self.add("}")

    def nested(self, table: str, held: dict[str, dict[int, Any]]) -> None:
        self.add(f'"{table}":{{')
        for number, (name, rows) in enumerate(held.items()):
            start, _ = self.add(("," if number else "") + f"{_json(name, False)}:{{")
            for queue, row in rows.items():
                _, end = self.add(("," if queue else "") + f"{queue}:{_json(row, self._pretty)}")
                self._put((table, name, queue), row, [(start, end)])
            self.add("}")
        self.add("}")

    def numbers(self, table: str, held: dict[str, dict[Any, int]]) -> None:
        head = self.add(f'"{table}":{{')
        self._head = [] if table == "offsetTable" else [head]
        before = set(self.entries)
        for number, (name, pairs) in enumerate(held.items()):
            start, _ = self.add(("," if number else "") + f"{_json(name, False)}:{{")
            for place, (key, value) in enumerate(pairs.items()):
                shown = key if isinstance(key, int) else _json(key, False)
                _, end = self.add(("," if place else "") + f"{shown}:{value}")
                self._put((table, name, key), value, [*self._head, (start, end + 1)])
            self.add("}")
        _, end = self.add("}")
        if table == "forbiddenTable":  # names with numbers are in other parts of the file, too
            self.spans |= {key: [(head[0], end)] for key in self.entries.keys() - before}

    def levels(self, table: str, held: dict[int, int]) -> None:
        head, _ = self.add(f'"{table}":{{')
        for number, (level, value) in enumerate(held.items()):
            start, end = self.add(("," if number else "") + f"{level}:{value}")
            self._put((table, level), value, [(start if number else head, end + 1)])
        self.add("}")

    def filters(self, held: dict[str, dict[str, Any]]) -> None:
        table = "filterDataByTopic"
        self.add(f'"{table}":{{')
        for number, (topic, groups) in enumerate(held.items()):
            start, _ = self.add(("," if number else "") + f'{_json(topic, False)}:{{"groupFilterData":{{')
            for place, (group, row) in enumerate(groups.items()):
                self.add("," if place else "")
                _, end = self.add(f"{_json(group, False)}:{_json(row, self._pretty)}")
                self._put((table, topic, "groupFilterData", group), row, [(start, end)])
            self.add(f'}},"topic":{_json(topic, False)}}}')
        self.add("}")

    def _put(self, key: Key, value: Any, spans: list[tuple[int, int]]) -> None:
        self.entries[key], self.spans[key] = value, spans


def _json(value: Any, pretty: bool) -> str:
    text = json.dumps(value, ensure_ascii=False, indent="\t" if pretty else None, separators=(",", ":"))
    return re.sub(r'(?<=[{,\s])"(-?[0-9]+)":', r"\1:", text)  # an integer's key has no quotes


def _topic(name: str, random: Random) -> dict[str, Any]:
    queues = random.randrange(1, 9)
    return {
        "attributes": random.choice([{}, {"queue.type": "BatchCQ"}]), "order": False, "perm": random.choice([2, 4, 6]),
        "readQueueNums": queues, "topicFilterType": "SINGLE_TAG", "topicName": name, "topicSysFlag": 0, "writeQueueNums": queues,
    }  # fmt: skip


def _group(name: str, random: Random) -> dict[str, Any]:
    return {
        "attributes": {}, "brokerId": 0, "consumeEnable": random.random() < 0.8, "groupName": name,
        "groupRetryPolicy": {"type": "CUSTOMIZED"}, "retryMaxTimes": random.randrange(20), "retryQueueNums": 1,
    }  # fmt: skip


def _filter(topic: str, group: str) -> dict[str, Any]:
    return {
        "bloomFilterData": {"bitNum": 112, "bitPos": [90, 93, 47]}, "bornTime": 5, "clientVersion": 7, "consumerGroup": group,
        "deadTime": 0, "expression": "a > 3 AND b = 'x'", "expressionType": "SQL92", "topic": topic,
    }  # fmt: skip
