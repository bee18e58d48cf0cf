"""One frame -> what a release's check says of it, and what the audit says. The readable reference: one frame at a time.

`check_frame` is CommitLog.checkMessageAndReturnSize (recovery.md 3) with every difference between the releases;
`audit_frame` is the check of AUDIT_RELEASE with all checksums on, plus what no broker looks at by default: that the stored
physical offset equals the position, and an appended property CRC wherever there is one.
The fast decoder (`commitlog_columns`) must agree with this module on every byte sequence; a test holds them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from schemas.layouts import commitlog_layout as layout
from store_io.base.crc import checksum
from store_io.base.java.java_compat import decode_utf8, int32, parse_number, split_dropping_tail, string_hash
from store_io.broker.releases import AUDIT_RELEASE, BrokerRules, broker_rules

VALID, END, BAD, HALF = "valid", "end", "bad", "half"
AUDIT, BROKER, REPUT = "audit", "broker", "reput"  # who checks a record
FIXED_PART_BYTES = layout.BODY_POSITION + 2 * layout.IPV6_EXTRA_BYTES  # up to the body, with hosts of whichever length


class Frames(Protocol):
    """Random access to a segment's bytes by position, through a bounded window."""

    def read(self, start: int, end: int) -> bytes:
        """Return bytes [start, end), fewer if the file ends before."""

    def crc32(self, start: int, end: int) -> int:
        """Return CRC-32 of bytes [start, end), unsigned, in bounded memory."""

    def properties(self, start: int, end: int) -> bytes:
        """Return the properties in bytes [start, end): all of them, or those alone that decide whether the message is valid."""


class BufferFrames:
    """`Frames` over bytes that are in memory. `base`: the position of the buffer's first byte."""

    def __init__(self, buffer: bytes | bytearray | memoryview, base: int = 0):
        self._view = memoryview(buffer)
        self._base = base

    def read(self, start: int, end: int) -> bytes:
        return bytes(self._view[max(0, start - self._base) : max(0, end - self._base)])

    def crc32(self, start: int, end: int) -> int:
        return checksum.crc32(self._view[max(0, start - self._base) : max(0, end - self._base)])

    def properties(self, start: int, end: int) -> bytes:
        return self.read(start, end)


@dataclass(slots=True)
class Message:
    """The fields of one frame that passed. Positions are bytes in the segment; times ms; hosts raw (4 or 16 bytes + port)."""

    position: int
    total_size: int
    magic: int
    body_crc: int = 0
    queue_id: int = 0
    flag: int = 0
    queue_offset: int = 0
    phy_offset: int = 0
    sys_flag: int = 0
    born_time: int = 0
    born_host: bytes = b""
    store_time: int = 0
    store_host: bytes = b""
    reconsume_times: int = 0
    prepared_offset: int = 0
    body_position: int = 0
    body_length: int = 0
    topic: str = ""
    topic_position: int = 0
    topic_length: int = 0
    properties_position: int = 0
    properties_length: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    tags_code: int = 0
    batch_base: int = 0
    batch_count: int = 1

    @property
    def ports(self) -> tuple[int, int]:
        """Return the ports of the born host and of the store host."""
        born, store = (int.from_bytes(host[-4:], "big", signed=True) for host in (self.born_host, self.store_host))
        return born, store

    @property
    def in_queue(self) -> bool:
        """Say whether dispatch gives it a ConsumeQueue entry: transaction types none and commit."""
        return self.sys_flag & layout.SYS_TRANSACTION_MASK in (0, layout.SYS_COMMIT)


@dataclass(slots=True)
class Verdict:
    """The answer of a check about one frame.

    kind: VALID; END (a filler); BAD; HALF (only the size disagrees with the fields).
    size: the total size if VALID or HALF.
    reason: of `finding_codes.STOP_REASONS`, empty if VALID.
    parsed_to: the position after the fields that were read (reput continues there after HALF).
    computed_size: the sum of the fields, if all of them could be read; else 0.
    expected, actual: the two values.
    """

    kind: str
    size: int = 0
    reason: str = ""
    parsed_to: int = 0
    computed_size: int = 0
    message: Message | None = None
    expected: str = ""
    actual: str = ""


