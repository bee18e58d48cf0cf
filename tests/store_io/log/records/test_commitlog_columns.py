"""Two decoders, one suite: the compiled one and the reference give the same rows for any bytes, and the rows say what was made.

Expected values come from the records as they were made (`Made`) and from `stores.builders`, not from the code under test.
"""

from __future__ import annotations

import base64
import mmap
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from store_io.base.crc import checksum
from store_io.broker.message_verdict import BufferFrames, Message, properties_fault
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.log.records import commitlog_columns, commitlog_reader
from store_io.log.records import message_columns as mc
from store_io.log.records.message_columns import Columns, RecordCheck, Stop, Stretch, TopicTable, append_message
from tests import ROOT
from tests.support.stores import builders, strategies
from tests.support.stores.builders import index_hash, java_hash

Decode = Callable[[Stretch, RecordCheck, Columns, TopicTable], Stop]
DECODERS: dict[str, Decode] = {"fast": commitlog_columns.decode, "reference": commitlog_reader.decode}
V4, V6 = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f", bytes(range(16)) + b"\x00\x00\x2a\x9f"


@pytest.fixture(params=DECODERS)
def decode(request: pytest.FixtureRequest) -> Decode:
    return DECODERS[request.param]


# ---- records ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """One record's fields. None: what belongs there; a number or bytes: exactly that, right or wrong."""

    topic: bytes = b"TopicA"
    props: bytes = b""
    body: bytes = b"body"
    queue_id: int = 3
    queue_offset: int = 11
    sys_flag: int = 0
    flag: int = -5
    born_time: int = 1_700_000_000_001
    store_time: int = 1_700_000_000_777
    born_host: bytes = V4
    store_host: bytes = V4
    reconsume_times: int = 2
    prepared_offset: int = 1 << 40
    magic: int = builders.V1
    total: int | None = None
    phy_offset: int | None = None
    body_crc: int | None = None
    body_length: int | None = None
    topic_length: int | None = None
    props_length: int | None = None

    def encode(self, at: int) -> bytes:
        flag = self.sys_flag | (0x10 if len(self.born_host) == 20 else 0) | (0x20 if len(self.store_host) == 20 else 0)
        wide = self.magic == builders.V2
        total = 91 + wide + len(self.born_host) + len(self.store_host) - 16 + len(self.body) + len(self.topic) + len(self.props)
        crc = zlib.crc32(self.body) & 0x7FFFFFFF if self.body_crc is None else self.body_crc
        head = struct.pack(
            ">iIIiiqqi",
            total if self.total is None else self.total,
            self.magic,
            crc,
            self.queue_id,
            self.flag,
            self.queue_offset,
            at if self.phy_offset is None else self.phy_offset,
            flag,
        )
        middle = struct.pack(">iq", self.reconsume_times, self.prepared_offset)
        length = len(self.body) if self.body_length is None else self.body_length
        topic_length = len(self.topic) if self.topic_length is None else self.topic_length
        props_length = len(self.props) if self.props_length is None else self.props_length
        return b"".join(
            [
                head,
                struct.pack(">q", self.born_time) + self.born_host,
                struct.pack(">q", self.store_time) + self.store_host,
                middle,
                struct.pack(">i", length) + self.body,
                struct.pack(">h" if wide else ">b", topic_length) + self.topic,
                struct.pack(">h", props_length) + self.props,
            ]
        )


def properties(*pairs: tuple[str, str], closing: bool = True) -> bytes:
    return builders.pack_properties(pairs, closing)


def with_crc(made: Made, at: int = 0, digits: bytes | None = None) -> Made:
    """The record with a property CRC at its properties' end."""
    bare = replace(made, props=made.props + b"__CRC32#\x01" + bytes(10) + b"\x02")
    value = zlib.crc32(bare.encode(at)[:-20]) & 0x7FFFFFFF
    text = builders.property_crc_text(value).encode() if digits is None else digits
    return replace(made, props=made.props + b"__CRC32#\x01" + text + b"\x02")


def segment(records: Sequence[Made], base: int = 0) -> bytes:
    data = b""
    for made in records:
        data += made.encode(base + len(data))
    return data


def rules_with(release: str = "5.3.3", **values: bool) -> BrokerRules:
    return broker_rules(release, {key: Setting(value, "broker.conf") for key, value in values.items()})


CHECKS: dict[str, RecordCheck] = {
    "audit": RecordCheck.audit(0),
    "audit without delays": RecordCheck.audit(0, {}),
    "4.8.0": RecordCheck.broker(broker_rules("4.8.0")),
    "4.9.8": RecordCheck.broker(broker_rules("4.9.8")),
    "5.0.0": RecordCheck.broker(broker_rules("5.0.0")),
    "5.3.3": RecordCheck.broker(broker_rules("5.3.3")),
    "5.5.0": RecordCheck.broker(broker_rules("5.5.0")),
    "no CRC": RecordCheck.broker(rules_with(checkCRCOnRecover=False)),
    "property CRC 5.2.0": RecordCheck.broker(rules_with("5.2.0", forceVerifyPropCRC=True)),
    "property CRC 5.4.0": RecordCheck.broker(rules_with("5.4.0", forceVerifyPropCRC=True)),
    "property CRC, no CRC": RecordCheck.broker(rules_with("5.4.0", forceVerifyPropCRC=True, checkCRCOnRecover=False)),
    "duplication": RecordCheck.broker(rules_with("5.1.4", duplicationEnable=True)),
    "reput 4.9.8": RecordCheck.reput(broker_rules("4.9.8")),
    "reput 5.1.4": RecordCheck.reput(rules_with("5.1.4", duplicationEnable=True)),
}


# ---- walking ---------------------------------------------------------------------------------------------------------


@dataclass
class Walked:
    """All that a walk yields, however it was cut into windows and batches."""

    rows: np.ndarray
    keys: list[list[int]]
    topics: list[tuple[str, int]]
    end: int
    asked: int = 0  # frames that the decoder left to the reference and that were valid
    kinds: list[str] = field(default_factory=list)

    def column(self, name: str) -> list[int]:
        return [int(value) for value in self.rows[name]]


def walk(
    decode: Decode,
    data: bytes,
    check: RecordCheck,
    want_keys: bool = True,
    window: int = 1 << 20,
    capacity: int = 7,
    spare: int = 0,
    ask: bool = True,
) -> Walked:
    """Decode from position 0 until a frame that is not valid, as a scan does: windows, batches, and the reference for the rest.

    spare: bytes before and behind each window in the buffer.  ask: False stops at the first frame that is not accepted.
    """
    columns, topics = Columns(capacity, want_keys), TopicTable()
    rows: list[np.ndarray] = []
    result = Walked(np.zeros(0, mc.ROW_DTYPE), [], [], 0)
    at, size = 0, min(window, len(data))

    def drain() -> None:
        rows.append(columns.rows[: columns.count].copy())
        for row in rows[-1]:
            with_tags = bool(row["flags"] & mc.HAS_TAGS) and row["sys_flag"] & 0xC != 0xC
            start, count = int(row["key_start"]), int(row["key_count"]) + with_tags
            result.keys.append(columns.key_hash[start : start + count].tolist() if want_keys else [])
        columns.clear()

    while True:
        end = min(at + size, len(data))
        buffer = np.frombuffer(b"\xda\xa3" * spare + data[at:end] + b"\xa7\x20" * spare, np.uint8)
        stop = decode(Stretch(buffer, at - 2 * spare, at, end, end == len(data)), check, columns, topics)
        assert at <= stop.position <= end
        assert columns.count or stop.position == at
        result.kinds.append(stop.kind)
        at = stop.position
        if stop.kind == mc.FULL:
            drain()
        elif stop.kind == mc.NEED_MORE:
            assert end < len(data) and stop.need_bytes >= 8
            size = max(window, min(stop.need_bytes, len(data)))
        else:
            frames = BufferFrames(data)
            verdict = check.verdict(frames, at, len(data)) if ask and at < len(data) else None
            if verdict is None or verdict.kind != "valid" or verdict.message is None:
                break
            if columns.full:
                drain()
            append_message(columns, topics, verdict.message, frames, check)
            result.asked += 1
            at += verdict.size
    drain()
    result.rows, result.topics, result.end = np.concatenate(rows), topics.keys, at
    return result


