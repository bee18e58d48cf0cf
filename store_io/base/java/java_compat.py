"""The few rules of Java that the meaning of the bytes depends on.

All integers are signed and wrap; String.hashCode runs over UTF-16 code units; division truncates toward zero.
"""

from __future__ import annotations

import math
import re
import unicodedata

MAX_LONG = (1 << 63) - 1  # Long.MAX_VALUE: no offset and no time is larger
_NUMBER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(
    r"([+-]?)(?:(NaN|Infinity)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
TRIMMED = "".join(map(chr, range(33)))  # String.trim


def int32(number: int) -> int:
    """Return the number wrapped to a signed 32-bit one."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def int64(number: int) -> int:
    """Return the number wrapped to a signed 64-bit one."""
    return ((number + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def string_hash(text: str) -> int:
    """String.hashCode: h = 31 * h + unit over UTF-16 code units, signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return int32(value)


def parse_number(text: str | None, bits: int) -> int | None:
    """Parse a number as Java's Integer, Long or Short of that many bits; None if Java throws.

    Digits may be of any script, as in Java.
    """
    if text is not None and not text.isascii():  # Java looks at UTF-16 units, so it knows no digit beyond 0xFFFF
        text = "".join(str(unicodedata.decimal(c, c)) if ord(c) < 0x10000 else c for c in text)
    if text is None or not _NUMBER.fullmatch(text):
        return None
    sign, digits = ("-" if text[0] == "-" else ""), text.lstrip("+-").lstrip("0")
    if len(digits) > 20:  # beyond 64 bits; and int() raises on some thousand digits
        return None
    number = int(f"{sign}{digits or 0}")
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def parse_double(text: str) -> float | None:
    """Double.parseDouble: None if Java throws."""
    found = _DOUBLE.fullmatch(text.strip(TRIMMED))
    if found is None:
        return None
    sign, name, decimal, hexadecimal = found.groups()
    try:
        number = float.fromhex(hexadecimal) if hexadecimal else float(name or decimal)
    except OverflowError:
        number = math.inf
    return -number if sign == "-" else number


def divide(dividend: int, divisor: int) -> int:
    """Divide as Java divides integers: toward zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def split_dropping_tail(text: str, separator: str) -> list[str]:
    """String.split on one plain character: trailing empty parts are dropped; "" gives [""]."""
    parts = text.split(separator)
    if parts == [""]:
        return parts
    while parts and parts[-1] == "":
        parts.pop()
    return parts


def decode_utf8(data: bytes) -> str:
    """new String(bytes, UTF_8): malformed bytes become U+FFFD and never fail."""
    return bytes(data).decode("utf-8", "replace")


def whole_text(text: str) -> str:
    """Return the text as UTF-8 can hold it: halves of surrogate pairs, which JSON can name, become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_blank(text: str) -> bool:
    """StringUtils.isBlank: empty, or nothing but what Character.isWhitespace names (which leaves out no-break spaces)."""
    return all(letter.isspace() and letter not in "\x85\xa0\u2007\u202f" for letter in text)