class _Refused(Exception):
    def __init__(self, reason: str, expected: object = "", actual: object = ""):
        super().__init__(reason)
        self.reason, self.expected, self.actual = reason, str(expected), str(actual)


def parse_properties(text: str, old_parser: bool = False) -> dict[str, str]:
    """MessageDecoder.string2messageProperties: the last of equal names wins. old_parser: 4.9.0 and before."""
    found: dict[str, str] = {}
    if old_parser:
        for item in split_dropping_tail(text, "\x02"):
            parts = split_dropping_tail(item, "\x01")
            if len(parts) == 2:
                found[parts[0]] = parts[1]
        return found
    at = 0
    while at < len(text):
        end = text.find("\x02", at)
        end = len(text) if end < 0 else end
        if end - at >= 3:
            split = text.find("\x01", at)
            if at < split < end - 1:
                found[text[at:split]] = text[split + 1 : end]
        at = end + 1
    return found


def tags_code_of(topic: str, properties: Mapping[str, str], store_time: int, delays: Mapping[int, int]) -> int | None:
    """Return the code of a ConsumeQueue entry: the hash of TAGS, or a delayed message's deliver time. None: DELAY is no number.

    delays: the level table of that moment; an empty one caps every level to 0, so that the hash stays (pitfall P12).
    """
    tags = properties.get("TAGS")
    code = string_hash(tags) if tags else 0
    if topic == layout.SCHEDULE_TOPIC and "DELAY" in properties:
        level = parse_number(properties["DELAY"], 32)
        if level is None:
            return None
        level = min(level, max(delays, default=0))
        if level > 0:
            code = store_time + delays.get(level, 1000)
    return code


def property_crc_value(text: str) -> int:
    """Return the number after `__CRC32#`: digits least significant first, in Java's int arithmetic."""
    value = 0
    for character in reversed(text):
        value = int32(int32(value * 10) + ord(character) - 48)
    return value


def read_fixed_fields(message: Message, number: Callable[[int], int], host: Callable[[int], bytes]) -> None:
    """Read the fields between a record's magic and its body, in the order in which they are stored.

    number: reads the next bytes, so many, as a number.
    host: reads the next host, of IPv6 if its argument is not 0.
    """
    message.body_crc, message.queue_id, message.flag = number(4), number(4), number(4)
    message.queue_offset, message.phy_offset = number(8), number(8)
    message.sys_flag, message.born_time = number(4), number(8)
    message.born_host = host(message.sys_flag & layout.SYS_BORN_HOST_V6)
    message.store_time = number(8)
    message.store_host = host(message.sys_flag & layout.SYS_STORE_HOST_V6)
    message.reconsume_times, message.prepared_offset, message.body_length = number(4), number(8), number(4)