def assert_same(left: Walked, right: Walked) -> None:
    assert left.end == right.end
    assert left.topics == right.topics
    names = [name for name in mc.ROW_DTYPE.names or () if name != "key_start"]  # differs with the cut into batches
    for name in names:
        assert left.column(name) == right.column(name), name
    assert left.keys == right.keys


def one(decode: Decode, made: Made, check: RecordCheck = CHECKS["audit"], ask: bool = True) -> Walked:
    """The record by itself, in a segment that goes on with zeros."""
    return walk(decode, made.encode(0) + bytes(64), check, ask=ask)


# ---- what a row says -------------------------------------------------------------------------------------------------


def test_every_column_of_one_message(decode: Decode) -> None:
    props = properties(("UNIQ_KEY", "7F00000100002A9F18B4AAC2"), ("WAIT", "true"), ("TAGS", "TagA"), ("KEYS", "k1 k2"))
    first, made = Made(), Made(props=props, born_host=V6, magic=builders.V2, topic=b"TopicB", sys_flag=0x8)
    data = segment([first, made])
    walked = walk(decode, data, CHECKS["audit"], ask=False)
    assert walked.end == len(data)
    assert walked.topics == [("TopicA", 3), ("TopicB", 3)]
    row = walked.rows[1]
    size = len(first.encode(0))
    body_at = 88 + 12
    props_at = body_at + 4 + 2 + 6 + 2
    expected = {
        "position": size,
        "phy_offset": size,
        "queue_offset": 11,
        "store_time": made.store_time,
        "tags_code": java_hash("TagA"),
        "total_size": len(made.encode(0)),
        "topic_ref": 1,
        "sys_flag": 0x18,
        "store_host": int.from_bytes(V4, "big"),
        "flags": mc.HAS_TAGS | mc.HAS_UNIQ | mc.HAS_KEYS,
        "batch_base": 11,
        "batch_count": 1,
        "key_count": 3,
        "flag": -5,
        "born_time": made.born_time,
        "prepared_offset": 1 << 40,
        "body_crc": zlib.crc32(b"body") & 0x7FFFFFFF,
        "reconsume_times": 2,
        "body_at": body_at,
        "body_len": 4,
        "topic_at": body_at + 6,
        "topic_len": 6,
        "props_at": props_at,
        "props_len": len(props),
        "uniq_at": props_at + props.index(b"7F00"),
        "uniq_len": 24,
        "keys_at": props_at + props.index(b"k1"),
        "keys_len": 5,
        "tags_at": props_at + props.index(b"TagA"),
        "tags_len": 4,
    }
    assert {name: int(row[name]) for name in expected} == expected
    assert set(expected) == set(mc.ROW_DTYPE.names or ()) - {"key_start"}
    names = ["#7F00000100002A9F18B4AAC2", "#k1", "#k2", "#T#TagA"]
    assert walked.keys == [[], [index_hash("TopicB" + name) for name in names]]


@pytest.mark.parametrize(
    "tags", ["a", "TagA", "x" * 15, "x" * 16, "x" * 17, "y" * 33, "polygenelubricants", "标签", "ü", "🐇 и 标签", "𐀀", "\x7f"]
)
@pytest.mark.parametrize("topic", ["T", "TopicABC", "TopicABCD", "T" * 127, "主题"])
def test_hashes_run_over_utf16_units(decode: Decode, tags: str, topic: str) -> None:
    made = Made(topic=topic.encode(), props=properties(("KEYS", tags), ("UNIQ_KEY", tags * 2), ("TAGS", tags)))
    walked = one(decode, made, ask=False)
    assert walked.topics == [(topic, 3)]
    assert walked.column("tags_code") == [java_hash(tags)]
    keys = [tags * 2, *(part for part in tags.split(" ") if part), "T#" + tags]
    assert walked.keys == [[index_hash(f"{topic}#{key}") for key in keys]]
    assert walked.column("key_count") == [len(keys) - 1]


def test_the_hash_of_the_smallest_int_is_zero_in_the_index(decode: Decode) -> None:
    key = smallest_int_key("TopicA#")
    assert java_hash("TopicA#" + key) == -(1 << 31)
    walked = one(decode, Made(props=properties(("KEYS", key))), ask=False)
    assert walked.keys == [[0]]


def smallest_int_key(prefix: str) -> str:
    """A key that makes the hash of prefix + key the smallest int: the digits of the number that is still missing."""
    missing = (-(1 << 31) - java_hash(prefix + "!" * 8)) % (1 << 32)
    digits = []
    for _ in range(8):
        digits.append(missing % 31)
        missing //= 31
    return "".join(chr(ord("!") + digit) for digit in reversed(digits))


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        ("k", 1),
        (" ", 0),
        ("  ", 0),
        (" k ", 1),
        ("a  b", 2),
        ("a b c d", 4),
        ("x" * 200, 1),
        (" ".join("k" * 100), 100),
        ("键 匙", 2),
    ],
)
def test_keys_are_split_on_single_spaces(decode: Decode, keys: str, count: int) -> None:
    for lead in range(0, 70, 23):  # so that the text lies differently in blocks of 64
        made = Made(props=properties(("p" * (lead + 1), "v"), ("KEYS", keys)))
        walked = one(decode, made, ask=False)
        assert walked.column("key_count") == [count]
        assert walked.column("flags") == [mc.HAS_KEYS]
        assert walked.keys == [[index_hash("TopicA#" + key) for key in keys.split(" ") if key]]


@pytest.mark.parametrize("closing", [True, False])
def test_long_keys_are_split_wherever_their_spaces_are(decode: Decode, closing: bool) -> None:
    """Spaces on both sides of every 64th byte, at the beginning and the end; also where the window ends with the keys."""
    for length in (1, 63, 64, 65, 127, 128, 129, 200):
        for spaces in ([], [0], [length - 1], [62, 63], [63, 64, 65], [64], [10, 126, 127, 128], range(0, 200, 2), range(200)):
            keys = "".join(" " if i in spaces else "abcdefghi"[i % 9] for i in range(length))
            made = Made(topic=b"T", props=properties(("KEYS", keys), closing=closing))
            walked = walk(decode, made.encode(0), CHECKS["audit"])
            assert walked.keys == [[index_hash(f"T#{key}") for key in keys.split(" ") if key]], keys


