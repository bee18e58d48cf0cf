"""Makes the entries that messages have in an index in RocksDB, as bytes and as fingerprints (rocksdb.md 10).

Source: IndexRocksDBStore.buildIndex, IndexRocksDBRecord.getKeyBytes (5.4.0, 5.5.0).
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from schemas.layouts import commitlog_layout
from schemas.layouts.rocksdb_layout import HOUR_MS
from schemas.rows import QueueKey
from store_io.base import fingerprints
from store_io.base.compiled.native import compiled_helper, kept
from store_io.base.fingerprints import SEED, Prints, Stretches, finished, fold_byte, fold_bytes, fold_number, prints_of
from store_io.base.java.java_compat import decode_utf8
from store_io.log.records.message_columns import MAX_RECORD_KEYS, Columns
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.row_texts import properties_of
from store_io.source.segment_window import SegmentWindow

# Of the table of a message's keys: a power of two, at least twice as many as it can have different ones.
_LEAST_SLOTS, _TABLE_SLOTS = 16, 1 << 15
_NO_KEYS = commitlog_layout.SYS_TRANSACTION_MASK, commitlog_layout.SYS_ROLLBACK


class IndexedMessage(NamedTuple):
    """The parts of a message from which `index_entries` makes its entries."""

    topic: str
    parts: tuple[bytes, bytes, bytes]
    sys_flag: int
    store_time: int
    phy_offset: int


def indexed_messages(scanned: ScannedRows, rows: np.ndarray) -> Iterator[IndexedMessage]:
    """Return these rows of a batch."""
    if not len(rows):
        return
    buffer, origin = properties_of(scanned.window, rows)
    for row, shift in zip(rows, origin.tolist(), strict=True):
        start = int(row["position"]) - shift
        unique, keys, tags = (
            buffer[start + int(row[f"{name}_at"]) : start + int(row[f"{name}_at"]) + int(row[f"{name}_len"])].tobytes()
            if row[f"{name}_len"] > 0
            else b""
            for name in ("uniq", "keys", "tags")
        )
        topic = scanned.keys[int(row["topic_ref"])][0]
        parts = unique, keys, tags
        yield IndexedMessage(topic, parts, int(row["sys_flag"]), int(row["store_time"]), int(row["phy_offset"]))


def index_entries(
    topic: str, parts: tuple[bytes, bytes, bytes], sys_flag: int, store_time: int, phy_offset: int
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, value) of each. parts: the values of UNIQ_KEY, KEYS and TAGS, empty for none; what is no UTF-8 is stored as
    Java decodes it."""
    unique, keys, tags = (decode_utf8(part) for part in parts)
    hour = store_time // HOUR_MS * HOUR_MS
    rolled_back = sys_flag & commitlog_layout.SYS_TRANSACTION_MASK == commitlog_layout.SYS_ROLLBACK
    if not topic or not unique or store_time <= 0 or hour <= 0 or rolled_back:
        return
    texts = [f"K@{key}@{unique}" for key in dict.fromkeys(keys.split(" ")) if key]
    texts += [f"T@{tags}@{unique}"] if tags else []
    for text in (*texts, f"U@{unique}"):
        middle = f"@{topic}@{text}@".encode("utf-8", "surrogatepass")
        yield struct.pack(">q", hour) + middle + struct.pack(">q", phy_offset), struct.pack(">q", store_time)


