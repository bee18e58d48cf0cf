"""A text as a release's parser reads it: fastjson 1 and fastjson2 take much that is no JSON.

`parse_written` is for what a broker writes, and fast; `parse_tolerant` for all else, token by token, without recursion.
Source: com.alibaba.fastjson.parser.JSONLexerBase and DefaultJSONParser, com.alibaba.fastjson2.JSONReaderUTF16 (docs/config.md 3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from schemas.rows import Row
from store_io.rules.config.reading import ConfigRules

# A group is possessive here, as each round of another one costs memory, and a text may have millions. Before Python 3.11.5 such a
# group matches wrongly where a round fails after a repetition in it. A round of this one fails before that or not at all.
_BODY = r"[^{0}\\]*+(?:\\.[^{0}\\]*+)*+"
_TEXT = _BODY.format('"')
# A text, or an integer in the place of a key: fastjson writes integer keys without quotes. A text that is not closed goes to the
# end, and no part of one is given back: else each of its quotes would be a start to look from, in quadratic time.
_WHOLE_TEXT = rf'"{_TEXT}(?:"|\\?\Z)'.encode()
_TOKEN = re.compile(_WHOLE_TEXT + rb"|([{,]\s*)(-?[0-9]+)(?=\s*:)", re.DOTALL)
_STRUCTURE = re.compile(_WHOLE_TEXT + rb"|[{}\[\]]", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n\f\b]++|//[^\n]*+")  # one stretch of it, as is `/* */`
_WIDE_SPACE = re.compile(r"[\x00-\x19\x1b-\x20\x7f]++|//[^\n]*+")
_STRING = re.compile(rf"""\"({_TEXT})\"|'({_BODY.format("'")})'""", re.DOTALL)
_NUMBER = re.compile(r"(-?[0-9]+)(\.[0-9]*)?([eE][+-]?[0-9]+)?[LSBFD]?(?![\w.])")
_NAME = re.compile(r"[^\W\d][\w$.-]*+|[$][\w$.-]*+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "F": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {str(i): chr(i) for i in range(8)}
_PLAIN_ESCAPES = frozenset("\"'\\/")
_WORDS = {"true": True, "false": False, "null": None}
_EMPTY_TEXTS = ('""', "''")
MAX_DEPTH = 1000  # of nesting; the release's parser ends somewhere beyond, with its stack
MAX_ODD_VALUES = 2_000_000  # of a text that no broker writes
OTHER_SHAPE = "JSON of another shape"
_SEPARATORS = ":,{["


class ConfigFault(ValueError):
    """What is wrong with a file; `start`: the byte at which it begins to be.  known: the release refuses it; else what it makes
    of the text is not known."""

    def __init__(self, reason: str, start: int = 0, known: bool = True):
        super().__init__(reason)
        self.start, self.known = start, known


class Nothing:
    """A text that the parser takes and that holds no object. blank: white space, an empty text or a lone brace, which managers
    whose own class is read treat as a fault."""

    def __init__(self, blank: bool, text: bool = False):
        self.blank, self.text = blank, text


# ---- what a broker writes ------------------------------------------------------------------------------------------


def parse_written(data: bytes, hook: Callable[[Row], Any] | None = None) -> Any:
    """JSON as fastjson writes it: integer keys may be without quotes. Raises ConfigFault.

    hook: gets each object once it is read; what it gives takes the object's place.
    """
    if not data.strip(b"\0"):
        raise ConfigFault(f"{len(data):,} zeros")
    if b'"@type"' in data:
        raise ConfigFault("names a class", data.index(b'"@type"'))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigFault("not UTF-8", error.start) from error
    del text
    quoted = bytearray()
    at = 0
    for match in _TOKEN.finditer(data):
        if match[2] is not None:
            quoted += data[at : match.start(2)] + b'"' + match[2] + b'"'
            at = match.end(2)
    text = (quoted + data[at:]).decode("utf-8")
    del quoted
    try:
        return json.loads(text, object_hook=hook, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ConfigFault(error.msg, _position_of(error.pos, text, data)) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a nesting of thousands of levels
        raise ConfigFault(str(error)) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _position_of(fault: int, text: str, data: bytes) -> int:
    """The byte of `data` at that place of the text, which has quotes around the keys that came without."""
    after, added = len(text[:fault].encode("utf-8")), 0
    for match in _TOKEN.finditer(data):
        if match[2] is not None:
            for quote in (match.start(2), match.end(2)):
                added += quote + added < after
    return max(0, min(after - added, len(data) - 1))


def never_closed(data: bytes) -> bool:
    """Whether the text is an object that never ends, so that every release refuses it. Texts in single quotes and comments are
    not understood here: of a text that has such nothing is said."""
    text = data.rstrip(b"\0").lstrip(b" \t\r\n")
    if text[:1] != b"{" or b"'" in text or b"/*" in text or b"//" in text:
        return False
    depth = 0
    for token in _STRUCTURE.finditer(text):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth == 0:
            return False
    return True


# ---- everything else -----------------------------------------------------------------------------------------------


def parse_tolerant(data: bytes, rules: ConfigRules) -> Any:
    """The object that the release's parser makes of the text, or `Nothing`. Raises ConfigFault.

    Keys are texts, an integer key too; of repeated ones the last counts.
    """
    if not data.strip(b"\0"):
        raise ConfigFault(f"{len(data):,} zeros")
    if never_closed(data):
        raise ConfigFault("an object that is not closed", len(data) - 1)
    text = data.decode("utf-8", "replace")
    if sum(text.count(separator) for separator in _SEPARATORS) > MAX_ODD_VALUES:
        raise ConfigFault("too much of it is not as a broker writes it", known=False)
    return _Reader(text.removeprefix("\ufeff").rstrip("\0"), rules).read()


class _Reader:
    """One text, from its begin to its end."""

    def __init__(self, text: str, rules: ConfigRules):
        self._text, self._rules = text, rules
        self._space = _WIDE_SPACE if rules.bare_names else _SPACE
        self._at = 0

    def read(self) -> Any:
        nothing = self._nothing()
        if nothing is not None:
            return nothing
        value = self._value()
        self._skip()
        if self._at < len(self._text):
            raise self._fault("text after its end")
        if value is None:
            return Nothing(blank=False)
        if isinstance(value, list) and not value and self._rules.blank_is_nothing:
            return Nothing(blank=False)
        if not isinstance(value, dict):
            raise ConfigFault(OTHER_SHAPE)
        return value

    def _nothing(self) -> Nothing | None:
        """What holds no object and is no fault either."""
        bare = self._text.strip(" \t\r\n\f\b")
        if bare in ("", "\x1a", "NULL"):
            if not self._rules.blank_is_nothing:
                raise ConfigFault("white space alone" if not bare else "no object")
            return Nothing(blank=bare != "NULL")
        if bare == "}" or bare in _EMPTY_TEXTS:
            return Nothing(blank=True, text=bare != "}")
        return None

    def _fault(self, reason: str) -> ConfigFault:
        return ConfigFault(reason, min(len(self._text[: self._at].encode("utf-8", "replace")), max(0, len(self._text) - 1)))

    def _skip(self) -> None:
        while True:
            if match := self._space.match(self._text, self._at):
                self._at = match.end()
            elif self._text.startswith("/*", self._at) and (end := self._text.find("*/", self._at + 2)) >= 0:
                self._at = end + 2
            else:
                return

    def _next(self) -> str:
        self._skip()
        return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """The value here, with all that is in it."""
        open_values: list[tuple[Any, str]] = []  # each with the key under which its next value belongs
        while True:
            value, opened = self._single()
            if opened:
                if len(open_values) >= MAX_DEPTH:
                    raise ConfigFault(f"a nesting of more than {MAX_DEPTH} levels", known=False)
                open_values.append((value, ""))
            elif not open_values:
                return value
            else:
                self._put(open_values[-1], value)
                self._after_value()
            while True:  # closed ones, one after another
                holder, _ = open_values[-1]
                key = self._next_place(holder)
                if key is not None:
                    open_values[-1] = (holder, key)
                    break
                open_values.pop()
                self._check_type(holder)
                if not open_values:
                    return holder
                self._put(open_values[-1], holder)
                self._after_value()

    @staticmethod
    def _put(place: tuple[Any, str], value: Any) -> None:
        holder, key = place
        if isinstance(holder, dict):
            holder[key] = value
        else:
            holder.append(value)

    def _single(self) -> tuple[Any, bool]:
        """(a value, whether it was only opened)"""
        character = self._next()
        if character in ("{", "["):
            self._at += 1
            return ({}, True) if character == "{" else ([], True)
        if character in ('"', "'"):
            return self._string(), False
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            return self._number(number), False
        word = _NAME.match(self._text, self._at)
        if word is not None and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]], False
        raise self._fault("no value" if character else "the text ends within an object")

    def _number(self, match: re.Match[str]) -> int | float:
        if match[2] or match[3]:
            return float(match[0].rstrip("LSBFD"))
        if len(match[1]) > 40:
            raise self._fault("a number of too many digits")
        return int(match[1])

    def _next_place(self, holder: Any) -> str | None:
        """The key of the next value of an object, "" in a list; None at its end, which is read."""
        end = "}" if isinstance(holder, dict) else "]"
        character = self._next()
        while character == "," and self._rules.bare_names:
            self._at += 1
            character = self._next()
        if character == end:
            self._at += 1
            return None
        if end == "]":
            return ""
        if character in ('"', "'"):
            key = self._string()
        else:
            bare = _NUMBER.match(self._text, self._at) or (_NAME.match(self._text, self._at) if self._rules.bare_names else None)
            if bare is None:
                raise self._fault("no key" if character else "the text ends within an object")
            self._at, key = bare.end(), bare[0]
        if self._next() != ":":
            raise self._fault("a key without a colon")
        self._at += 1
        return key

    def _after_value(self) -> None:
        character = self._next()
        if character == ",":
            self._at += 1
        elif character not in ("}", "]"):
            raise self._fault("no comma between values" if character else "the text ends within an object")

    def _string(self) -> str:
        match = _STRING.match(self._text, self._at)
        if match is None:
            raise self._fault("a text that is not closed")
        self._at = match.end()
        text = match[1] if match[1] is not None else match[2]
        if "\\" not in text:
            return text
        whole = _ESCAPE.sub(self._unescaped, text)  # a character beyond 16 bits is written as two escapes
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def _unescaped(self, match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16))
        character = match[3]
        if character in _ESCAPED:
            return _ESCAPED[character]
        if character not in _PLAIN_ESCAPES:
            raise self._fault("an escape that is not known")
        return character

    def _check_type(self, holder: Any) -> None:
        """A class named in the text: fastjson 1 refuses what it does not allow, fastjson2 reads on."""
        if self._rules.ignores_types or not isinstance(holder, dict) or "@type" not in holder:
            return
        if not (self._rules.hash_map_type and holder["@type"] == "java.util.HashMap"):
            raise self._fault("@type names a class")
        del holder["@type"]
