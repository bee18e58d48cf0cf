"""Conditions on contents: over a batch of rows and over one message alike."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest

from schemas import commitlog_layout as layout
from store_io.explore.message_search import Contents
from store_io.rules.message_verdict import Message

ROWS = [
    ("u1", "a b", 0, b"plain needle"),
    ("u2", "ab", layout.SYS_COMPRESSED, zlib.compress(b"packed needle " * 9)),
    ("a", None, 0, b"none"),
    (None, "a", 0, b""),
]


def batch() -> pa.RecordBatch:
    unique, keys, flags, bodies = (list(column) for column in zip(*ROWS, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(unique, pa.string()), pa.array(keys, pa.string()), pa.array(flags, pa.int32()), pa.array(bodies, pa.binary())],
        names=["unique_key", "keys", "sys_flag", "body"],
    )


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Contents(), [True, True, True, True]),
        (Contents(key="a"), [True, False, True, True]),
        (Contents(key="ab"), [False, True, False, False]),
        (Contents(unique_key="a"), [False, False, True, False]),
        (Contents(body=b"needle"), [True, True, False, False]),
        (Contents(key="a", body=b"needle"), [True, False, False, False]),
    ],
)
def test_a_batch_and_single_messages_agree(wanted: Contents, expected: list[bool]) -> None:
    assert wanted.mask(batch(), 1 << 20).to_pylist() == expected
    single = []
    for unique, keys, flag, body in ROWS:
        properties = {name: value for name, value in (("UNIQ_KEY", unique), ("KEYS", keys)) if value is not None}
        message = Message(0, 100, layout.MAGIC_V1, sys_flag=flag, properties=properties)
        single.append(wanted.matches(message, body, 1 << 20))
    assert single == expected


def test_only_columns_that_are_needed_are_read() -> None:
    assert Contents().columns == ()
    assert Contents(key="a", unique_key="b", body=b"c").columns == ("keys", "unique_key", "sys_flag", "body")
    assert Contents(unique_key="b").columns == ("unique_key",)
