"""Bridges: valid messages that fill a damaged range of the CommitLog exactly, so that a broker's scan walks over it.

In the middle of a segment only a valid record carries a scan on (a filler makes it go to the next segment). A bridge is a
message of transaction type rollback in a topic of its own: dispatch puts it into no ConsumeQueue and no index, nothing serves
it, and whoever reads the log finds it by its topic and flag. Source: CommitLog.checkMessageAndReturnSize,
CommitLogDispatcherBuildConsumeQueue.dispatch, IndexService.buildIndex (recovery.md 3, 7.3, 8.2).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.layouts import commitlog_layout as layout
from schemas.layouts.store_names import BRIDGE_TOPIC
from store_io.base.crc import checksum
from store_io.broker.releases import BrokerRules

FLAG = 0x52475031  # the producer's own field: marks the shortest bridges, which have no room for the topic
MAX_BYTES = 1 << 20  # of one bridge: far below what any release takes for a message
_HOST = bytes(8)  # 0.0.0.0, port 0
_FIXED = layout.MIN_SIZE_V1_BYTES
_DUP_INFO = b"DUP_INFO\x01repaired_0\x02"


@dataclass(frozen=True)
class Bridge:
    """One record to write: bytes [position, position + size) of a segment."""

    position: int
    size: int
    record: bytes

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """Yield (position, bytes) of what is not zero: the body between them is, and stays a hole."""
        body = int.from_bytes(self.record[layout.BODY_LENGTH_POSITION : layout.BODY_POSITION], "big")
        yield self.position, self.record[: layout.BODY_POSITION]
        yield self.position + layout.BODY_POSITION + body, self.record[layout.BODY_POSITION + body :]


def least_bytes(rules: BrokerRules) -> int:
    """Return the shortest range that a bridge can fill."""
    return _FIXED + len(_properties(rules))


def bridges(base_offset: int, start: int, end: int, store_time: int, rules: BrokerRules) -> Iterator[Bridge]:
    """Yield records that fill bytes [start, end) of a segment exactly, one after the other.

    The range is at least `least_bytes` long. store_time: ms, of a neighbouring message, so that times do not fall.
    """
    for at, size in _places(start, end, rules):
        yield Bridge(at, size, record(base_offset + at, size, store_time, rules))


def topics(start: int, end: int, rules: BrokerRules) -> Counter[str]:
    """Return how many of the records that fill bytes [start, end) have each topic: short ones have a part of its name."""
    return Counter(_topic(size, rules) for _, size in _places(start, end, rules))


def _places(start: int, end: int, rules: BrokerRules) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of the records that fill bytes [start, end)."""
    least = least_bytes(rules)
    at = start
    while at < end:
        size = min(MAX_BYTES, end - at)
        if 0 < end - at - size < least:
            size -= least  # the rest must be a record too
        yield at, size
        at += size


def _topic(size: int, rules: BrokerRules) -> str:
    """Return the topic of a bridge of that many bytes: as much of the name as it has room for."""
    return BRIDGE_TOPIC[: max(0, size - least_bytes(rules))]


def pad(phy_offset: int, store_time: int, rules: BrokerRules, queued: bool) -> bytes:
    """Return a record with which a segment begins that recovery can begin at.

    queued: with an entry in a ConsumeQueue of its own.
    """
    size = least_bytes(rules) + len(BRIDGE_TOPIC)
    return record(phy_offset, size, store_time, rules, 0 if queued else layout.SYS_ROLLBACK)


def record(phy_offset: int, size: int, store_time: int, rules: BrokerRules, sys_flag: int = layout.SYS_ROLLBACK) -> bytes:
    """Return one bridge of exactly that many bytes."""
    properties = _properties(rules)
    topic = _topic(size, rules).encode()
    body = bytes(size - least_bytes(rules) - len(topic))
    crc = checksum.crc32(body) & 0x7FFFFFFF if body else 0
    head = struct.pack(">iiiiiqqiq", size, layout.MAGIC_V1, crc, 0, FLAG, 0, phy_offset, sys_flag, store_time)
    tail = _HOST + struct.pack(">q", store_time) + _HOST + struct.pack(">iqi", 0, 0, len(body)) + body
    tail += struct.pack(">b", len(topic)) + topic + struct.pack(">h", len(properties)) + properties
    whole = head + tail
    if _has_crc(rules):
        covered = checksum.crc32(whole[: size - layout.PROPERTY_CRC_BYTES]) & 0x7FFFFFFF
        digits = f"{covered:010d}"[::-1].encode()
        whole = whole[: size - len(digits) - 1] + digits + layout.PROPERTY_END
    assert len(whole) == size
    return whole


def is_bridge(topic: str, row: np.void) -> bool:
    """Say whether a valid message, a row of `message_columns`, is a bridge. A producer can choose the topic and FLAG; no broker
    stores a message without a host of its own."""
    rollback = row["sys_flag"] == layout.SYS_ROLLBACK
    chosen = row["flag"] == FLAG and (
        topic == BRIDGE_TOPIC and row["sys_flag"] == 0 or rollback and BRIDGE_TOPIC.startswith(topic)
    )
    zero = all(row[name] == 0 for name in ("store_host", "queue_offset", "prepared_offset", "reconsume_times"))
    return bool(chosen and zero and row["born_time"] == row["store_time"])


def _has_crc(rules: BrokerRules) -> bool:
    return rules.verify_property_crc and rules.check_crc


def _properties(rules: BrokerRules) -> bytes:
    """Return the properties that the settings demand of every record: DUP_INFO, and room for a property CRC at the end."""
    found = _DUP_INFO if rules.dup_info else b""
    if _has_crc(rules):
        found += layout.PROPERTY_CRC_NAME.encode() + layout.PROPERTY_NAME_END + b"0" * 10 + layout.PROPERTY_END
    return found