@pytest.mark.parametrize(("transaction", "expected"), [(0x0, 2), (0x4, 2), (0x8, 2), (0xC, 0)])
def test_rollback_puts_no_keys(decode: Decode, transaction: int, expected: int) -> None:
    made = Made(sys_flag=transaction, props=properties(("UNIQ_KEY", "u"), ("KEYS", "k"), ("TAGS", "t")))
    walked = one(decode, made, ask=False)
    assert walked.column("key_count") == [expected]
    assert walked.column("tags_code") == [java_hash("t")]
    assert walked.keys == [[index_hash(f"TopicA#{key}") for key in ("u", "k", "T#t")] if expected else []]


PARSER_CASES: list[tuple[bytes, dict[str, str], dict[str, str]]] = [
    # properties, what 4.9.1 and later read, what 4.9.0 and before read
    (b"TAGS\x01a\x02", {"TAGS": "a"}, {"TAGS": "a"}),
    (b"TAGS\x01a", {"TAGS": "a"}, {"TAGS": "a"}),
    (b"TAGS\x01a\x02TAGS\x01b\x02", {"TAGS": "b"}, {"TAGS": "b"}),
    (b"TAGS\x01a\x02TAGS\x01\x02", {"TAGS": "a"}, {"TAGS": "a"}),
    (b"TAGS\x01\x02", {}, {}),
    (b"TAGS", {}, {}),
    (b"\x01TAGS\x01a\x02", {}, {}),
    (b"TAGS\x02a\x01b", {}, {}),
    (b"TAGSx\x01a\x02xTAGS\x01b\x02", {}, {}),
    (b"TAG\x01a\x02tags\x01b\x02", {}, {}),
    (b"TAGS\x01a\x01b\x02", {"TAGS": "a\x01b"}, {}),
    (b"TAGS\x01a\x01\x02", {"TAGS": "a\x01"}, {"TAGS": "a"}),
    (b"TAGS\x01a\x01\x01\x02KEYS\x01k", {"TAGS": "a\x01\x01", "KEYS": "k"}, {"TAGS": "a", "KEYS": "k"}),
    (b"TAGS\x01ok\x02TAGS\x01a\x01b\x02", {"TAGS": "a\x01b"}, {"TAGS": "ok"}),
    (b"\x02\x02\x02TAGS\x01a\x02\x02", {"TAGS": "a"}, {"TAGS": "a"}),
    (b"x" * 63 + b"\x02TAGS\x01a\x02", {"TAGS": "a"}, {"TAGS": "a"}),
    (b"x" * 59 + b"\x02TAGS\x01a\x02", {"TAGS": "a"}, {"TAGS": "a"}),
    (b"x\x01" + b"y" * 61 + b"\x02TAGS\x01" + b"z" * 130, {"TAGS": "z" * 130}, {"TAGS": "z" * 130}),
]


@pytest.mark.parametrize(("props", "new", "old"), PARSER_CASES)
def test_both_property_parsers(decode: Decode, props: bytes, new: dict[str, str], old: dict[str, str]) -> None:
    for name, expected in (("5.3.3", new), ("4.9.8", new), ("4.8.0", old), ("audit", new)):
        walked = one(decode, Made(props=props), CHECKS[name])
        assert len(walked.rows) == 1, name
        tags = expected.get("TAGS")
        row = walked.rows[0]
        assert int(row["tags_code"]) == (java_hash(tags) if tags else 0), name
        assert bool(row["flags"] & mc.HAS_TAGS) == (tags is not None)
        assert bool(row["flags"] & mc.HAS_KEYS) == ("KEYS" in expected)
        if tags:
            start = int(row["props_at"]) + props.rindex(tags.encode())
            assert (int(row["tags_at"]), int(row["tags_len"])) == (start, len(tags)), name


@pytest.mark.parametrize(
    ("level", "delay"),
    [
        ("1", 1000),
        ("18", 7_200_000),
        ("19", 7_200_000),
        ("+3", 10_000),
        ("007", 180_000),
        ("0", None),
        ("-1", None),
        ("999999999", 7_200_000),
    ],
)
def test_delay_levels(decode: Decode, level: str, delay: int | None) -> None:
    made = Made(topic=b"SCHEDULE_TOPIC_XXXX", props=properties(("TAGS", "t"), ("DELAY", level)))
    walked = one(decode, made, ask=False)
    assert walked.column("tags_code") == [java_hash("t") if delay is None else made.store_time + delay]
    assert walked.column("flags") == [mc.HAS_TAGS | mc.SCHEDULE]
    # 4.9.2 to 4.9.8 recover before the level table is there: every level is capped to 0.
    assert one(decode, made, CHECKS["4.9.8"], ask=False).column("tags_code") == [java_hash("t")]
    elsewhere = one(decode, replace(made, topic=b"SCHEDULE_TOPIC_XXXy"), ask=False)
    assert elsewhere.column("tags_code") == [java_hash("t")]
    assert elsewhere.column("flags") == [mc.HAS_TAGS]


@pytest.mark.parametrize("level", ["", "x", "1x", " 1", "1 ", "2147483648", "+", "-", "²", "1.0"])
def test_a_delay_that_is_no_number_is_refused(decode: Decode, level: str) -> None:
    made = Made(topic=b"SCHEDULE_TOPIC_XXXX", props=b"DELAY\x01" + level.encode() + b"\x02")
    assert len(one(decode, made).rows) == (level == "")  # an empty value is no property
    assert len(one(decode, replace(made, topic=b"TopicA")).rows) == 1


def test_a_delay_in_digits_of_another_script_is_a_number(decode: Decode) -> None:
    """Integer.parseInt goes by Character.digit."""
    made = Made(topic=b"SCHEDULE_TOPIC_XXXX", props="DELAY\x01１\x02".encode())
    plain = replace(made, props=b"DELAY\x011\x02")
    assert one(decode, made).column("tags_code") == one(decode, plain).column("tags_code")


def test_the_largest_delay_and_a_time_that_wraps(decode: Decode) -> None:
    made = Made(topic=b"SCHEDULE_TOPIC_XXXX", props=properties(("DELAY", "2147483647")), store_time=(1 << 63) - 1)
    assert one(decode, made).column("tags_code") == [-(1 << 63) + 7_200_000 - 1]


@pytest.mark.parametrize(
    ("number", "base", "expected"),
    [
        ("5", "100", (100, 5)),
        ("-1", "-2", (-2, -1)),
        ("32767", "999999999999999999", (999999999999999999, 32767)),
        ("00032767", "9223372036854775807", ((1 << 63) - 1, 32767)),
        ("32768", "1", None),
        ("1", "9223372036854775808", None),
        ("x", "1", None),
        ("1", "", (11, 1)),
        ("5", "", (11, 5)),
        ("-1", "", (11, 1)),
        ("32768", "", (11, 1)),
        ("x", "", (11, 1)),
    ],
)
def test_inner_batches(decode: Decode, number: str, base: str, expected: tuple[int, int] | None) -> None:
    made = Made(sys_flag=0xC0, props=b"INNER_NUM\x01" + number.encode() + b"\x02INNER_BASE\x01" + base.encode() + b"\x02")
    walked = one(decode, made)
    if expected is None:
        assert walked.end == 0
    else:
        assert (walked.column("batch_base"), walked.column("batch_count")) == ([expected[0]], [expected[1]])
        assert walked.column("flags") == [mc.HAS_INNER if base else mc.INNER_ALONE]
    before = one(decode, made, CHECKS["4.9.8"])
    assert (before.column("batch_base"), before.column("batch_count"), before.column("flags")) == (
        [11],
        [1],
        [0 if base else mc.INNER_ALONE],
    )


