"""Properties cut down to those that decide: each has the value that the whole properties give it, in both parsers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from schemas.layouts import commitlog_layout as layout
from store_io.base.java.java_compat import decode_utf8
from store_io.broker import message_verdict
from store_io.broker.message_verdict import VALID, BufferFrames, parse_properties
from store_io.broker.releases import broker_rules
from store_io.log.records.message_columns import RecordCheck
from store_io.log.scan.resync import DECIDING, deciding_parts
from tests.support.stores.builders import Message, StoreBuilder

NOT_DECIDING = "TAGS"  # read for the tags code alone
WORDS = [
    *(name.encode() for name in DECIDING),
    b"DELA",
    b"DELAYS",
    b"TAGS",
    b"a",
    b"12",
    b"",
    b"\x00",
    b"\xff",
    b"\xe2\x82",
    b" ",
]


def deciding(data: bytes, old_parser: bool) -> dict[str, str]:
    return {name: value for name, value in parse_properties(decode_utf8(data), old_parser).items() if name in DECIDING}


@pytest.mark.parametrize("old_parser", [False, True])
def test_values_are_those_of_the_whole_properties(old_parser: bool) -> None:
    random, seen = Random(7), 0
    for _ in range(5_000):
        marks = random.choices([b"\x01", b"\x02", b"\x01\x01", b"\x02\x02", b""], [6, 6, 1, 1, 1], k=random.randint(0, 16))
        data = b"".join(random.choice(WORDS) + mark for mark in marks)
        expected = deciding(data, old_parser)
        cut = deciding_parts(data, old_parser)
        assert parse_properties(decode_utf8(cut), old_parser) == expected, data
        seen += len(expected) > 1
    assert seen > 75


def test_no_check_of_a_message_looks_at_another_property(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[Any] = set()

    class Noted(dict[str, str]):
        def __contains__(self, name: object) -> bool:
            asked.add(name)
            return super().__contains__(name)

        def __getitem__(self, name: str) -> str:
            asked.add(name)
            return super().__getitem__(name)

        def get(self, name: str, default: Any = None) -> Any:
            asked.add(name)
            return super().get(name, default)

    real = message_verdict.parse_properties
    monkeypatch.setattr(message_verdict, "parse_properties", lambda *arguments: Noted(real(*arguments)))
    given = {"DELAY": "1", "DUP_INFO": "a_b", "INNER_NUM": "2", "INNER_BASE": "0", "TAGS": "t", "KEYS": "k"}
    builder = StoreBuilder("5.3.3")
    record = builder.put(Message(layout.SCHEDULE_TOPIC, body=b"body", properties=tuple(given.items())))
    frames = BufferFrames(builder.segments[0])
    for rules in (broker_rules("5.3.3"), broker_rules("4.9.0")):
        assert RecordCheck.audit_of(0, rules).verdict(frames, record.at, record.at + record.size).kind == VALID
        RecordCheck.broker(rules).verdict(frames, record.at, record.at + record.size)
    assert asked >= {"DELAY", "INNER_NUM", NOT_DECIDING} and asked <= {*DECIDING, NOT_DECIDING}
