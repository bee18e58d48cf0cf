"""Decodes one record's bytes to the message that a client or mqadmin makes of them, however wrong it is. Also its first fields
alone.

Not a check: what a broker hands out is decoded as it is. Source: MessageDecoder.decode, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from schemas.layouts import commitlog_layout as layout
from store_io.base.java.java_compat import decode_utf8
from store_io.broker.header_faults import MAX_PORT
from store_io.broker.message_verdict import FIXED_PART_BYTES, Message, parse_properties, read_fixed_fields
from store_io.broker.releases import BrokerRules


def decode_message(data: bytes, rules: BrokerRules) -> Message | None:
    """Decode the message in these bytes, with positions from the first byte; return None if the release's decoding throws.

    data: the bytes that an entry's size, or the record's own, cuts out of the log. The body stays as it is stored.
    """
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        if count < 0 or at + count > len(data):
            raise ValueError("a part leads beyond the buffer")
        at += count
        return data[at - count : at]

    def number(size: int) -> int:
        return int.from_bytes(take(size), "big", signed=True)

    def host(v6: int) -> bytes:
        found = take(20 if v6 else 8)
        if not 0 <= int.from_bytes(found[-4:], "big", signed=True) <= MAX_PORT:
            raise ValueError("no port")
        return found

    try:
        message = Message(0, number(4), number(4))
        if rules.knows_v2 and message.magic not in (layout.MAGIC_V1, layout.MAGIC_V2):
            return None
        read_fixed_fields(message, number, host)
        message.body_position = at
        take(max(0, message.body_length))
        wide = rules.knows_v2 and message.magic == layout.MAGIC_V2
        message.topic_length = number(2 if wide else 1)
        message.topic_position = at
        message.topic = decode_utf8(take(message.topic_length))
        message.properties_length = number(2)
        message.properties_position = at
        if message.properties_length > 0:
            text = decode_utf8(take(message.properties_length))
            message.properties = parse_properties(text, rules.old_property_parser)
    except ValueError:
        return None
    return message


def host_text(data: bytes) -> str:
    """Return address:port of a host as stored: 4 or 16 bytes and an int32 port."""
    address, port = data[:-4], int.from_bytes(data[-4:], "big", signed=True)
    text = str(ipaddress.ip_address(address))
    return f"[{text}]:{port}" if len(address) == 16 else f"{text}:{port}"


def fixed_fields(sys_flag: int) -> Iterator[tuple[str, int, int]]:
    """Yield (name, position, bytes) of a record's fields before its body, under its SYSFLAG."""
    hosts = {"BORNHOST": layout.SYS_BORN_HOST_V6, "STOREHOST": layout.SYS_STORE_HOST_V6}
    moved = 0
    for name, position, size in layout.FIXED_FIELDS:
        extra = layout.IPV6_EXTRA_BYTES if sys_flag & hosts.get(name, 0) else 0
        yield name, position + moved, size + extra
        moved += extra


def field_place(name: str, sys_flag: int) -> tuple[int, int]:
    """Return (position, end) of such a field in a record, under its SYSFLAG. name: RocketMQ's own."""
    return next((at, at + size) for known, at, size in fixed_fields(sys_flag) if known == name)


def stored_fields(head: bytes) -> dict[str, int]:
    """Return the fields before a record's body by RocketMQ's names, as stored. Bytes that are not there count as zeros."""
    head = head.ljust(FIXED_PART_BYTES, b"\0")
    flag = int.from_bytes(head[layout.SYS_FLAG_POSITION :][:4], "big", signed=True)
    return {name: int.from_bytes(head[at : at + size], "big", signed=True) for name, at, size in fixed_fields(flag)}


def names_place(head: bytes, phy_offset: int) -> bool:
    """Say whether a record with these first bytes has a message's magic and this physical offset, whatever else is wrong with
    it."""
    fields = stored_fields(head)
    return fields["MAGICCODE"] in (layout.MAGIC_V1, layout.MAGIC_V2) and fields["PHYSICALOFFSET"] == phy_offset
