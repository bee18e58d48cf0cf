"""Values as people read them. Everything that a store holds (topics, keys, names) is hostile: it goes through `printable`."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from store_io.base.wording import bytes_text, count_text, seen

if TYPE_CHECKING:  # jobs.entry needs this module before there is an environment
    from schemas.outcome import Outcome

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Letters, marks and symbols that are shown as nothing: those of Default_Ignorable_Code_Point (Unicode,
# DerivedCoreProperties.txt) whose category does not say so, and blanks by their names.
_BLANK = frozenset(
    map(chr, (
        0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x3164, *range(0xFE00, 0xFE10), 0xFFA0,
        *range(0xE0000, 0xE1000),
        0x2800, 0x16FE4, 0x1D159, 0x13441, 0x13442,
    ))
)  # fmt: skip


def printable(text: object, limit: int = 0) -> str:
    """Return the text with everything that steers a terminal or a page, or that cannot be seen, written as an escape.

    Controls, newlines, bidirectional and zero-width characters, spaces but the usual one, letters that are shown as nothing,
    lone surrogates and unassigned code points become \\x1b, \\u202e and the like. limit > 0: at most that many characters of
    the result, the last one then an ellipsis.
    """
    raw = str(text)
    if not (raw.isascii() and raw.isprintable()):
        raw = "".join(c if _is_seen(c) else _escape(c) for c in raw)
    if limit and len(raw) > limit:
        raw = raw[: limit - 1] + "…"
    return raw


def _is_seen(character: str) -> bool:
    return character == " " or unicodedata.category(character) not in _HIDDEN and character not in _BLANK


def name_text(name: object, limit: int = 0) -> str:
    """Return a topic, key or other name, `printable`. It is in quotes if it is empty, or begins or ends with a space."""
    return seen(printable(name, limit))


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def value_text(value: object) -> str:
    """Return a setting's value as broker.conf has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def seconds_text(seconds: float) -> str:
    """Return seconds as 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def not_read_texts(outcome: Outcome) -> list[str]:
    """Return a line for each part that an audit left out on purpose; [] if it read everything."""
    left = outcome.covered.not_read
    parts = (
        (left.segments, left.segment_bytes, "segment"),
        (left.queue_files, left.queue_bytes, "ConsumeQueue file"),
        (left.index_files, left.index_bytes, "index file"),
    )
    found = [f"{count_text(count, noun)}, {bytes_text(size)}" for count, size, noun in parts if count]
    if left.reused_segments:
        kept = f"{count_text(left.reused_segments, 'segment')}, {bytes_text(left.reused_bytes)}"
        found.append(f"{kept}: unchanged since run {printable(left.since)} or an earlier one verified them")
    return found
