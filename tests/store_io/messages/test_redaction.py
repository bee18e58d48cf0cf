"""What leaves a store's copy hidden or hashed."""

from __future__ import annotations

import hashlib
import hmac
import pickle
import re

import pyarrow as pa
import pytest

from store_io.base.errors import UsageError
from store_io.messages.explain.explain_record import _properties
from store_io.messages.redaction import Redaction, read_redaction

ROWS = {
    "topic": ["T", "T", "T"],
    "keys": ["order-1", None, "order-1"],
    "body": [b"secret", None, b"other"],
    "properties": [[("KEYS", "order-1"), ("DELAY", "3"), ("a", "b")], None, []],
    "queue_id": [1, 2, 3],
    "tags_code": [97, None, 98],
    "body_crc": [1, 2, 3],
}
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("keys", pa.string()),
        ("body", pa.binary()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("queue_id", pa.int32()),
        ("tags_code", pa.int64()),
        ("body_crc", pa.int32()),
    ]
)


def batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(ROWS, SCHEMA)


def test_nothing_is_hidden_unless_asked() -> None:
    assert read_redaction(None).batch(batch()).equals(batch())


def test_hidden() -> None:
    shown = Redaction("hide").batch(batch())
    assert shown.schema == SCHEMA
    assert shown.to_pydict() == {
        **ROWS,
        "keys": ["(hidden)", None, "(hidden)"],
        "body": [None, None, None],
        "tags_code": [None, None, None],
        "body_crc": [None, None, None],
        "properties": [[("KEYS", "(hidden)"), ("DELAY", "3"), ("a", "(hidden)")], None, []],
    }


def test_hashed() -> None:
    redaction = read_redaction("hash", "a salt")
    shown = redaction.batch(batch()).to_pydict()
    key = hashlib.sha256(b"a salt").digest()[:16]
    token = "#" + hmac.new(key, b"order-1", hashlib.sha256).hexdigest()[:16]
    assert shown["keys"] == [token, None, token]
    assert dict(shown["properties"][0])["KEYS"] == token
    assert re.fullmatch(rb"#[0-9a-f]{16}", shown["body"][0]) and shown["body"][0] != shown["body"][2]
    assert shown["topic"] == ROWS["topic"]
    assert shown["tags_code"] == shown["body_crc"] == [None, None, None]  # made without the salt, so they would undo it
    assert pickle.loads(pickle.dumps(redaction)).text("order-1") == token


def test_two_runs_share_no_tokens_without_a_salt_of_theirs() -> None:
    assert read_redaction("hash").text("x") != read_redaction("hash").text("x")
    assert read_redaction("hash", "s").text("x") == read_redaction("hash", "s").text("x")


def test_the_salt_is_not_shown() -> None:
    redaction = read_redaction("hash", "a salt")
    assert redaction.salt.hex() not in repr(redaction) and str(redaction.salt) not in repr(redaction)


def test_a_dictionary_column_keeps_its_meaning() -> None:
    column = pa.array(["a", None, "b"]).dictionary_encode()
    one = pa.RecordBatch.from_arrays([column], names=["tags"])
    assert Redaction("hide").batch(one).column(0).to_pylist() == ["(hidden)", None, "(hidden)"]


@pytest.mark.parametrize(("mode", "salt"), [("x", None), ("hide", "s"), (None, "s"), ("hash", "")])
def test_what_makes_no_sense_is_a_usage_error(mode: str | None, salt: str | None) -> None:
    with pytest.raises(UsageError, match="redact"):
        read_redaction(mode, salt)


def test_what_stands_for_too_many_properties_is_concealed_whatever_its_first_name() -> None:
    data = b"a\x01b\x02" * 500 + b"WAIT\x01true\x02KEYS\x01secret\x02"
    fields = list(_properties(data, 0, Redaction("hide")))
    assert len(fields) == 501 and not any("secret" in field.value or b"secret" in field.data for field in fields)
    assert any(b"secret" in field.data for field in _properties(data, 0, Redaction("none")))