@pytest.mark.parametrize(
    ("names", "places", "expected"),
    [
        ("%LMQ%a", "3", True),
        ("%LMQ%a,%LMQ%b", "3,4", True),
        (" \t\x1c", "3", False),
        ("a", " ", False),
        ("\u2003", "3", False),
        ("\u00a0", "3", True),
        ("\x85", "3", True),
        ("", "3", False),
        ("键", "3", True),
    ],
)
def test_multi_dispatch_needs_both_lists(decode: Decode, names: str, places: str, expected: bool) -> None:
    made = Made(props=properties(("INNER_MULTI_DISPATCH", names), ("INNER_MULTI_QUEUE_OFFSET", places)))
    assert one(decode, made).column("flags") == [mc.HAS_MULTI_DISPATCH if expected else 0]


@pytest.mark.parametrize(
    ("info", "accepted"),
    [(None, False), ("a_b", True), ("_b", True), ("a_b_", True), ("a_b_c", False), ("a_", False), ("ab", False), ("_", False)],
)
def test_dup_info(decode: Decode, info: str | None, accepted: bool) -> None:
    made = Made(props=properties(("TAGS", "t"), *([("DUP_INFO", info)] if info else [])))
    assert len(one(decode, made, CHECKS["duplication"]).rows) == accepted
    assert len(one(decode, made, CHECKS["5.3.3"]).rows) == 1
    assert len(one(decode, made, CHECKS["reput 5.1.4"]).rows) == 1
    assert len(one(decode, replace(made, props=b""), CHECKS["duplication"]).rows) == 1


def test_property_crc(decode: Decode) -> None:
    plain = Made(props=properties(("TAGS", "t")))
    sealed = with_crc(plain)
    broken = with_crc(plain, digits=b"1234567890")
    for check, accepted in (
        ("audit", (True, True, False)),
        ("5.3.3", (True, True, True)),
        ("property CRC 5.4.0", (False, True, False)),
        ("property CRC, no CRC", (True, True, True)),
        ("reput 4.9.8", (True, True, True)),
    ):
        for made, expected in zip((plain, sealed, broken), accepted, strict=True):
            walked = one(decode, made, CHECKS[check])
            assert len(walked.rows) == expected, (check, made)
            if expected:
                assert bool(walked.rows["flags"][0] & mc.HAS_PROPERTY_CRC) == (made is not plain)
                assert walked.column("tags_code") == [java_hash("t")]
    # With the property CRC verified, the body's is not looked at.
    assert len(one(decode, with_crc(replace(plain, body_crc=1)), CHECKS["property CRC 5.4.0"]).rows) == 1
    assert len(one(decode, with_crc(replace(plain, body_crc=1)), CHECKS["audit"]).rows) == 0


def test_a_property_crc_of_zero_is_refused_before_5_3_2(decode: Decode) -> None:
    made = with_crc_zero()
    assert len(one(decode, made, CHECKS["property CRC 5.4.0"]).rows) == 1
    assert len(one(decode, made, CHECKS["property CRC 5.2.0"]).rows) == 0


def with_crc_zero() -> Made:
    """A record whose masked CRC over all but its last 20 bytes is 0: CRC-32 is affine in the bits of four free bytes."""
    plain = Made(prepared_offset=0)

    def masked(free: int) -> int:
        sealed = replace(plain, props=b"x\x01" + b"yyyy" + b"\x02" + b"__CRC32#\x01" + b"0" * 10 + b"\x02", prepared_offset=free)
        return zlib.crc32(sealed.encode(0)[:-20]) & 0x7FFFFFFF

    zero = masked(0)
    columns = [masked(1 << bit) ^ zero for bit in range(48)]
    rows: dict[int, tuple[int, int]] = {}  # highest bit -> (value, free bits that make it)
    for bit, value in enumerate(columns):
        used = 1 << bit
        while value and value.bit_length() in rows:
            other, other_used = rows[value.bit_length()]
            value, used = value ^ other, used ^ other_used
        if value:
            rows[value.bit_length()] = (value, used)
    free, rest = 0, zero
    while rest:
        value, used = rows[rest.bit_length()]
        rest, free = rest ^ value, free ^ used
    assert masked(free) == 0
    return replace(plain, props=b"x\x01" + b"yyyy" + b"\x02" + b"__CRC32#\x01" + b"0" * 10 + b"\x02", prepared_offset=free)


@pytest.mark.parametrize(
    "props",
    [
        b"__CRC32#\x010123456789\x02TAGS\x01t\x02",
        b"__CRC32#\x01x\x02",
        b"__CRC32#\x010123456789",
        b"TAGS\x01a\x02__CRC32#\x01012345678x\x02",
        b"__CRC32#\x010\x02__CRC32#\x019999999999\x02",
        b"__CRC32#0123456789x\x02",
        b"__CRC32#\x010123456789\x02__CRC32#xxxxxxxxxxx\x02",
        b"__CRC32#",
    ],
)
def test_odd_property_crcs_are_judged_as_the_reference_does(props: bytes) -> None:
    for check in CHECKS.values():
        for magic in (builders.V1, builders.V2):
            made = Made(topic=b"T", props=props, body=b"", magic=magic)
            assert_same(one(DECODERS["fast"], made, check), one(DECODERS["reference"], made, check))


@pytest.mark.parametrize(
    "props",
    [
        b"",
        b"a\x01b\x02",
        b"a\x01b",
        b"a\x01\x02",
        b"\x01a\x01b\x02",
        b"\x01a\x02",
        b"a\x02",
        b"\x02",
        b"a\x01b\x02\x02",
        b"a\x01b\x02\x00\x00",
        b"a\x00\x01b\x02",
        b"a\x01b\xff\x02",
        b"a\x01\xed\xa0\x80\x02",
        b"a\x01\xc0\x80\x02",
        b"a\x01\xf4\x90\x80\x80\x02",
        b"a\x01\xf4\x8f\xbf\xbf\x02",
        b"a\x01\xe6\xa0\x87\x02" * 20,
        b"a\x01" + b"x" * 70 + b"\xe6\xa0",
    ],
)
def test_malformed_properties(decode: Decode, props: bytes) -> None:
    walked = one(decode, Made(props=props))
    assert walked.column("flags") == [mc.MALFORMED_PROPERTIES if props and properties_fault(props) else 0]


