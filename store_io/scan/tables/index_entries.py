"""The entries that a message has in an index in RocksDB, as bytes (rocksdb.md 10): what `index_prints` takes prints of.

Source: IndexRocksDBStore.buildIndex, IndexRocksDBRecord.getKeyBytes (5.4.0, 5.5.0).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from schemas import commitlog_layout
from schemas.rocksdb_layout import HOUR_MS
from store_io.base.java_compat import decode_utf8


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
