"""Keys of ConsumeQueues in RocksDB, to and from queues and numbers (rocksdb.md 2)."""

from __future__ import annotations

import struct

from schemas.layouts import rocksdb_layout as layout
from schemas.rows import QueueKey
from store_io.base.java.java_compat import decode_utf8

_SIGN = 1 << 31


def queue_prefix(key: QueueKey) -> bytes:
    """Return the bytes with which the keys of all entries of a queue begin; their order is that of RocksDB."""
    return layout.SEPARATOR.join((*_parts(key), b""))


def topic_prefix(topic: str) -> bytes:
    """Return the bytes with which the keys of all entries of a topic begin."""
    return layout.SEPARATOR.join((*_parts((topic, 0))[:2], b""))


def entry_key(prefix: bytes, number: int) -> bytes:
    """Return the key of an entry of the queue with this prefix. number: from 0 to 2^63 - 1."""
    return prefix + struct.pack(">q", number)


def after(prefix: bytes) -> bytes:
    """Return the first key after all entries of that queue, or topic: its last byte is the separator."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def queue_of_prefix(prefix: bytes) -> QueueKey | None:
    """Return the queue whose entries' keys begin so; None if no broker writes such a key."""
    size = len(prefix) - (layout.ENTRY_KEY_EXTRA - layout.NUMBER_BYTES)
    if size < 0:
        return None
    length, first = struct.unpack_from(">ic", prefix)
    second, queue_id, third = struct.unpack_from(">cic", prefix, layout.AFTER_TOPIC + size)
    if length != size or (first, second, third) != (layout.SEPARATOR,) * 3:
        return None
    return decode_utf8(prefix[layout.AFTER_TOPIC : layout.AFTER_TOPIC + size]), queue_id


def mark_key() -> bytes:
    """Return the key of the end mark."""
    return offset_key(layout.MAXIMUM, (layout.MARK_TOPIC.decode(), layout.MARK_QUEUE_ID))


def offset_key(which: bytes, key: QueueKey) -> bytes:
    """Return the key of a queue's maximum or minimum, in the family `offset`."""
    length, topic, queue_id = _parts(key)
    return layout.SEPARATOR.join((length, topic, which, queue_id))


def _parts(key: QueueKey) -> tuple[bytes, bytes, bytes]:
    """Return (length of the topic, topic, queue id), as keys hold them."""
    topic = key[0].encode("utf-8", "surrogatepass")
    return struct.pack(">i", len(topic)), topic, struct.pack(">i", (key[1] + _SIGN) % (2 * _SIGN) - _SIGN)


def offset_of_key(key: bytes) -> tuple[bytes, QueueKey] | None:
    """Return ("max" or "min", queue) of a key of the family `offset`; None if no broker writes such a key."""
    size = len(key) - layout.OFFSET_KEY_EXTRA
    if size < 0:
        return None
    length, first = struct.unpack_from(">ic", key)
    second, which, third, queue_id = struct.unpack_from(">c3sci", key, layout.AFTER_TOPIC + size)
    if length != size or (first, second, third) != (layout.SEPARATOR,) * 3 or which not in (layout.MAXIMUM, layout.MINIMUM):
        return None
    return which, (decode_utf8(key[layout.AFTER_TOPIC : layout.AFTER_TOPIC + size]), queue_id)