@pytest.mark.parametrize("where", ["topic", "TAGS", "KEYS", "UNIQ_KEY"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xe6\xa0", b"\xed\xa0\x80", b"a\xc3", b"\xf0\x9f\x90x"])
def test_malformed_utf8_is_replaced_as_java_does(decode: Decode, where: str, bad: bytes) -> None:
    text = bad.decode("utf-8", "replace")
    made = Made(topic=b"T" + bad) if where == "topic" else Made(props=where.encode() + b"\x01" + bad + b"\x02")
    walked = one(decode, made)
    topic = "T" + text if where == "topic" else "TopicA"
    assert walked.topics == [(topic, 3)]
    assert walked.column("tags_code") == [java_hash(text) if where == "TAGS" else 0]
    key = {"topic": None, "TAGS": "T#" + text}.get(where, text)
    assert walked.keys == [[index_hash(f"{topic}#{key}")] if key else []]


def test_a_sequence_cut_off_by_the_end_of_its_part_is_malformed(decode: Decode) -> None:
    """What follows the part would complete it: the high byte of the next length, or of the next record's size."""
    topic = one(decode, Made(topic=b"T\xe6\xa0", props_length=-32768))
    assert topic.topics == [("T\ufffd", 3)]
    for props in (b"a\x01\xe6\xa0", b"TAGS\x01\xe6\xa0"):
        data = Made(props=props).encode(0)
        walked = walk(decode, data + b"\x80" * 16, CHECKS["audit"])
        assert walked.column("flags")[0] & mc.MALFORMED_PROPERTIES
        assert walked.column("tags_code") == [java_hash("\ufffd") if props.startswith(b"TAGS") else 0]


# ---- frames that are refused -----------------------------------------------------------------------------------------

GOOD = Made(props=properties(("TAGS", "t"), ("KEYS", "k")))
REFUSED: dict[str, Made | bytes] = {
    "nothing": b"",
    "zeros": bytes(200),
    "cut magic": GOOD.encode(0)[:7],
    "cut": GOOD.encode(0)[:-1],
    "filler": struct.pack(">iI", 64, builders.BLANK) + bytes(56),
    "another magic": replace(GOOD, magic=0xDAA320A6),
    "total one less": replace(GOOD, total=len(GOOD.encode(0)) - 1),
    "total one more": replace(GOOD, total=len(GOOD.encode(0)) + 1),
    "total 90": replace(GOOD, total=90),
    "total 0": replace(GOOD, total=0),
    "total -1": replace(GOOD, total=-1),
    "smallest total": replace(GOOD, total=-(1 << 31)),
    "largest total": replace(GOOD, total=(1 << 31) - 1),
    "largest body": replace(GOOD, body_length=(1 << 31) - 1),
    "body to the end": replace(GOOD, body_length=len(GOOD.encode(0)) - 88),
    "body one more": replace(GOOD, body_length=5),
    "negative topic": replace(GOOD, topic_length=-1),
    "most negative topic": replace(GOOD, topic_length=-128),
    "topic one more": replace(GOOD, topic_length=7),
    "largest topic": replace(GOOD, topic_length=127),
    "negative wide topic": replace(GOOD, magic=builders.V2, topic_length=-32768),
    "properties one more": replace(GOOD, props_length=len(GOOD.props) + 1),
    "largest properties": replace(GOOD, props_length=32767),
    "negative properties with bytes": replace(GOOD, props_length=-1),
    "an IPv6 bit without room": replace(GOOD, sys_flag=0x10),
    "both IPv6 bits, smallest": Made(topic=b"", body=b"", sys_flag=0x30),
    "body CRC": replace(GOOD, body_crc=zlib.crc32(b"Body") & 0x7FFFFFFF),
    "body CRC with its top bit": replace(GOOD, body_crc=zlib.crc32(b"body") & 0x7FFFFFFF | 1 << 31),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(decode: Decode, name: str) -> None:
    case = REFUSED[name]
    for tail in (b"", bytes(300), GOOD.encode(0) * 3):
        data = (case if isinstance(case, bytes) else case.encode(0)) + tail
        if tail and name in ("nothing", "cut magic", "cut"):
            continue
        for check in ("audit", "5.3.3"):
            walked = walk(decode, data, CHECKS[check])
            assert (walked.end, len(walked.rows), walked.topics) == (0, 0, []), check


def test_only_the_audit_compares_the_address(decode: Decode) -> None:
    made = replace(GOOD, phy_offset=4711)
    assert one(decode, made).end == 0
    assert one(decode, made, CHECKS["5.3.3"]).column("phy_offset") == [4711]
    assert one(decode, made, RecordCheck.audit(4711)).column("position") == [0]


@pytest.mark.parametrize("base", [(1 << 63) - 10, 1 << 63, 10**19, -(1 << 63), -5])
def test_addresses_do_not_wrap(decode: Decode, base: int) -> None:
    first = base if -(1 << 63) <= base < 1 << 63 else 0
    records = [replace(GOOD, phy_offset=first)]
    wrapped = (base + len(GOOD.encode(0)) + (1 << 63)) % (1 << 64) - (1 << 63)
    records.append(replace(GOOD, phy_offset=wrapped))
    walked = walk(decode, segment(records), RecordCheck.audit(base))
    expected = [address for i, address in enumerate((first, wrapped)) if base + i * len(GOOD.encode(0)) == address]
    assert walked.column("phy_offset") == expected


def test_reput_looks_at_no_checksum(decode: Decode) -> None:
    made = replace(GOOD, body_crc=1)
    assert one(decode, made, CHECKS["reput 4.9.8"]).column("body_crc") == [1]
    assert one(decode, made, CHECKS["no CRC"]).column("body_crc") == [1]
    assert one(decode, made, CHECKS["4.9.8"]).end == 0


def test_v2_is_unknown_before_5_1_0(decode: Decode) -> None:
    made = replace(GOOD, magic=builders.V2, topic=b"T" * 300)
    assert one(decode, made, CHECKS["5.0.0"]).end == 0
    assert one(decode, made, CHECKS["5.3.3"], ask=False).column("topic_len") == [300]


@pytest.mark.parametrize("length", [0, -1, -(1 << 31)])
def test_no_body(decode: Decode, length: int) -> None:
    walked = one(decode, Made(body=b"", body_length=length, body_crc=12345), ask=False)
    assert (walked.column("body_len"), walked.column("body_crc")) == ([0], [12345])


@pytest.mark.parametrize("length", [0, -1, -32768])
def test_no_properties(decode: Decode, length: int) -> None:
    walked = one(decode, Made(props=b"", props_length=length), ask=False)
    assert (walked.column("props_len"), walked.column("flags")) == ([0], [mc.ODD_HEADER if length < 0 else 0])


@pytest.mark.parametrize("magic", [builders.V1, builders.V2])
@pytest.mark.parametrize("born", [V4, V6])
@pytest.mark.parametrize("store", [V4, V6])
def test_smallest_record(decode: Decode, magic: int, born: bytes, store: bytes) -> None:
    made = Made(topic=b"", body=b"", magic=magic, born_host=born, store_host=store)
    walked = walk(decode, made.encode(0), CHECKS["audit"], ask=False)
    assert walked.column("total_size") == [91 + (magic == builders.V2) + len(born) + len(store) - 16]
    assert walked.column("store_time") == [made.store_time]
    assert walked.column("prepared_offset") == [made.prepared_offset]
    assert walked.topics == [("", 3)]


# ---- windows, batches, tables ----------------------------------------------------------------------------------------


def test_need_more_says_how_much(decode: Decode) -> None:
    data = segment([GOOD, replace(GOOD, body=b"x" * 1000)])
    size = len(GOOD.encode(0))
    columns, topics = Columns(8), TopicTable()
    buffer = np.frombuffer(data, np.uint8)
    check = CHECKS["audit"]
    assert decode(Stretch(buffer, 0, 0, 5, False), check, columns, topics) == Stop(mc.NEED_MORE, 0, 8)
    assert decode(Stretch(buffer, 0, 0, size - 1, False), check, columns, topics) == Stop(mc.NEED_MORE, 0, size)
    assert decode(Stretch(buffer, 0, 0, size, False), check, columns, topics) == Stop(mc.NEED_MORE, size, 8)
    assert decode(Stretch(buffer, 0, size, size + 8, False), check, columns, topics) == Stop(mc.NEED_MORE, size, len(data) - size)
    assert decode(Stretch(buffer, 0, size, len(data) - 1, True), check, columns, topics) == Stop(mc.STOPPED, size)
    assert decode(Stretch(buffer, 0, size, len(data), True), check, columns, topics) == Stop(mc.STOPPED, len(data))
    assert columns.count == 2


def test_full_columns_stop_before_the_next_message(decode: Decode) -> None:
    data = segment([replace(GOOD, queue_offset=i) for i in range(10)])
    columns, topics = Columns(4), TopicTable()
    stop = decode(Stretch(np.frombuffer(data, np.uint8), 0, 0, len(data), True), CHECKS["audit"], columns, topics)
    assert stop == Stop(mc.FULL, 4 * len(GOOD.encode(0)))
    assert columns.rows["queue_offset"][:4].tolist() == [0, 1, 2, 3]
    assert columns.full
    with pytest.raises(ValueError, match="no room"):
        append_message(columns, topics, Message(0, 0, 0), BufferFrames(data), CHECKS["audit"])


def test_a_message_with_the_most_keys_fits_into_empty_columns(decode: Decode) -> None:
    props = b"KEYS\x01" + b"k " * 16375 + b"k\x02UNIQ_KEY"
    props += b"\x01" + b"u" * (32767 - len(props) - 1)
    made = Made(props=props)
    columns, topics = Columns(1, True), TopicTable()
    data = segment([made, GOOD])
    stop = decode(Stretch(np.frombuffer(data, np.uint8), 0, 0, len(data), True), CHECKS["audit"], columns, topics)
    assert stop == Stop(mc.FULL, len(made.encode(0)))
    assert columns.key_hash_count == 16377 <= mc.MAX_RECORD_KEYS
    # As many keys again do not fit any more, although a row is free.
    columns = Columns(8, True)
    data = segment([made] * 8)
    stop = decode(Stretch(np.frombuffer(data, np.uint8), 0, 0, len(data), True), CHECKS["audit"], columns, topics)
    assert stop.kind == mc.FULL and columns.count == 1 and columns.key_hash_count == 16377


def test_many_topics(decode: Decode) -> None:
    records = []
    for i in range(3000):
        topic = f"{'long' * (i % 40)}{i // 3}".encode()
        records.append(Made(topic=topic, queue_id=(i * 7919) % 5 - 2, magic=builders.V2, body=b""))
    records += records[::-1]
    walked = walk(decode, segment(records), CHECKS["audit"], ask=False)
    pairs = [(made.topic.decode(), made.queue_id) for made in records]
    assert walked.topics == list(dict.fromkeys(pairs))
    assert [walked.topics[ref] for ref in walked.column("topic_ref")] == pairs


def colliding_topics() -> tuple[str, str]:
    """Two topics of 16 characters with equal `pair_hash`: a step is reversible, so the second word can undo the first's."""

    def after(word: bytes) -> int:
        value = (mc.HASH_SEED ^ int.from_bytes(word, "little")) * mc.HASH_FACTOR % (1 << 64)
        return value ^ value >> 32

    first, second = b"TopicOne", b"TopicTwo"
    for number in range(1 << 20):
        other = base64.b64encode((number * 0x9E3779B97F4B % (1 << 48)).to_bytes(6, "big"))
        needed = after(first) ^ after(other) ^ int.from_bytes(second, "little")
        word = needed.to_bytes(8, "little")
        if word.isascii():
            return (first + second).decode(), (other + word).decode()
    raise AssertionError("no collision found")


def test_topics_of_equal_hash_are_told_apart(decode: Decode) -> None:
    one_topic, other = colliding_topics()
    assert mc.pair_hash(one_topic.encode(), 3) == mc.pair_hash(other.encode(), 3)
    names = [one_topic, other, other, one_topic, "TopicA", other]
    walked = walk(decode, segment([Made(topic=name.encode()) for name in names]), CHECKS["audit"], ask=False)
    assert [walked.topics[ref][0] for ref in walked.column("topic_ref")] == names


def test_a_topic_table_is_shared_between_decoders_and_appends() -> None:
    topics, columns = TopicTable(), Columns(64)
    names = [f"T{i}" for i in range(40)]
    data = segment([Made(topic=name.encode()) for name in names])
    for name in names[::3]:
        assert topics.number_of(name, 3) == names.index(name) // 3
    before = len(topics)
    commitlog_columns.decode(Stretch(np.frombuffer(data, np.uint8), 0, 0, len(data), True), CHECKS["audit"], columns, topics)
    assert len(topics) == 40 and columns.count == 40
    assert [topics.keys[ref][0] for ref in columns.rows["topic_ref"][:40]] == names
    for name in names:
        assert topics.number_of(name, 3) == topics.keys.index((name, 3))
    assert topics.number_of("T0", 4) == 40 and before == 14


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(-(1 << 31), (1 << 31) - 1)),
        max_size=60,
    )
)
def test_topic_table_numbers_pairs_in_order(pairs: list[tuple[str, int]]) -> None:
    topics = TopicTable()
    assert [topics.number_of(*pair) for pair in pairs] == [list(dict.fromkeys(pairs)).index(pair) for pair in pairs]
    assert topics.keys == list(dict.fromkeys(pairs))