class IndexPrints:
    """Adds up prints of messages, batch by batch."""

    def __init__(self, stretches: Stretches):
        self._stretches = stretches
        self.prints = Prints()
        self._seed = np.uint64(secrets.randbits(64))  # nobody can choose keys that all lead to one slot
        self._topics = np.zeros(0, np.uint8)
        self._ends = np.zeros(0, np.int64)

    def add(self, columns: Columns, keys: Sequence[QueueKey], window: SegmentWindow) -> None:
        """Take the messages of one batch."""
        rows = columns.rows[: columns.count]
        if not len(rows):
            return
        if len(keys) > len(self._ends):
            texts = [topic.encode("utf-8", "surrogatepass") for topic, _ in keys]
            self._topics = np.frombuffer(b"".join(texts), np.uint8)
            self._ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        buffer, origin = properties_of(window, rows)
        # One for itself, one for its tags, and at most one for every other byte of its keys.
        most = 2 * len(rows) + int(((rows["keys_len"].astype(np.int64) + 1) // 2).sum())
        phy, hashes = np.zeros(most, np.int64), np.zeros(most, np.uint64)
        starts, table = np.zeros(MAX_RECORD_KEYS, np.int64), np.zeros(_TABLE_SLOTS, np.int32)
        count = _collect(rows, self._topics, self._ends, buffer, origin, starts, table, self._seed, phy, hashes, *_NO_KEYS)
        numbers = (phy[:count] - self._stretches.start) // self._stretches.size
        self.prints = self.prints + prints_of(numbers, hashes[:count])


@compiled_helper()
def _head(hour, topics, start, end, kind):  # type: ignore[no-untyped-def]
    """Return the hash of what a key begins with: the hour, "@", the topic, "@", its kind, "@"."""
    value = fold_bytes(fold_byte(fold_number(SEED, hour), 0x40), topics, start, end)
    return fold_byte(fold_byte(fold_byte(value, 0x40), kind), 0x40)


@compiled_helper()
def _text(value, data, start, end):  # type: ignore[no-untyped-def]
    return fold_byte(fold_bytes(value, data, start, end), 0x40)


@compiled_helper()
def _same(data, one, other, size):  # type: ignore[no-untyped-def]
    for i in range(size):
        if data[one + i] != data[other + i]:
            return False
    return True


@compiled_helper()
def _slot(data, starts, table, mask, seed, start, size):  # type: ignore[no-untyped-def]
    """Return the slot of the table that has this key, or the free slot into which the key goes.

    table: places in `starts`, plus one; 0 is free.
    mask: one less than the number of slots in use.
    """
    slot = np.int64(finished(fold_bytes(seed, data, start, start + size)) & np.uint64(mask))
    while table[slot] > 0:
        known = table[slot] - 1
        if starts[known + 1] == size and _same(data, starts[known], start, size):
            break
        slot = (slot + 1) & mask
    return slot


@kept(fingerprints)
def _collect(rows, topics, ends, buffer, origin, starts, table, seed, phy, hashes, mask, rolled_back):  # type: ignore[no-untyped-def]
    """Fill physical offset and hash of each entry: how many."""
    count = 0
    for i in range(len(rows)):
        row = rows[i]
        hour = row.store_time // 3600000 * 3600000
        if row.uniq_len <= 0 or row.store_time <= 0 or hour <= 0 or row.sys_flag & mask == rolled_back:
            continue
        ref = row.topic_ref
        topic, topic_end = ends[ref - 1] if ref else 0, ends[ref]
        if topic == topic_end:
            continue
        uniq = row.position + row.uniq_at - origin[i]
        uniq_end = uniq + row.uniq_len
        at = row.position + row.keys_at - origin[i]
        end = at + row.keys_len
        met, slots = 0, _LEAST_SLOTS
        while slots < _TABLE_SLOTS and slots < row.keys_len + 2:
            slots *= 2
        table[:slots] = 0
        while at < end:
            start = at
            while at < end and buffer[at] != 0x20:
                at += 1
            size = at - start
            slot = _slot(buffer, starts, table, slots - 1, seed, start, size)
            if size > 0 and table[slot] == 0:
                if met + 2 <= len(starts):
                    table[slot] = met + 1
                    starts[met], starts[met + 1] = start, size
                    met += 2
                value = _text(_text(_head(hour, topics, topic, topic_end, 0x4B), buffer, start, at), buffer, uniq, uniq_end)
                phy[count] = row.phy_offset
                hashes[count] = finished(fold_number(fold_number(value, row.phy_offset), row.store_time))
                count += 1
            at += 1
        if row.tags_len > 0:
            tags = row.position + row.tags_at - origin[i]
            value = _text(_head(hour, topics, topic, topic_end, 0x54), buffer, tags, tags + row.tags_len)
            value = _text(value, buffer, uniq, uniq_end)
            phy[count] = row.phy_offset
            hashes[count] = finished(fold_number(fold_number(value, row.phy_offset), row.store_time))
            count += 1
        value = _text(_head(hour, topics, topic, topic_end, 0x55), buffer, uniq, uniq_end)
        phy[count] = row.phy_offset
        hashes[count] = finished(fold_number(fold_number(value, row.phy_offset), row.store_time))
        count += 1
    return count
