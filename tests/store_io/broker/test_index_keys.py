"""The keys under which a message stands in the index, and their hashes (recovery.md 8.2)."""

from __future__ import annotations

import pytest

from schemas.layouts import commitlog_layout as layout
from store_io.broker.index_keys import has_key, index_keys, key_hash, tag_key
from store_io.broker.message_verdict import Message


def message(sys_flag: int = 0, **properties: str) -> Message:
    return Message(0, 100, layout.MAGIC_V1, sys_flag=sys_flag, topic="T", properties=properties)


def test_unique_key_first_then_each_piece_of_keys_then_the_tags() -> None:
    one = message(KEYS=" b  a ", UNIQ_KEY="u", TAGS="x y")
    assert index_keys(one) == ["u", "b", "a"]
    assert tag_key(one) == "T#x y"
    assert index_keys(message()) == [] and tag_key(message()) is None


def test_a_message_that_was_rolled_back_has_none() -> None:
    for state in (0, layout.SYS_TRANSACTION_MASK & ~layout.SYS_ROLLBACK, layout.SYS_ROLLBACK):
        one = message(state, UNIQ_KEY="u", TAGS="x")
        rolled_back = state & layout.SYS_TRANSACTION_MASK == layout.SYS_ROLLBACK
        assert (index_keys(one) == []) is (tag_key(one) is None) is rolled_back


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("ab", 97 * 31 + 98), ("polygenelubricants", 0), ("é", 233)],  # the second last: the smallest number
)
def test_the_hash_is_never_negative(text: str, value: int) -> None:
    assert key_hash(text) == value


def test_a_message_has_its_unique_key_and_each_piece_of_keys() -> None:
    properties = {"UNIQ_KEY": "u v", "KEYS": "a b"}
    assert [has_key(properties, key) for key in ("u v", "a", "b", "a b", "u", "c")] == [True, True, True, False, False, False]