def test_a_refused_frame_leaves_no_topic_behind(decode: Decode) -> None:
    for made in (replace(GOOD, body_crc=1), replace(GOOD, props=b"INNER_NUM\x01x\x02INNER_BASE\x011\x02")):
        assert one(decode, made).topics == []


@pytest.mark.parametrize(("position", "start", "end"), [(0, 10, 5), (5, 0, 10), (0, 0, 101), (-10, 0, 100)])
def test_arguments_that_contradict_each_other(position: int, start: int, end: int) -> None:
    buffer = np.zeros(100, np.uint8)
    with pytest.raises(ValueError, match="is not in a buffer"):
        commitlog_columns.decode(Stretch(buffer, position, start, end, True), CHECKS["audit"], Columns(1), TopicTable())


def test_a_buffer_of_another_kind() -> None:
    for buffer in (np.zeros(10, np.int32), np.zeros((10, 10), np.uint8), np.zeros(20, np.uint8)[::2]):
        with pytest.raises(ValueError, match="contiguous"):
            commitlog_columns.decode(Stretch(buffer, 0, 0, 5, True), CHECKS["audit"], Columns(1), TopicTable())


# ---- any bytes -------------------------------------------------------------------------------------------------------

interesting = st.sampled_from(
    [
        "TAGS", "KEYS", "UNIQ_KEY", "DELAY", "DUP_INFO", "INNER_NUM", "INNER_BASE", "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET", "__CRC32#", "WAIT", "TAG", "INNER_MULTI_DISPATCHx", "",
    ]
)  # fmt: skip
values = st.one_of(
    st.sampled_from(["", "1", "a_b", "0123456789", "true", " ", "k1 k2", "标签", "🐇", "a\x01b", "\x01", "x" * 70]),
    st.text(max_size=20),
    st.integers(-(1 << 64), 1 << 64).map(str),
).map(lambda text: text.encode("utf-8", "replace"))
values |= st.binary(max_size=20)
parts = st.tuples(interesting.map(str.encode) | st.binary(max_size=6), values).map(lambda pair: pair[0] + b"\x01" + pair[1])
raw_properties = st.lists(parts | st.binary(max_size=8), max_size=8).map(b"\x02".join) | st.binary(max_size=200)
HEADS = [b"\x78\x9c", b"\x78", b"\x78\x9d", b"\x04\x22\x4d\x18", b"\x04\x22\x4d", b"\x28\xb5\x2f\xfd"]
made_records = st.builds(
    Made,
    topic=st.sampled_from([b"TopicA", b"SCHEDULE_TOPIC_XXXX", "主题".encode(), b"", b"T" * 127]) | st.binary(max_size=20),
    props=raw_properties,
    body=st.binary(max_size=300) | st.sampled_from(HEADS).map(lambda head: head + b"body") | st.sampled_from(HEADS),
    queue_id=st.integers(-2, 2),
    queue_offset=st.integers(-(1 << 63), (1 << 63) - 1),
    sys_flag=st.sampled_from([0, 0x4, 0x8, 0xC, 0xC0, 0x301, 0x1, 0x101, 0x201, 0x401, 0x300, 0x40, 0x80, 0x800, -(1 << 31)]),
    store_time=st.integers(-(1 << 63), (1 << 63) - 1),
    born_host=st.sampled_from([V4, V6]),
    store_host=st.sampled_from([V4, V6]),
    magic=st.sampled_from([builders.V1, builders.V1, builders.V2]),
)
odd_records = st.builds(
    replace,
    made_records,
    total=st.none() | st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(80, 200),
    body_crc=st.none() | st.integers(0, (1 << 32) - 1),
    body_length=st.none() | st.sampled_from([-1, 0, 1, (1 << 31) - 1]),
    topic_length=st.none() | st.integers(-128, 127),
    props_length=st.none() | st.integers(-(1 << 15), (1 << 15) - 1),
)
sealed_records = made_records.map(lambda made: ("sealed", made))
contents = st.lists(
    made_records.map(lambda made: ("plain", made)) | sealed_records | odd_records.map(lambda made: ("plain", made)), max_size=6
)
check_names = st.sampled_from(sorted(CHECKS))


