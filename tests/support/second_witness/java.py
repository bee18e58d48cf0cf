"""The few Java rules that the store's meaning depends on."""

import re
import struct

I64 = struct.Struct(">q")
I32 = struct.Struct(">i")
I16 = struct.Struct(">h")


def int32(n):
    n &= 0xFFFFFFFF
    return n - (1 << 32) if n >> 31 else n


def int64(n):
    n &= (1 << 64) - 1
    return n - (1 << 64) if n >> 63 else n


def string_hash(text):
    """String.hashCode: over UTF-16 code units."""
    h = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        h = (31 * h + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return int32(h)


def parse_number(text, bits):
    """Integer/Long/Short.parseXxx: the number, or None where Java throws."""
    if text is None or not re.fullmatch(r"[+-]?\d+", text) or max(text) > "\uffff":
        return None
    n = int(text)  # of digits of any script, as Java does
    return n if -(1 << bits - 1) <= n < 1 << bits - 1 else None


def divide(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def split_dropping_tail(text, separator):
    """String.split(one plain character): trailing empty parts are dropped; "" gives [""]."""
    parts = text.split(separator)
    if parts == [""]:
        return parts
    while parts and parts[-1] == "":
        parts.pop()
    return parts
