"""The entries that messages have in an index in RocksDB, as bytes (rocksdb.md 10): what `index_prints` takes prints of.

Source: IndexRocksDBStore.buildIndex, IndexRocksDBRecord.getKeyBytes (5.4.0, 5.5.0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from schemas import commitlog_layout
from schemas.rocksdb_layout import HOUR_MS
from store_io.base.java_compat import decode_utf8
from store_io.log.scan.dataset_rows import ScannedRows
from store_io.log.scan.row_texts import properties_of


class IndexedMessage(NamedTuple):
    """The parts of a message from which `index_entries` makes its entries."""

    topic: str
    parts: tuple[bytes, bytes, bytes]
    sys_flag: int
    store_time: int
    phy_offset: int


def indexed_messages(scanned: ScannedRows, rows: np.ndarray) -> Iterator[IndexedMessage]:
    """These rows of a batch."""
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
    """(key, value) of each. parts: the values of UNIQ_KEY, KEYS and TAGS, empty for none; what is no UTF-8 is stored as Java
    decodes it."""
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
