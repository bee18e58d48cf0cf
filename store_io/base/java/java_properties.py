"""java.util.Properties.load: the text of broker.conf, and of DLedger's small files, as Java reads it.

A text has a character per byte, as `load(InputStream)` decodes it (ISO-8859-1): what is beyond ASCII in a UTF-8 file reaches a
broker as other characters, and a byte order mark is the beginning of the first key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from store_io.base.errors import RefusedSetting

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACE = " \t\f"


class Property(NamedTuple):
    """One line of a properties file. value: with the spaces after it, which Java keeps."""

    key: str
    value: str


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values; the last of equal keys counts. Raises UsageError as `properties_of` does."""
    return {found.key: found.value for found in properties_of(text)}


def properties_of(text: str) -> Iterator[Property]:
    """`key=value`, `key: value` or `key value`, comments, continued lines, escapes, in the order of the lines.

    Raises UsageError for a \\u without four hex digits: Java throws, and a broker ends.
    """
    for line in _logical_lines(text):
        end = separator = len(line)
        escaped = False
        for i, character in enumerate(line):
            if not escaped and character in "=:" + _SPACE:
                end, separator = i, i
                break
            escaped = character == "\\" and not escaped
        rest = line[separator:].lstrip(_SPACE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACE)
        yield Property(_unescape(line[:end]), _unescape(rest))


def property_line(key: str, value: str) -> str:
    """Return a line that is read as this key and value."""
    shown = "".join(_escaped(character) for character in value)
    return f"{key}={chr(92) if shown[:1] == ' ' else ''}{shown}"


def _escaped(character: str) -> str:
    for letter, own in _ESCAPES.items():
        if character == own:
            return f"\\{letter}"
    return "\\\\" if character == "\\" else character


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blanks, a continued one joined with those that continue it."""
    whole = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_SPACE)
        if not whole and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            whole += line[:-1]
        else:
            yield whole + line
            whole = ""
    if whole:
        yield whole


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code, character = match[1], match[2]
        if code is not None:
            return chr(int(code, 16))
        if character == "u":
            raise RefusedSetting(f"{text!r}: \\u needs four hexadecimal digits")
        return _ESCAPES.get(character, character)

    read = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", plain, text)
    return read.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # two escapes can be one character