def build(items: list[tuple[str, Made]]) -> bytes:
    data = b""
    for kind, made in items:
        data += (with_crc(made, len(data)) if kind == "sealed" else made).encode(len(data))
    return data


def compare(data: bytes, check: RecordCheck, keys: bool, window: int, spare: int) -> None:
    expected = walk(DECODERS["reference"], data, check, keys)
    assert_same(walk(DECODERS["fast"], data, check, keys), expected)
    assert_same(walk(DECODERS["fast"], data, check, keys, window, 2, spare), expected)
    assert_same(walk(DECODERS["reference"], data, check, keys, window, 2, spare), expected)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(contents, check_names, st.booleans(), st.integers(8, 400), st.integers(0, 40))
def test_records_of_any_content(items: list[tuple[str, Made]], check: str, keys: bool, window: int, spare: int) -> None:
    compare(build(items) + bytes(16), CHECKS[check], keys, window, spare)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(contents, st.lists(strategies.mutations, min_size=1, max_size=3), check_names, st.booleans(), st.integers(8, 400))
def test_mutated_records(
    items: list[tuple[str, Made]], changes: list[strategies.Mutation], check: str, keys: bool, window: int
) -> None:
    data = build(items)
    assume(data)
    for change in changes:
        data = change.apply(data)
    compare(data, CHECKS[check], keys, window, 3)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=400), st.sampled_from([0, builders.V1, builders.V2, builders.BLANK]), st.integers(-1, 300), check_names)
@example(b"", 0, 0, "audit")
def test_arbitrary_bytes(data: bytes, magic: int, total: int, check: str) -> None:
    if magic:
        data = struct.pack(">iI", total, magic) + data
    compare(data, CHECKS[check], True, 50, 0)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(strategies.messages(), min_size=1, max_size=8), st.booleans())
def test_the_fast_decoder_takes_whatever_producers_send(messages: list[builders.Message], keys: bool) -> None:
    """Ordinary messages never cost a call of the reference: not one stop before the filler."""
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=1 << 16))
    for message in messages:
        builder.put(message)
    data = bytes(builder.segments[0])
    walked = walk(DECODERS["fast"], data, CHECKS["audit"], keys, ask=False)
    assert walked.column("position") == [record.at for record in builder.records]
    assert walked.column("tags_code") == [builders.tags_code(record) for record in builder.records]
    assert_same(walk(DECODERS["reference"], data, CHECKS["audit"], keys), walked)


# ---- layouts of properties that are remembered ---------------------------------------------------------------------------


def laid_out(length: int) -> bytes:
    """Well-formed properties of that length, at least 60, with names of interest on both sides of the 64th byte."""
    head = b"KEYS\x01order-1 order-2\x02UNIQ_KEY\x01"
    tail = b"\x02TAGS\x01tag-a\x02"
    return head + b"u" * (length - len(head) - len(tail)) + tail


@pytest.mark.parametrize("length", [60, 63, 64, 65, 100, 127, 128, 129])
def test_a_changed_byte_of_properties_of_one_layout_is_met(length: int) -> None:
    """Each byte in turn becomes a separator, NUL, another letter, or no ASCII, between twins whose layout is remembered."""
    good = laid_out(length)
    blobs = [good] * 5
    for at in range(length):
        for byte in b"\x00\x01\x02\x03KT\x7f\x80\xff":
            blobs += [good[:at] + bytes([byte]) + good[at + 1 :], good]
    data = segment([Made(topic=b"T", body=b"b", props=blob) for blob in blobs]) + bytes(200)
    walked = walk(DECODERS["fast"], data, CHECKS["audit"], capacity=1 << 14)
    assert_same(walked, walk(DECODERS["reference"], data, CHECKS["audit"]))
    assert len(walked.rows) == len(blobs)
    twins = walked.rows[[i for i, blob in enumerate(blobs) if blob == good]]
    assert set(twins["tags_code"].tolist()) == {java_hash("tag-a")} and set(twins["key_count"].tolist()) == {3}
    malformed = [bool(flags & mc.MALFORMED_PROPERTIES) for flags in walked.column("flags")]
    assert malformed == [properties_fault(blob) != "" for blob in blobs]


@pytest.mark.parametrize(
    "others",
    [
        [b"TAGS\x01abcd\x02KEYS\x01k\x02", b"KEYS\x01abcd\x02TAGS\x01k\x02"],  # the same layout, other names
        [b"TAGS\x01abcd\x02KEYS\x01k\x02", b"TAGS\x01abc\x02KEYS\x01kk\x02"],  # the same length, other places
        [b"TAGS\x01abcd\x02KEYS\x01k\x02", b"TAGSabcd\x01\x02KEYS\x01k\x02"],
        [b"TAGS\x01abcd\x02KEYS\x01k\x02", b"TAGS\x01ab\x01d\x02KEYS\x01k\x02"],  # a separator in a value
        [b"TAGS\x01abcd\x02KEYS\x01k\x02", b"TAGS\x01abcd\x02KEYS\x01kx"],  # the last separator left out
        [b"TAGS\x01abcd\x02KEYS\x01k\x02", b"TAGS\x01abcdxKEYS\x01k\x02"],
        [b"TAGS\x01ab\x01d\x02KEYS\x01k\x02", b"TAGS\x01abcd\x02KEYS\x01k\x02"],
        [b"\x01a\x01TAGS\x01b\x02", b"\x01a\x01TAGS\x01c\x02", b"aa\x01TAGS\x01b\x02"],
        [
            b"\x01a\x01b\x02KEYS\x01k\x02",
            b"\x01axb\x02KEYS\x01k\x02",
        ],  # an empty name needs a second separator, or it is malformed
        [b"p\x01" + b"x" * 64 + b"\x02\x01a\x01b\x02", b"p\x01" + b"x" * 64 + b"\x02\x01axb\x02"],  # the same in the second half
        ["TAGS\x01标签\x02".encode(), b"TAGS\x01abcdef\x02", b"TAGS\x01\xe6\xa0cdef\x02"],
    ],
)
def test_properties_of_equal_length_are_not_taken_for_each_other(others: list[bytes]) -> None:
    blobs = [others[i % len(others)] for i in range(7)]
    blobs += [blob for blob in others for _ in range(5)] * 2  # often enough for each to be the one that is remembered
    data = segment([Made(topic=b"T", body=b"", props=blob) for blob in blobs]) + bytes(200)
    for check in (CHECKS["audit"], CHECKS["4.8.0"], CHECKS["duplication"]):
        assert_same(walk(DECODERS["fast"], data, check, capacity=100), walk(DECODERS["reference"], data, check))


