"""Lines that a producer can send again: where they go, what they leave out, what must not be sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from store_io.messages.lost.segment_loss import COPY_STAYS, PASSED, SPARED, UNSURE, Spared
from store_io.messages.lost.sendable import COLUMNS, NOT_SENT, StoredMessage, sendable
from store_io.messages.redaction import Redaction

PLAIN = Redaction("none", b"")
ROW: dict[str, Any] = {
    "phy_offset": 100, "topic": "orders", "queue_id": 3, "queue_offset": 7, "store_time_ms": 1_700_000_000_001,
    "born_time_ms": 1_700_000_000_000, "properties": [], "tags_code": 0, "transaction": "none", "flag": 5, "inner_batch": False,
    "inner_index": None, "status": "valid", "lost": "cut", "body": b"hello", "body_status": "stored",
}  # fmt: skip
TIMER, DELAY, HALF = "rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"
REAL = [("REAL_TOPIC", "orders"), ("REAL_QID", "2")]


def line(redaction: Redaction = PLAIN, **changed: Any) -> dict[str, Any]:
    return dict(json.loads(json.dumps(vars(sendable(StoredMessage(**{**ROW, **changed}), redaction)), allow_nan=False)))


def test_what_is_sent_again_is_what_was_sent() -> None:
    user = [("TAGS", "t"), ("KEYS", "k1 k2"), ("UNIQ_KEY", "U1"), ("colour", "red"), ("WAIT", "true")]
    found = line(properties=user)
    assert (found["topic"], found["queue_id"], found["flag"]) == ("orders", 3, 5)
    assert (found["tags"], found["keys"], found["unique_key"]) == ("t", "k1 k2", "U1")
    assert found["properties"] == [["colour", "red"], ["WAIT", "true"]] and found["not_sent"] == []
    assert (found["body_text"], base64.b64decode(found["body_base64"])) == ("hello", b"hello")
    assert (found["born_time"], found["born_time_ms"]) == ("2023-11-14T22:13:20.000Z", 1_700_000_000_000)
    assert found["why_not"] is None and found["lost"] == "cut" and len(found["key_hashes"]) == 3


@pytest.mark.parametrize("name", sorted(NOT_SENT))
def test_what_a_broker_or_a_consumer_added_is_left_out(name: str) -> None:
    found = line(properties=[(name, "1"), ("mine", "2")])
    assert found["properties"] == [["mine", "2"]] and found["not_sent"] == [name] and NOT_SENT[name]


def test_delayed_and_timer_messages_go_where_they_waited_to_go() -> None:
    found = line(topic=DELAY, queue_id=2, properties=[*REAL, ("DELAY", "3")], tags_code=1_700_000_010_001)
    assert (found["topic"], found["queue_id"], found["delay_level"]) == ("orders", 2, 3)
    assert found["deliver_time_ms"] == 1_700_000_010_001 and found["stored_topic"] == DELAY and found["why_not"] is None
    found = line(topic=TIMER, queue_id=0, properties=[*REAL, ("TIMER_OUT_MS", "5000"), ("TIMER_DELIVER_MS", "4999")])
    assert (found["topic"], found["queue_id"], found["delay_level"], found["deliver_time_ms"]) == ("orders", 2, None, 4999)
    assert line(topic=TIMER, properties=[*REAL, ("TIMER_OUT_MS", "5000")])["deliver_time_ms"] == 5000


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"topic": HALF, "properties": REAL}, "its producer alone knows"),
        ({"transaction": "prepared"}, "its producer alone knows"),
        ({"transaction": "rollback"}, "rolled back"),
        ({"topic": "RMQ_SYS_TRANS_OP_HALF_TOPIC"}, "a broker's own"),
        ({"topic": "rmq_sys_REVIVE_LOG_c"}, "a broker's own"),
        ({"topic": "OFFSET_MOVED_EVENT"}, "a broker's own"),
        ({"topic": DELAY, "properties": [("REAL_QID", "2")]}, "names no topic"),
        ({"topic": TIMER, "properties": [("REAL_TOPIC", "t"), ("REAL_QID", "x")]}, "names no topic"),
        ({"topic": TIMER, "properties": [*REAL, ("TIMER_DEL_UNIQKEY", "U")]}, "cancels"),
        ({"inner_batch": True}, "cannot be taken apart"),
        ({"body": None, "body_status": "too_large"}, "cannot be had: too_large"),
        ({"body": b""}, "is empty"),
    ],
)
def test_what_is_not_to_be_sent_says_why(changed: dict[str, Any], why: str) -> None:
    assert why in line(**changed)["why_not"]


def test_messages_of_a_batch_and_of_retries_are_sent() -> None:
    assert line(inner_batch=True, inner_index=2)["why_not"] is None
    assert line(topic="%RETRY%group", properties=[("RETRY_TOPIC", "orders")])["properties"] == [["RETRY_TOPIC", "orders"]]


def test_a_body_that_is_no_short_text_is_in_base64_alone() -> None:
    for body in (b"\xff\xfe", b"x" * 5000):
        found = line(body=body)
        assert found["body_text"] is None and base64.b64decode(found["body_base64"]) == body


@pytest.mark.parametrize("mode", ["hide", "hash"])
def test_nothing_that_is_hidden_is_in_the_line_and_nobody_sends_it(mode: str) -> None:
    secret = "TOPSECRET"
    pairs = [("TAGS", secret), ("KEYS", secret), ("UNIQ_KEY", secret), ("mine", secret)]
    text = json.dumps(line(Redaction(mode, b"salt"), properties=pairs, body=secret.encode()))
    found = json.loads(text)
    assert secret not in text and base64.b64encode(secret.encode()).decode() not in text
    assert found["why_not"] == "values of this line are hidden" and found["key_hashes"] is None


def test_what_is_spared_says_why_and_is_not_sent() -> None:
    spared = Spared(np.array([100, 200]), np.array([COPY_STAYS, PASSED], np.int8), 300)
    waits = {**ROW, "topic": DELAY, "properties": REAL}
    found = [sendable(StoredMessage(**{**waits, "phy_offset": at}), PLAIN, spared).why_not for at in (100, 150, 200, 300)]
    assert found == [SPARED[COPY_STAYS], None, SPARED[PASSED], UNSURE]
    assert sendable(StoredMessage(**{**ROW, "phy_offset": 300}), PLAIN, spared).why_not is None


def test_no_name_of_a_property_is_a_name_of_the_line() -> None:
    pairs = [("@type", "java.lang.Class"), ("$ref", "$"), ("topic", "other")]
    assert line(properties=pairs)["properties"] == [list(pair) for pair in pairs] and line(properties=pairs)["topic"] == "orders"


TEXTS = some.text(max_size=8)


@settings(max_examples=25, deadline=None)
@given(
    some.sampled_from([TIMER, DELAY, HALF, "orders", "\x1b[31m", "%RETRY%g"]),
    some.lists(some.tuples(some.sampled_from(["REAL_TOPIC", "REAL_QID", "DELAY", "TIMER_OUT_MS", "KEYS"]) | TEXTS, TEXTS)),
    some.integers(-(1 << 63), (1 << 63) - 1),
    some.binary(max_size=8) | some.none(),
)
def test_any_values_give_a_line_of_plain_text(topic: str, pairs: list[Any], time: int, body: bytes | None) -> None:
    row = {**ROW, "topic": topic, "properties": pairs, "born_time_ms": time, "store_time_ms": time, "body": body}
    text = json.dumps(vars(sendable(StoredMessage(**row), PLAIN)), allow_nan=False)
    assert text.isascii() and "\n" not in text and "\x1b" not in text and set(COLUMNS) == set(ROW)
