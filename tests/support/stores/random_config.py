"""Random files of config/, damaged at random: everything follows from one `random.Random`. Imports nothing of the product."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from random import Random
from typing import Any

FILES = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "delayOffset.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
    "topicQueueMapping.json",
    "timermetrics",
)
NAMES = ("Topic0", "orders", "%RETRY%g", "a b", "标签", "_x", "T\\u0041", "\U0001f407")
# Left out below: white space that is none in JSON, and what no broker and no editor writes.

# What may stand in a value's place.
VALUES = (
    "null", "NULL", "true", "false", "TRUE", "0", "-0", "-1", "7", "1.5", "-1.5", "2.0", "1e3", "1E400", "1e-5", "1e+2",
    "1.e3", "1L", "1B", "1S", "1D", "1F", "1.5D", "01", "007", "+1", "0x10", "NaN", "Infinity", "1.", "-", ".5", "1_000",
    "--1", "1-", "1 2", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "18446744073709551621", "12345678901234567890123", "0.1e1", "3000000000.0",
    "99999999999999999999.0", "6.99999999999", '"4"', '" 4 "', '"4.0"', '"1e3"', '"x"', '""', "'a'", "'4'", '"null"',
    '"NULL"', '"true"', '"TRUE"', '"True"', '"Y"', '"T"', '"1"', '"0"', '"1,000"', '"0x10"', '"+4"', '"-4"', '"4L"',
    '"9223372036854775808"', '"2147483648"', '"\\u0034"', '"\\x34"', '"\\q"', '"\\u12"', '"a\nb"', '"a\tb"', '"a\x01b"',
    '"SINGLE_TAG"', '"MULTI_TAG"', '"OTHER"', "[]", "[1]", "[1,2]", "{}", '{"a":1}', "[{}]", '[null]', "[,]", "[1,]", "{,}",
    "new Date(1)", "Set[]", "Set[1]", "TreeSet[]", "undefined", "x'1F'", '{"$ref":"$"}', '{"$ref":".."}',
    '{"@type":"java.util.HashMap"}', '{"@type":"x.Y","a":1}', "abc", "nul", "tru", "nullx", "falsey", "(1)",
    "/*c*/5", "5/*c*/", "//c\n5", "\ufeff5", "{1:2}", "{null:1}", "{true:1}", "{-1:1}",
    "1e99999999999999999999", "9" * 5000, '"1e99999999999999999999"', '"' + "9" * 5000 + '"', "0e999999",
    "{'a':1}", "{a-b:1}", '{"a"}', '{"a":}', '{"a" 1}', "[1 2]",
)  # fmt: skip
# What may stand in a key's place.
KEYS = (
    "null", "true", "0", "-1", "00", "1.5", "1L", "x", "'x'", "x-y", "x.y", "$x", "_x", "标签", '""', '"x"', "'offsetTable'",
    "offsetTable", '"OffsetTable"', '"offset_table"', '"offset-table"', '"topicConfigTable"', "topicConfigTable",
    '"TOPICCONFIGTABLE"', '"dataVersion"', '"readQueueNums"', '"ReadQueueNums"', '"read_queue_nums"', '"perm"', '"PERM"',
    '"isorder"', '"order"', '"isOrder"', '"counter"', '"timestamp"', '"attributes"', '"@type"', '"$ref"',
    '"subscriptionGroupTable"', '"forbiddenTable"', '"consumeEnable"', '"isConsumeEnable"', '"lmqOffsetTable"', '"topicName"',
    '" readQueueNums"', '"\\u0070erm"', '"\\x70erm"', "9223372036854775808", '" 0 "', '"0x1"', '"x@g"', '"@"', '"T@g@h"',
    "{}", "[]", "+1", "1e1", '"1"', "1 ", "/*c*/1", '"retryMaxTimes"', '"writeQueueNums"', '"topicSysFlag"',
    "1e99999999999999999999", "9" * 5000, '"1e99999999999999999999"', '"' + "9" * 5000 + '"',
    '"topicFilterType"', '"brokerId"', '"stateVersion"', '"groupTopicMap"', '"pullOffsetTable"', '"groupRetryPolicy"',
    '"subscriptionDataSet"', '"bloomFilterData"', '"offsetList"', '"laterField"',
)  # fmt: skip
TEXTS = (
    ",", ",,", ":", "::", "}", "]", '"', "'", "\\", "/*c*/", "/*c", "//c\n", "//c", "/", "#c\n", "\ufeff", "\0",
    "\x1a", "\x01", "\x0b", "\x0c", "\b", "\x7f", "\x85", "\u2028", "\u3000", " ", "\n", "\r\n", ";", "=", "null",
    "0", "x", "L", "1e99999999999999999999", "9" * 5000, '""', "\ud7ff", "\r",
)  # fmt: skip
WHOLE = (
    b"", b" ", b"\n\t ", b"\x1a", b"NULL", b'""', b"''", b"}", b"]", b"null", b"null ", b"{}", b"[]", b"[ ]", b"{ }", b"{}}",
    b"{},", b"{};", b"{}\0", b"\0{}", b"\xef\xbb\xbf{}", b"\xef\xbb\xbf", b"/*c*/", b"/*c*/{}", b"//c", b"//c\n{}", b"{}//c",
    b"{}/*c*/", b"{/*c*/}", b"true", b"123", b'"x"', b"<html>", b"{", b"{}garbage", b"{} {}", b"[{}]", b"(", b":", b",", b"-",
    b"\xff\xfe", b'{"@type":"java.util.HashMap"}', b"undefined", b"new Date(1)", b"Set[]", b"TreeSet[]", b"\b", b"\f", b"\v",
    b"\x7f", b"{null:1}", b'{"$ref":"$"}', b"{'a':1}", b"{a:1}", b"null{}", b"null null", b"{}\x1a{}",
    b"\x1a{}", b"{}\x1a", b"nul", b"NULL{}",
)  # fmt: skip
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9]+|[A-Za-z]+|[{}\[\],:]|\s+')


def random_config(folder: Path, random: Random, pretty: bool) -> str:
    """Files of one store in `folder`, and what was done to each, a line each. pretty: as fastjson2 writes them, a pair a line."""
    folder.mkdir(parents=True)
    said = []
    for name in FILES:
        text = _written(name, random, pretty).encode()
        older = _written(name, random, pretty).encode()
        data, done = _damaged(text, random)
        if random.random() > 0.05:
            (folder / name).write_bytes(data)
        else:
            done = ["missing"]
        backup = random.choice(["none", "none", "same", "older", "older", "empty", "damaged"])
        if backup != "none":
            held = {"same": text, "older": older, "empty": b""}.get(backup)
            if held is None:
                held, worse = _damaged(older, random)
                backup = " and ".join(worse) or "whole"
            (folder / f"{name}.bak").write_bytes(held)
        said.append(f"{name}: {', '.join(done) or 'whole'}, .bak {backup}")
    return "\n".join(said)


# ---- what a broker writes ------------------------------------------------------------------------------------------


def _written(name: str, random: Random, pretty: bool) -> str:
    version = {"counter": random.randrange(20), "stateVersion": 0, "timestamp": 1_700_000_000_000 + random.randrange(9999)}
    names = random.sample(NAMES, random.randrange(1, 5))
    table: dict[Any, Any]
    if name == "topics.json":
        topics = {each: _topic(each, random, pretty) for each in names}
        table = {"dataVersion": version, "topicConfigTable": topics}
    elif name == "subscriptionGroup.json":
        groups = {each: _group(each, random) for each in names}
        table = {"dataVersion": version, "forbiddenTable": {}, "subscriptionGroupTable": groups}
    elif name == "consumerOffset.json":
        offsets = {f"{each}@g{n}": _numbers(random) for n, each in enumerate(names)}
        table = {
            "dataVersion": version,
            "groupTopicMap": {f"g{n}": [each] for n, each in enumerate(names)},
            "offsetTable": offsets,
        }
        if random.random() < 0.2:
            table["pullOffsetTable"] = {key: dict(queues) for key, queues in offsets.items()}
    elif name == "delayOffset.json":
        table = {"dataVersion": version, "offsetTable": _numbers(random, 18)}
    elif name == "consumerFilter.json":
        filters = {each: {"groupFilterData": {"g": _filter(each)}, "topic": each} for each in names}
        table = {"filterDataByTopic": filters}
    elif name == "consumerOrderInfo.json":
        order = {"a": "attempt", "cm": 0, "i": 60000, "l": 17, "o": [0, 3], "oc": {1: 1}, "popTime": 5}
        table = {"table": {f"{each}@g": {0: order} for each in names}}
    elif name == "topicQueueMapping.json":
        table = {"dataVersion": version, "topicQueueMappingInfoMap": {each: _mapping(each) for each in names}}
    else:
        table = {"dataVersion": version, "timingCount": {each: {"count": 3, "timeStamp": 17} for each in names}}
    text = json.dumps(table, ensure_ascii=False, indent="\t" if pretty else None, separators=(",", ":"))
    text = text.replace("T\\\\u0041", "TA")
    return re.sub(r'(?<=[{,\s])"(-?[0-9]+)":', r"\1:", text)  # an integer's key has no quotes


def _topic(name: str, random: Random, attributes: bool) -> dict[str, Any]:
    topic = {
        "order": random.random() < 0.2,
        "perm": random.choice([6, 6, 4, 2]),
        "readQueueNums": random.randrange(1, 9),
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": random.randrange(9),
    }
    held = random.choice([{}, {"queue.type": "BatchCQ"}, {"cleanup.policy": "COMPACTION"}])
    return {"attributes": held, **topic} if attributes or random.random() < 0.2 else topic


def _group(name: str, random: Random) -> dict[str, Any]:
    return {
        "brokerId": 0,
        "consumeBroadcastEnable": True,
        "consumeEnable": random.random() < 0.8,
        "consumeFromMinEnable": True,
        "groupName": name,
        "groupRetryPolicy": {"type": "CUSTOMIZED"},
        "notifyConsumerIdsChangedEnable": True,
        "retryMaxTimes": random.randrange(20),
        "retryQueueNums": random.randrange(1, 4),
        "whichBrokerWhenConsumeSlowly": 1,
    }


def _numbers(random: Random, most: int = 4) -> dict[int, int]:
    return {key: random.choice([0, 5, 1000, 1 << 40]) for key in range(random.randrange(1, most + 1))}


def _filter(topic: str) -> dict[str, Any]:
    return {
        "bloomFilterData": {"bitNum": 112, "bitPos": [47, 105, 51]},
        "bornTime": 17,
        "clientVersion": 18,
        "consumerGroup": "g",
        "dead": False,
        "deadTime": 0,
        "expression": "a > 3",
        "expressionType": "SQL92",
        "topic": topic,
    }


def _mapping(topic: str) -> dict[str, Any]:
    queue = {
        "bname": "broker-a",
        "endOffset": -1,
        "gen": 0,
        "logicOffset": 0,
        "queueId": 0,
        "startOffset": 0,
        "timeOfEnd": -1,
        "timeOfStart": -1,
    }
    return {
        "bname": "broker-a",
        "currIdMap": {0: 0, 1: 1},
        "dirty": False,
        "epoch": 1_700_000_000_000,
        "hostedQueues": {0: [queue], 1: [{**queue, "queueId": 1}]},
        "scope": "__global__",
        "topic": topic,
        "totalQueues": 2,
    }


# ---- damages -------------------------------------------------------------------------------------------------------


def _damaged(data: bytes, random: Random) -> tuple[bytes, list[str]]:
    done = []
    for _ in range(random.choice([0, 1, 1, 1, 2])):
        kind = random.choice(["value", "value", "value", "key", "text", "text", "delete", "bytes", "whole", "encoding"])
        data, what = _one(kind, data, random)
        done.append(f"{kind} {what}")
    return data, done


def _one(kind: str, data: bytes, random: Random) -> tuple[bytes, str]:
    if kind == "whole":
        chosen = random.choice(WHOLE)
        return chosen, repr(chosen)
    if kind == "encoding":
        return _otherwise_encoded(data, random)
    if kind == "bytes" or not data:
        return _other_bytes(data, random)
    text = data.decode("utf-8", "surrogateescape")
    tokens = list(_TOKEN.finditer(text))
    keys = [m for m in tokens if text[m.end() :].lstrip()[:1] == ":" and m[0].strip() and m[0] != ":"]
    if kind == "value":
        values = [m for m in tokens if m not in keys and m[0].strip() and m[0] not in "{}[],:"]
        return _put(text, random.choice(values or tokens or [None]), random.choice(VALUES))
    if kind == "key":
        return _put(text, random.choice(keys or tokens or [None]), random.choice(KEYS))
    if kind == "delete":
        return _put(text, random.choice([m for m in tokens if m[0] not in "{}[]"] or [None]), "")
    chosen = random.choice(tokens or [None])
    new = random.choice(TEXTS)
    if chosen is not None and random.random() < 0.5:
        return _put(text, chosen, chosen[0] + new)
    return _put(text, chosen, new + (chosen[0] if chosen else ""))


def _put(text: str, place: re.Match[str] | None, new: str) -> tuple[bytes, str]:
    start, end = (place.start(), place.end()) if place is not None else (0, 0)
    return (text[:start] + new + text[end:]).encode("utf-8", "surrogateescape"), f"{text[start:end]!r} -> {new!r}"


def _otherwise_encoded(data: bytes, random: Random) -> tuple[bytes, str]:
    text = data.decode("utf-8", "replace")
    kind = random.choice(["utf-16", "utf-16-be", "gbk", "latin-1", "utf-8-sig", "gzip", "crlf"])
    if kind == "gzip":
        return gzip.compress(data, mtime=0), kind
    if kind == "crlf":
        return text.replace("\n", "\r\n").encode(), kind
    return text.encode(kind, "replace"), kind


def _other_bytes(data: bytes, random: Random) -> tuple[bytes, str]:
    size = len(data)
    at = random.randrange(size + 1)
    match random.choice(["flip", "flip", "cut", "zeros", "zeroed", "page", "double", "random", "swap"]):
        case "flip" if at < size:
            new = data[at] ^ 1 << random.randrange(8)
            return data[:at] + bytes([new]) + data[at + 1 :], f"{data[at]:02x} -> {new:02x} at {at}"
        case "cut":
            return data[:at], f"cut at {at}"
        case "zeros":
            return data + bytes(random.choice([1, 9, 4096])), "zeros behind"
        case "zeroed":
            return data[:at] + bytes(size - at), f"zeros from {at}"
        case "page":
            end = min(size, at + random.choice([1, 4, 40]))
            return data[:at] + bytes(end - at) + data[end:], f"zeros from {at} to {end}"
        case "double":
            end = min(size, at + random.randrange(40))
            return data[:end] + data[at:], f"{at} to {end} twice"
        case "random":
            return data[:at] + random.randbytes(3) + data[at:], f"3 bytes at {at}"
        case _:
            return data[at:] + data[:at], f"from {at} first"
