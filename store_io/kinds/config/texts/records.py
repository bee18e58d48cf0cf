"""Keys and values of a database of the second version, config/rdb/ (config.md 6).

A key: 1, the table's number (2 bytes), 1 for the version or 2 for an entry, then a name with its length (2 bytes) before it; of
an offset the group, 1, the topic, 1, and the queue id (4 bytes). A value: 1 and JSON; of an offset 8 bytes. All big-endian.
Source: TopicConfigManagerV2.parseTopicConfig, SubscriptionGroupManagerV2.parseSubscription,
ConsumerOffsetManagerV2.loadConsumerOffsets, ConfigHelper.loadDataVersion. What they assert no broker checks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from schemas.rows import Row
from store_io.broker.queues.multi_dispatch import LMQ_PREFIX
from store_io.broker.settings.config_rules import ConfigRules
from store_io.broker.texts.fastjson import Nothing
from store_io.broker.texts.tables import Offset

OFFSETS, TOPICS, GROUPS = 1, 3, 4
JSON = 1  # the only kind of value that a broker writes, or reads
_VERSION, _ENTRY = b"\x01", b"\x02"
_NAMES = {TOPICS: ("topicConfigTable", "topicName"), GROUPS: ("subscriptionGroupTable", "groupName")}
SHOWN = 80  # characters of a name in a sentence

Parse = Callable[[bytes, ConfigRules, Callable[[Row], Any] | None], Any]


class BadRecord(Exception):
    """A key or value over which the broker's load throws, so that it ends."""


def version_key(number: int) -> bytes:
    return b"\x01" + struct.pack(">H", number) + _VERSION + b"data_version"


def version_of(value: bytes) -> Row:
    """Return the fields of a version, three numbers of 8 bytes; {} if the value is none (ConfigHelper.onDataVersionLoad)."""
    if len(value) != 24:
        return {}
    state, time, counter = struct.unpack(">3q", value)
    return {"stateVersion": state, "timestamp": time, "counter": counter}


def key_range(number: int) -> tuple[bytes, bytes]:
    """Return the entries of a table: from the first key to before the second."""
    head = b"\x01" + struct.pack(">H", number)
    return head + _ENTRY, head + b"\x03"


class Records:
    """One table, entry by entry.

    named: what its JSON says, by the name in it, not by that of the key.
    offsets: of light queues none, which no manager holds.
    offset_bytes: of the keys and values of those held.
    """

    def __init__(self, number: int, hook: Callable[[Row], Any], rules: ConfigRules):
        self.are_offsets = number == OFFSETS
        self.table, self._name = _NAMES.get(number, ("", ""))
        self.named: dict[str, Any] = {}
        self.offsets: dict[Offset, int] = {}
        self.offset_bytes = 0
        self._hook, self._rules = hook, rules
        self._texts: dict[bytes, str] = {}

    def take(self, key: bytes, value: bytes, parse: Parse) -> None:
        """Check it. Raises BadRecord."""
        if self.are_offsets:
            self._take_offset(key, value)
            return
        _name(key, 4)
        if not value:
            raise BadRecord(f"the value of {self.words(key)} is empty")
        if value[0] != JSON:
            return
        text = value[1:].decode("utf-8", "replace").encode()  # as a broker decodes it
        read = parse(text, self._rules, None) if text.strip() else Nothing(blank=True)
        if isinstance(read, Nothing) or read is None:
            return
        name = read.get(self._name) if isinstance(read, dict) else None
        if not isinstance(name, str):
            raise BadRecord(f"the value of {self.words(key)} has no {self._name}")
        self.named[name] = self._hook(read)

    def words(self, key: bytes) -> str:
        """Return the entry at that key, as a sentence names it."""
        try:
            name, at = _name(key, 4)
            if not self.are_offsets:
                return f"{'topic' if self.table == _NAMES[TOPICS][0] else 'group'} {_shown(name)}"
            topic, at = _name(key, at + 1)
        except BadRecord as why:
            return str(why)
        return f"the offset of group {_shown(name)} in topic {_shown(topic)}"

    def _take_offset(self, key: bytes, value: bytes) -> None:
        group, at = _name(key, 4)
        topic, at = _name(key, at + 1)
        place = key[at + 1 : at + 5]
        if len(place) < 4 or len(value) < 8:
            raise BadRecord(f"{self.words(key)} is cut short")
        if topic.startswith(LMQ_PREFIX.encode()):
            return
        self.offset_bytes += len(key) + len(value)
        names = (self._texts.setdefault(text, text.decode("utf-8", "replace")) for text in (group, topic))
        self.offsets[(*names, int.from_bytes(place, "big", signed=True))] = int.from_bytes(value[:8], "big", signed=True)  # type: ignore[index]


def _name(key: bytes, at: int) -> tuple[bytes, int]:
    """Return (a name that has its length before it, the position after the name). Raises BadRecord."""
    size = int.from_bytes(key[at : at + 2], "big", signed=True)
    end = at + 2 + size
    if len(key) < at + 2 or not 0 <= size or end > len(key):
        raise BadRecord("a name in a key is cut short")
    return key[at + 2 : end], end


def _shown(name: bytes) -> str:
    return repr(name.decode("utf-8", "replace")[:SHOWN])