@pytest.mark.parametrize("length", [60, 100, 128])
def test_layouts_near_the_windows_end(length: int) -> None:
    data = segment([Made(topic=b"T", props=laid_out(length))] * 6)
    for behind in range(0, 140, 3):
        walked = walk(DECODERS["fast"], data + bytes(behind), CHECKS["audit"], capacity=100)
        assert walked.column("tags_code") == [java_hash("tag-a")] * 6 and walked.end == len(data)


# ---- compiled code in odd surroundings -------------------------------------------------------------------------------


def python(code: str, tmp_path: Path, **environment: str) -> str:
    """Output of a Python of its own; its home, where compiled code is kept, is `tmp_path`."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
    # The same cache for all: what is compiled in one test is loaded in the next, as on a machine that does its work again.
    merged = {"PYTHONPATH": str(ROOT), **inherited, "HOME": str(tmp_path), **environment}
    done = subprocess.run([sys.executable, "-c", code], env=merged, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_no_two_processes_place_topics_alike(tmp_path: Path) -> None:
    """Else topics could be chosen that all lead to one slot, and each would be compared with all others."""
    code = "from store_io.log.records.message_columns import TopicTable; print(TopicTable().seed)"
    assert python(code, tmp_path) != python(code, tmp_path)


DECODE_TWO = """
import numpy as np, sys
from store_io.log.records import commitlog_columns as c
from store_io.log.records.message_columns import Columns, TopicTable, RecordCheck, Stretch
data = bytes.fromhex(DATA)
columns, topics = Columns(8, True), TopicTable()
stop = c.decode(Stretch(np.frombuffer(data, np.uint8), 0, 0, len(data), True), RecordCheck.audit(0), columns, topics)
assert (stop.kind, stop.position, columns.count) == ("stopped", len(data), 2), (stop, columns.count)
assert columns.rows['tags_code'][:2].tolist() == [TAG, TAG]
"""


def two_records() -> str:
    data = segment([GOOD, replace(GOOD, body=b"x" * 1000)])
    return f"DATA = {data.hex()!r}\nTAG = {java_hash('t')}\n" + DECODE_TWO


@pytest.mark.parametrize("engine", [*checksum.NATIVE, "none"])
def test_any_crc_engine_serves_compiled_code(tmp_path: Path, engine: str) -> None:
    if engine != "none" and checksum.find_native(engine) is None:
        pytest.skip(f"{engine} cannot be had here")
    code = f"""
from store_io.base.crc import checksum
engine = {"None" if engine == "none" else f"checksum.find_native({engine!r})"}
checksum.native_engine = lambda: engine
import numpy as np, zlib
from store_io.base.compiled import machine, native
assert native._engine is engine
from numba import njit
@njit
def crc(address, length):
    return machine.masked_crc32(address, length)
material = np.frombuffer(bytes(i * 7 + (i >> 8) & 255 for i in range(6000)), np.uint8)
for length in [*range(520), 1000, 4096, 5000]:
    for start in (0, 1, 7, 63):
        part = material[start : start + length]
        assert crc(part.ctypes.data, len(part)) == zlib.crc32(part.tobytes()) & 0x7FFFFFFF, (length, start)
"""
    python(code + two_records(), tmp_path)


def test_kept_code_depends_on_the_modules_that_it_names(tmp_path: Path) -> None:
    """A constant from elsewhere must not live on in code kept on disk; that of the earlier one is found again."""
    (tmp_path / "kernel.py").write_text(
        "import constants\nfrom store_io.base.compiled.native import kept\n"
        "@kept(constants)\ndef answer(x):\n    return x + constants.NUMBER\n"
    )
    quick = "from store_io.base.compiled.code_files import start_quickly\nstart_quickly()\n"
    code = f"import sys, kernel\n{quick}print(kernel.answer(1), int('numba' not in sys.modules))\n"
    path = f"{ROOT}{os.pathsep}{tmp_path}"
    outputs = []
    for number in (41, 41, 99, 41):
        (tmp_path / "constants.py").write_text(f"NUMBER = {number}\n")
        outputs.append(python(code, tmp_path, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1").split())
    assert outputs == [["42", "0"], ["42", "1"], ["100", "0"], ["42", "1"]]


def test_without_numba_the_reference_stands_in(tmp_path: Path) -> None:
    code = "import sys\nsys.modules['numba'] = None\n" + two_records() + "assert c._kernel is None\n"
    python(code, tmp_path)
    python(two_records() + "assert c._kernel is None\n", tmp_path, NUMBA_DISABLE_JIT="1")


HASH_ONE = """
from store_io.base import fingerprints as c
assert c.fold_byte(c.SEED, ord("a")) == 0xAF63DC4C8601EC8C  # FNV-1a
"""


@pytest.mark.parametrize("home", ["writable", "blocked"])
@pytest.mark.parametrize("what", ["fingerprints", pytest.param("decoder", marks=pytest.mark.soak)])
def test_from_a_zip(tmp_path: Path, home: str, what: str) -> None:
    """Executors may import the packages from a zip, and may have no place to keep compiled code. A small function by default:
    the decoder takes ten seconds to be compiled."""
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for package in ("schemas", "store_io"):
            for path in sorted((ROOT / package).rglob("*.py")):
                packed.write(path, path.relative_to(ROOT).as_posix())
    place = tmp_path / "home"
    place.mkdir()
    if home == "blocked":
        (place / ".cache").write_text("in the way of a directory")
    code = HASH_ONE if what == "fingerprints" else two_records() + "assert c._kernel is not None\n"
    code += "assert '.zip' in c.__file__\n"
    # Compiled anew each time: without LLVM's passes over it, which take most of the time and have no part in this.
    places = {"PYTHONPATH": str(archive), "HOME": str(place), "XDG_CACHE_HOME": str(place / ".cache")}
    output = python(code, tmp_path, NUMBA_OPT="0", **places)
    assert output == ""


def test_no_byte_outside_of_the_window_is_read(tmp_path: Path) -> None:
    """Windows that end, and begin, where the next page may not be read: one byte too far ends the process."""
    if not hasattr(mmap, "MAP_ANONYMOUS"):
        pytest.skip("no anonymous maps here")
    python(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.support.processes.guarded import run\nrun()\n", tmp_path)