def check_frame(
    frames: Frames,
    position: int,
    limit: int,
    rules: BrokerRules,
    mode: str = BROKER,
    delays: Mapping[int, int] | None = None,
) -> Verdict:
    """Return the verdict of the release's check on the record at `position` of a buffer that ends at `limit`.

    mode: BROKER, recovery, which looks at checksums as the settings say; AUDIT looks at all of them; REPUT, the catch-up, at
    none, and skips the body.
    delays: the level table of the moment (default: as it is in recovery). Source: CommitLog.checkMessageAndReturnSize, rows
    numbered as in recovery.md 3.
    """
    crc, read_body = mode == AUDIT or mode == BROKER and rules.check_crc, mode != REPUT
    table = rules.delays_in_recovery if delays is None else delays
    at = position
    total = 0

    def take(count: int) -> int:
        nonlocal at
        if count < 0 or at + count > limit:
            raise _Refused("field_beyond_file", f"{count} bytes", f"{limit - at} left")
        at += count
        return at - count

    head = frames.read(position, position + FIXED_PART_BYTES)  # its fields are read one by one below, as the broker does

    def number(size: int) -> int:
        start = take(size)
        data = head[start - position : at - position] if at - position <= FIXED_PART_BYTES else frames.read(start, at)
        if len(data) < size:
            raise _Refused("field_beyond_file", f"{size} bytes", f"{len(data)} left")
        return int.from_bytes(data, "big", signed=True)

    def part(count: int) -> int:
        if count < 0 or count > total:
            raise _Refused("field_beyond_record", f"at most {total} bytes", count)
        return take(count)

    def host(v6: int) -> bytes:
        return frames.read(part(20 if v6 else 8), at)

    try:
        if rules.checks_size_first and limit - at <= 4:
            raise _Refused("no_room", "a size and a magic", f"{limit - at} bytes")
        total = number(4)
        if rules.checks_sign_first and total < 0:
            raise _Refused("negative_size", "a positive size", total)
        if rules.checks_size_first and limit - at < int32(total - 4):
            raise _Refused("size_beyond_file", f"at most {limit - position} bytes", total)
        magic = number(4)
        if magic == layout.MAGIC_BLANK:
            return Verdict(END, 0, "filler", at)
        if magic != layout.MAGIC_V1 and not (magic == layout.MAGIC_V2 and rules.knows_v2):
            raise _Refused("unwritten" if magic == 0 and total == 0 else "magic", "0xdaa320a7", f"0x{magic & 0xFFFFFFFF:08x}")
        if total < 0:
            raise _Refused("negative_size", "a positive size", total)
        message = Message(position, total, magic)
        read_fixed_fields(message, number, host)
        bad_body: _Refused | None = None
        message.body_position = at
        if message.body_length > 0:
            message.body_position = part(message.body_length) if read_body else take(message.body_length)
            if read_body and crc and not rules.verify_property_crc:
                actual = frames.crc32(message.body_position, at) & 0x7FFFFFFF
                if actual != message.body_crc:
                    bad_body = _Refused("body_crc", f"0x{message.body_crc & 0xFFFFFFFF:08x}", f"0x{actual:08x}")
        topic_length = number(1 if magic == layout.MAGIC_V1 else 2)
        message.topic_length = topic_length
        if topic_length < 0 and bad_body is None:
            raise _Refused("topic_length", "at least 0", topic_length)
        message.topic_position = part(topic_length)
        properties_length = number(2)
        message.properties_length = properties_length
        message.properties_position = at
        if properties_length > 0:
            message.properties_position = part(properties_length)
        extra = layout.IPV6_EXTRA_BYTES
        computed = (
            (layout.MIN_SIZE_V1_BYTES if magic == layout.MAGIC_V1 else layout.MIN_SIZE_V2_BYTES)
            + (extra if message.sys_flag & layout.SYS_BORN_HOST_V6 else 0)
            + (extra if message.sys_flag & layout.SYS_STORE_HOST_V6 else 0)
            + max(message.body_length, 0)
            + topic_length
            + max(properties_length, 0)
        )
    except _Refused as why:
        return Verdict(BAD, -1, why.reason, at, 0, None, why.expected, why.actual)
    # All parts could be read, so the frame's true end is known even if one of the checks below refuses it.
    try:
        if bad_body is not None:
            raise bad_body
        message.topic = decode_utf8(frames.read(message.topic_position, message.topic_position + topic_length))
        if properties_length > 0:
            data = frames.properties(message.properties_position, message.properties_position + properties_length)
            message.properties = parse_properties(decode_utf8(data), rules.old_property_parser)
            if rules.dup_info:
                info = message.properties.get("DUP_INFO")
                if info is None or len(split_dropping_tail(info, "_")) != 2:
                    raise _Refused("dup_info", "two parts", info)
            code = tags_code_of(message.topic, message.properties, message.store_time, table)
            if code is None:
                raise _Refused("delay", "a number", message.properties["DELAY"])
            message.tags_code = code
        if crc and rules.verify_property_crc:
            text = message.properties.get(layout.PROPERTY_CRC_NAME)
            stored = -1 if text is None else property_crc_value(text)
            if stored < 0 or stored == 0 and not rules.property_crc_zero_ok:
                raise _Refused("property_crc_missing", "an appended CRC", text)
            if at - total < 0 or total < layout.PROPERTY_CRC_BYTES:
                raise _Refused("property_crc", stored, "a record too short for it")
            actual = frames.crc32(at - total, at - layout.PROPERTY_CRC_BYTES) & 0x7FFFFFFF
            if actual != stored:
                raise _Refused("property_crc", stored, actual)
        if total != computed:
            return Verdict(HALF, total, "size_mismatch", at, computed, message, str(computed), str(total))
        message.batch_base = message.queue_offset
        if rules.inner_batch and "INNER_NUM" in message.properties and "INNER_BASE" in message.properties:
            base = parse_number(message.properties["INNER_BASE"], 64)
            count = parse_number(message.properties["INNER_NUM"], 16)
            if base is None or count is None:
                raise _Refused(
                    "inner_batch", "two numbers", f"{message.properties['INNER_NUM']}, {message.properties['INNER_BASE']}"
                )
            message.batch_base, message.batch_count = base, count
        elif rules.inner_batch and "INNER_BASE" not in message.properties and message.sys_flag & layout.SYS_INNER_BATCH:
            count = parse_number(message.properties.get("INNER_NUM"), 16)  # as queues in RocksDB number it (rocksdb.md 2)
            message.batch_count = max(1, count or 1)
    except _Refused as why:
        return Verdict(BAD, -1, why.reason, at, computed, message, why.expected, why.actual)
    return Verdict(VALID, total, "", at, computed, message)


