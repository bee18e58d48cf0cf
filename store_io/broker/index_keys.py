"""The keys that a message has in the index, and the hashes of its entries (recovery.md 8.2).

Compiled loops (`commitlog_kernel`, `index_merge`, `segment_runs`, `dataset_rows`) follow the same rule over columns.
Source: IndexService.buildIndex and buildKey, IndexFile.indexKeyHashMethod.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.layouts import commitlog_layout as layout
from store_io.base.java.java_compat import int32, string_hash
from store_io.broker.message_verdict import Message

UNIQUE_KEY, KEYS, TAGS = "UNIQ_KEY", "KEYS", "TAGS"


def index_keys(message: Message) -> list[str]:
    """Return the keys in the order in which they are put, without the tag key. A message that was rolled back has none."""
    if message.sys_flag & layout.SYS_TRANSACTION_MASK == layout.SYS_ROLLBACK:
        return []
    keys = [message.properties[UNIQUE_KEY]] if UNIQUE_KEY in message.properties else []
    return keys + [part for part in message.properties.get(KEYS, "").split(" ") if part]


def tag_key(message: Message) -> str | None:
    """Return the key that follows them in releases that index tags; None: there is none."""
    if message.sys_flag & layout.SYS_TRANSACTION_MASK == layout.SYS_ROLLBACK or TAGS not in message.properties:
        return None
    return tag_text(message.properties[TAGS])


def tag_text(tags: str) -> str:
    """Return tags as a key."""
    return "T#" + tags


def has_key(properties: Mapping[str, str], key: str) -> bool:
    """Say whether a message with these properties is one of those that somebody means who asks for the key."""
    return key == properties.get(UNIQUE_KEY) or key in properties.get(KEYS, "").split(" ")


def key_text(topic: str, key: str) -> str:
    """Return the text to be hashed."""
    return f"{topic}#{key}"


def key_hash(text: str) -> int:
    """Return the hash that an entry stores: the absolute one; the one number that has none becomes 0."""
    return max(0, int32(abs(string_hash(text))))
