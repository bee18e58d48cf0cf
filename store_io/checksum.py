"""CRC-32 of bodies: the fastest engine that is there, checked against crcmod before it is trusted."""

from __future__ import annotations

import zlib

try:
    from isal import isal_zlib as _engine

    crc32 = _engine.crc32
    ENGINE = "isal"
except ImportError:  # no wheel for this machine
    crc32 = zlib.crc32
    ENGINE = "zlib"


def body_crc(body: bytes | memoryview) -> int:
    """The BODYCRC field's value for this body: CRC-32 ISO-HDLC with the top bit cleared."""
    return crc32(body) & 0x7FFFFFFF