AUDIT_RULES = broker_rules(AUDIT_RELEASE)  # with default settings: V2 known, body CRC on, sizes first


def audit_frame(
    frames: Frames,
    position: int,
    limit: int,
    phy_offset: int,
    delays: Mapping[int, int] | None = None,
    rules: BrokerRules = AUDIT_RULES,
) -> Verdict:
    """Return the audit's verdict on the frame at `position`, which should store `phy_offset` as its own address.

    VALID: every check passes.
    END: a blank magic, whatever its size (the caller compares it with the bytes left).
    BAD with computed_size > 0: the frame's end is known although something in it is wrong.
    """
    verdict = check_frame(frames, position, limit, rules, AUDIT, delays)
    if verdict.kind != VALID or verdict.message is None:
        return verdict
    message = verdict.message
    if message.phy_offset != phy_offset:
        return Verdict(
            BAD, -1, "phy_offset", verdict.parsed_to, verdict.computed_size, message, str(phy_offset), str(message.phy_offset)
        )
    text = message.properties.get(layout.PROPERTY_CRC_NAME)
    if text is not None and appended_crc(frames, message, text):
        stored = property_crc_value(text)
        actual = frames.crc32(position, position + message.total_size - layout.PROPERTY_CRC_BYTES) & 0x7FFFFFFF
        if stored != actual:
            return Verdict(BAD, -1, "property_crc", verdict.parsed_to, verdict.computed_size, message, str(stored), str(actual))
    return verdict


def appended_crc(frames: Frames, message: Message, text: str) -> bool:
    """Say whether the record's last 20 bytes are the property CRC that a broker appends (and not a producer's property)."""
    end = message.position + message.total_size
    tail = frames.read(end - layout.PROPERTY_CRC_BYTES, end)
    return tail.startswith(layout.PROPERTY_CRC_NAME.encode()) and tail.endswith(layout.PROPERTY_END) and len(text) == 10


def properties_fault(data: bytes) -> str:
    """Return why a properties part is not of the form that a broker writes, or "". Every part is name 0x01 value 0x02, in UTF-8,
    without NUL; the last 0x02 may be absent. No checksum covers the properties, so this is all that shows a torn one."""
    if b"\x00" in data:
        torn = data.endswith(b"\x00")
        return "NUL bytes to the end, as a block of replication that was cut short leaves them" if torn else "NUL bytes"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8"
    parts = data.split(b"\x02")
    if parts and not parts[-1]:
        parts.pop()
    for item in parts:
        if b"\x01" not in item[1:]:
            return "a part without a name and a separator"
    return ""
