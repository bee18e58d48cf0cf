"""Bodies as producers sent them, within bounds, and the messages of an inner batch."""

from __future__ import annotations

import zlib

import lz4.frame
import pytest
import zstandard

from store_io.log.records.message_bodies import (
    DAMAGED,
    DECODED,
    MAX_INNER_MESSAGES,
    STATUS_NAMES,
    STORED,
    TOO_LARGE,
    UNKNOWN,
    decode_body,
    inner_messages,
)
from tests.support.stores.builders import inner_body

PACKED = {0x001: zlib.compress, 0x101: lz4.frame.compress, 0x201: zstandard.compress, 0x301: zlib.compress}
BODY = b"body " * 1000


@pytest.mark.parametrize("flag", PACKED)
def test_each_compression_within_its_limit(flag: int) -> None:
    packed = PACKED[flag](BODY)
    assert decode_body(packed, flag, len(BODY)) == (BODY, DECODED)
    assert decode_body(packed, flag, len(BODY) - 1) == (None, TOO_LARGE)
    assert decode_body(packed[:-5], flag, 1 << 20) == (None, DAMAGED)
    assert decode_body(b"text", flag, 1 << 20) == (None, DAMAGED)


@pytest.mark.parametrize("flag", [0x101, 0x201])
def test_frames_may_follow_one_another(flag: int) -> None:
    packed = PACKED[flag](BODY) + PACKED[flag](b"more")
    assert decode_body(packed, flag, 1 << 20) == (BODY + b"more", DECODED)


def test_what_is_not_compressed_stays_and_an_unknown_type_is_told() -> None:
    assert decode_body(BODY, 0x100, 1) == (BODY, STORED)
    assert decode_body(b"", 0x1, 1) == (b"", STORED)
    assert decode_body(BODY, 0x501, 1 << 20) == (None, UNKNOWN)
    assert len(STATUS_NAMES) == 5


def test_the_messages_of_an_inner_batch() -> None:
    bodies = [b"one", b"", b"three" * 9]
    batch = inner_body(bodies)
    found = inner_messages(batch)
    assert found is not None and [batch[slice(*message.body)] for message in found] == bodies


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b"\xff" + b[1:], lambda b: b"", lambda b: b[:10]]
)
def test_what_is_no_inner_batch_is_none(change: object) -> None:
    assert inner_messages(change(inner_body([b"one", b"two"]))) is None  # type: ignore[operator]


def test_a_batch_cannot_hold_more_than_its_count_can_say() -> None:
    one = inner_body([b""])
    assert inner_messages(one * (MAX_INNER_MESSAGES + 1)) is None
    assert len(inner_messages(one * 10) or ()) == 10
