"""Lengthens a record by the few damaged bytes after it, so that a scan passes them: they are too few for a bridge.

The bytes become a property without a value at the end of the record's own. No release's MessageDecoder gives such a one to a
client, and no checksum but that of the properties covers it. Body, keys, tags and place of the message stay; its size grows, as
its queue entries say then. Source: MessageDecoder.string2messageProperties, CommitLog.checkMessageAndReturnSize.
"""

from __future__ import annotations

from schemas.layouts import commitlog_layout as layout
from schemas.layouts.store_names import BRIDGE_TOPIC
from store_io.base.crc import checksum

_NO_VALUE = layout.PROPERTY_NAME_END + layout.PROPERTY_END
_MOST_PROPERTIES_BYTES = (1 << 15) - 1
_CRC_BYTES = layout.PROPERTY_CRC_BYTES


def lengthened(record: bytes, properties_at: int, count: int) -> bytes | None:
    """Return the record with `count` more bytes; None if it has no room for them, or they are too few for a property.

    properties_at: the position of the properties in it, which end it.
    """
    own = record[properties_at:]
    appended = own.startswith(layout.PROPERTY_CRC_NAME.encode(), -_CRC_BYTES) and own.endswith(layout.PROPERTY_END)
    crc = own[-_CRC_BYTES:] if appended else b""
    if crc and crc != crc_property(record[:-_CRC_BYTES]):
        return None
    before = own[: len(own) - len(crc)]
    added = b"" if not before or before.endswith(layout.PROPERTY_END) else layout.PROPERTY_END
    room = count - len(added)
    if len(own) + count > _MOST_PROPERTIES_BYTES or room < 0 or 0 < room <= len(_NO_VALUE):
        return None
    if room:
        name = BRIDGE_TOPIC.encode()
        added += (name * (room // len(name) + 1))[: room - len(_NO_VALUE)] + _NO_VALUE
    head = (len(record) + count).to_bytes(4, "big") + record[4 : properties_at - 2]
    longer = head + (len(own) + count).to_bytes(2, "big") + before + added
    return longer + (crc_property(longer) if crc else b"")


def crc_property(covered: bytes) -> bytes:
    """Return the checksum that a broker appends to a record of which these are all other bytes."""
    digits = f"{checksum.crc32(covered) & 0x7FFFFFFF:010d}"[::-1].encode()
    return layout.PROPERTY_CRC_NAME.encode() + layout.PROPERTY_NAME_END + digits + layout.PROPERTY_END
