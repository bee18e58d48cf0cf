"""Keys of queues in RocksDB: there and back, in RocksDB's order, and nothing of any bytes raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.rows import QueueKey
from store_io.log.entries.queue_keys import after, entry_key, offset_of_key, queue_of_prefix, queue_prefix
from tests.support.stores import rocksdb_stores

KEYS: list[QueueKey] = [("T", 0), ("T", 3), ("Topic", 0), ("主题", 7), ("", 0), ("%LMQ%x", (1 << 31) - 1)]


@pytest.mark.parametrize("key", KEYS)
def test_there_and_back(key: QueueKey) -> None:
    prefix = queue_prefix(key)
    assert entry_key(prefix, 17) == rocksdb_stores.entry_key(*key, 17)
    assert queue_of_prefix(prefix) == key
    assert offset_of_key(rocksdb_stores.offset_key(*key, b"max")) == (b"max", key)
    assert entry_key(prefix, (1 << 63) - 1) < after(prefix)


def test_the_order_is_by_length_first() -> None:
    assert sorted(KEYS, key=queue_prefix) == sorted(KEYS, key=lambda key: (len(key[0].encode()), key[0].encode(), key[1]))


@given(st.binary(max_size=40))
def test_any_bytes(data: bytes) -> None:
    for found in (queue_of_prefix(data), offset_of_key(data)):
        assert found is None or isinstance(found, tuple)
