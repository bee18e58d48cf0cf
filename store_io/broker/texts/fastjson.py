"""A text as a release's parser reads it: fastjson 1 and fastjson2 take much that is no JSON.

`parse_written` is for what a broker writes, and fast; `parse_tolerant` for all else, token by token, without recursion.
`parse_tolerant` is kept for repairs: without it, one flipped bit in a text is not understood in 30 of 100 cases (in 7 with it);
then nothing is known of the whole start, and no repair of the log is offered.
Source: com.alibaba.fastjson.parser.JSONLexerBase and DefaultJSONParser, com.alibaba.fastjson2.JSONReaderUTF16 (config.md 3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from schemas.rows import Row
from store_io.broker.settings.config_rules import ConfigRules

# A group is possessive here, as each round of another one costs memory, and a text may have millions. Before Python 3.11.5 such a
# group matches wrongly where a round fails after a repetition in it. A round of this one fails before that or not at all.
_BODY = r"[^{0}\\]*+(?:\\.[^{0}\\]*+)*+"
_TEXT = _BODY.format('"')
# A text, or an integer in the place of a key: fastjson writes integer keys without quotes. A text that is not closed goes to the
# end, and no part of one is given back: else each of its quotes would be a start to look from, in quadratic time.
_WHOLE_TEXT = rf'"{_TEXT}(?:"|\\?\Z)'.encode()
_TOKEN = re.compile(_WHOLE_TEXT + rb"|([{,]\s*)(-?[0-9]+)(?=\s*:)", re.DOTALL)
_TOKEN_OF_NUMBER = re.compile(_WHOLE_TEXT + rb"|([{,]\s*)(-?[0-9]+)(?=\s*:\s*[0-9-])", re.DOTALL)
ANYWHERE, OF_NUMBERS, NOWHERE = "anywhere", "of numbers", "nowhere"  # where a broker writes integer keys, which have no quotes
_BRACKET = re.compile(_WHOLE_TEXT + rb"|([,:]\s*+)?([{\[])|[}\]]", re.DOTALL)
_CLOSES = {b"}": b"{", b"]": b"["}
_SPACE = re.compile(r"[ \t\r\n\f\b]++|//[^\n]*+")  # one stretch of it, as is `/* */`
_WIDE_SPACE = re.compile(r"[\x00-\x20\x7f]++|//[^\n]*+")  # before a value, of fastjson 1
_SPACE_AND_ZEROS = re.compile(r"[\x00 \t\r\n\f\b]++|//[^\n]*+")
_STRING = re.compile(rf"""\"({_TEXT})\"|'({_BODY.format("'")})'""", re.DOTALL)
_NUMBER = re.compile(r"([+-]?[0-9]+)(\.[0-9]*)?([eE][+-]?[0-9]+)?([LSBFD]?)")
_PASSED_OVER = re.compile(r"[{\[\]:;()]|[+-][0-9]*")
_NAME = re.compile(r"[A-Za-z_$\u0100-\U0010ffff][A-Za-z0-9_$\u0100-\U0010ffff]*+")
_INTEGER_KEY = re.compile(r"-?[0-9]+\s*+:")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "F": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {str(i): chr(i) for i in range(8)}
_PLAIN_ESCAPES = frozenset("\"'\\/")
WORDS = {"true": True, "false": False, "null": None}
_NULL_WORDS = frozenset({"NULL", "NaN", "undefined"})
# Values that are objects of Java; of what they become in a field of another kind nothing is known here.
_MADE = re.compile(r"(?:new\b|Set\b|TreeSet\b|x'|\.[0-9])")
_EMPTY_TEXTS = ('""', "''")
MAX_DEPTH = 1000  # of nesting; the release's parser ends somewhere beyond, with its stack
MAX_ODD_VALUES, MAX_ODD_BYTES = 2_000_000, 32 << 20  # of a text that no broker writes
MAX_DIGITS, MAX_EXPONENT_DIGITS = 40, 3  # of a number that is not an integer of 64 bits
OTHER_SHAPE = "JSON of another shape"
TOO_MANY_DIGITS = "a number of too many digits"
TOO_LARGE = "too large to be read key by key"
_SEPARATORS = b":,{["  # one for each value


def most_values(data: bytes) -> int:
    """Return how many values a text holds at most, by its separators."""
    return sum(data.count(separator) for separator in _SEPARATORS)


_NO_COMMA = "no comma between values"


class ConfigFault(ValueError):
    """The reason why a text of config/ is not taken.

    start: the byte at which the fault begins.
    known: the release refuses the text; else nobody knows what the release makes of it.
    """

    def __init__(self, reason: str, start: int = 0, known: bool = True):
        super().__init__(reason)
        self.start, self.known = start, known


class Pairs(dict[str, Any]):
    """An object of a text that no broker writes.

    written: all its pairs, in their order.
    bare: its keys without quotes: "number" or "word".
    numbered: one of them is a number.
    unquoted: the fault of a name without quotes; fastjson2 takes such an object as a text or number at most.
    doubt: of the outermost object: what the release takes in one place and refuses in another; else empty.
    swallowed: something follows a value without a comma.
    commas: there are repeated commas.
    late_colon: a comment is before a colon.

    Not all readers of fastjson 1 take these three.
    """

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[str, Any]] = []
        self.bare: dict[str, str] = {}
        self.numbered = self.swallowed = self.commas = self.late_colon = False
        self.unquoted: ConfigFault | None = None
        self.doubt = ""


def decimal_of(text: str) -> Decimal:
    """Return a decimal number, bounded so that arithmetic with it is cheap. Raises ConfigFault."""
    digits, _, exponent = text.lower().partition("e")
    if len(digits) > MAX_DIGITS or len(exponent.lstrip("+-")) > MAX_EXPONENT_DIGITS:
        raise ConfigFault(TOO_MANY_DIGITS, known=False)
    return Decimal(text)


@dataclass(frozen=True)
class Suffixed:
    """A number with a letter for its type, as 5L, or with a plus sign."""

    number: int | Decimal
    suffix: str


@dataclass(frozen=True)
class Word:
    """NULL, NaN, undefined or a brace in the place of a value.

    fastjson 1 takes the first three for null if it asks for a value; a brace ends a map for fastjson2.
    """

    text: str


class Nothing:
    """A text that the parser takes and that holds no object. blank: white space, an empty text or a lone brace, which managers
    whose own class is read treat as a fault. text: an empty text. brace: a lone brace."""

    def __init__(self, blank: bool, text: bool = False, brace: bool = False):
        self.blank, self.text, self.brace = blank, text, brace


# ---- what a broker writes ------------------------------------------------------------------------------------------


def parse_written(data: bytes, hook: Callable[[Row], Any] | None = None, integer_keys: str = ANYWHERE) -> Any:
    """Read JSON as fastjson writes it: integer keys may be without quotes. Raises ConfigFault.

    hook: gets each object once it is read; its answer takes the object's place. integer_keys: the places in which this file has
    such keys.
    """
    if not data.strip(b"\0"):
        raise ConfigFault(f"{len(data):,} zeros")
    for name, reason in ((b'"@type"', "names a class"), (b'"$ref"', "refers to another part")):
        if name in data:
            raise ConfigFault(reason, data.index(name))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigFault("not UTF-8", error.start) from error
    quoted = bytearray()
    at = 0
    for match in (_TOKEN_OF_NUMBER if integer_keys == OF_NUMBERS else _TOKEN).finditer(data):
        if match[2] is not None:
            if integer_keys == NOWHERE:
                raise ConfigFault("a number as a name", match.start(2))
            quoted += data[at : match.start(2)] + b'"' + match[2] + b'"'
            at = match.end(2)
    if quoted:
        del text
        quoted += memoryview(data)[at:]
        text = quoted.decode("utf-8")
    del quoted
    try:
        pairs = partial(_object, hook)
        return json.loads(text, object_pairs_hook=pairs, parse_constant=refuse_constant, parse_float=decimal_of)
    except json.JSONDecodeError as error:
        raise ConfigFault(error.msg, _position_of(error.pos, text, data)) from error
    except ConfigFault:
        raise
    except ValueError as error:  # Python reads no integer of thousands of digits
        raise ConfigFault(TOO_MANY_DIGITS) from error
    except RecursionError as error:
        raise ConfigFault("a nesting of too many levels") from error


def _object(hook: Callable[[Row], Any] | None, pairs: list[tuple[str, Any]]) -> Any:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ConfigFault("a repeated name")
    return read if hook is None else hook(read)


def refuse_constant(name: str) -> Any:
    raise ConfigFault(f"{name} is no number")


def _position_of(fault: int, text: str, data: bytes) -> int:
    """Return the byte of `data` at that place of the text, which has quotes around the keys that came without."""
    after, added = len(text[:fault].encode("utf-8")), 0
    for match in _TOKEN.finditer(data):
        if match[2] is not None:
            for quote in (match.start(2), match.end(2)):
                added += quote + added < after
    return max(0, min(after - added, len(data) - 1))


def never_closed(data: bytes) -> bool:
    """Say whether the text is an object that never ends, so that every release refuses it.

    Texts in single quotes, comments, and brackets in a place that a parser may pass over are not understood here: nothing is said
    of a text that holds such.
    """
    text = data.rstrip(b"\0").lstrip(b" \t\r\n")
    if text[:1] != b"{" or b"'" in text or b"/*" in text or b"//" in text:
        return False
    opened: list[bytes] = []
    after_opening = 0  # where the last bracket was opened
    for token in _BRACKET.finditer(text):
        if token[2]:
            first = token[1] is None and opened[-1:] in ([], [b"["]) and not text[after_opening : token.start()].strip()
            next_one = token[1] is not None and opened and token[1][:1] == (b"," if opened[-1] == b"[" else b":")
            if not first and not next_one:
                return False
            opened.append(token[2])
            after_opening = token.end()
        elif token[0] in _CLOSES:
            if opened.pop() != _CLOSES[token[0]] or not opened:
                return False
    return True


# ---- everything else -----------------------------------------------------------------------------------------------


def parse_tolerant(data: bytes, rules: ConfigRules) -> Any:
    """Return the object that the release's parser makes of the text, or `Nothing`. Raises ConfigFault.

    Keys are texts, an integer key too; of repeated ones the last counts.
    """
    if not data.strip(b"\0"):
        raise ConfigFault(f"{len(data):,} zeros")
    if never_closed(data):
        raise ConfigFault("an object that is not closed", len(data) - 1)
    if len(data) > MAX_ODD_BYTES:
        raise ConfigFault(TOO_LARGE, known=False)
    text = data.decode("utf-8", "replace").rstrip("\0")
    if text == "\ufeff":
        raise ConfigFault("a byte order mark alone")
    if most_values(data) > MAX_ODD_VALUES:
        raise ConfigFault(TOO_LARGE, known=False)
    try:
        return _Reader(text.removeprefix("\ufeff"), rules, len(data)).read()
    except ConfigFault as fault:
        fault.known = fault.known and text[:1] != "\ufeff"
        raise


class _Reader:
    """One text, from its begin to its end."""

    def __init__(self, text: str, rules: ConfigRules, size: int):
        """size: of the file, in bytes."""
        self._text, self._rules, self._size = text, rules, size
        self._space = _WIDE_SPACE if rules.bare_names else _SPACE_AND_ZEROS
        self._at = 0
        self._inside = False  # an object
        self._doubtful = ""
        self._depth = 0
        self._unsure = False  # whether a brace was in the place of a field's value, which may be one of an enum
        self._outermost: Any = None

    def read(self) -> Any:
        nothing = self._nothing()
        if nothing is not None:
            return nothing
        value = self._value()
        end = self._at
        self._inside = self._rules.fastjson2  # which does not take every comment there either
        self._skip()
        if self._rules.newer_fastjson2 and self._text[self._at :].strip() == ",":
            self._at = len(self._text)
        if self._at < len(self._text) and "\x1a" not in self._text[end : self._at + 1]:  # where the text ends for both
            raise self._fault("text after its end", known=not self._text.startswith("/", self._at))  # perhaps a comment
        if value is None:
            return Nothing(blank=False)
        if isinstance(value, list) and not value and self._rules.blank_is_nothing:
            if self._text.strip() != "[]":
                raise ConfigFault(OTHER_SHAPE, known=False)
            return Nothing(blank=False)
        if not isinstance(value, Pairs):
            raise ConfigFault(OTHER_SHAPE)
        value.doubt = self._doubtful
        return value

    def _nothing(self) -> Nothing | None:
        """Return Nothing for a text that holds no object and is no fault either; else None."""
        bare = self._text.strip(" \t\r\n\f\b")
        if bare in ("", "\x1a", "NULL"):
            if not self._rules.blank_is_nothing:
                raise ConfigFault("white space alone" if not bare else "no object")
            return Nothing(blank=bare != "NULL")
        if self._rules.bare_names and bare.startswith(("\x1a", "NULL")):
            raise ConfigFault("something after a text that holds nothing", known=False)
        if bare == "}" or bare in _EMPTY_TEXTS:
            return Nothing(blank=True, text=bare != "}", brace=bare == "}")
        return None

    def _fault(self, reason: str, known: bool = True) -> ConfigFault:
        start = len(self._text[: self._at].encode("utf-8", "replace"))
        return ConfigFault(reason, min(start, self._size - 1), known)

    def _ended(self) -> ConfigFault:
        return self._fault(
            "the text ends within an object", known=not (self._doubtful or self._unsure)
        )  # it may have been closed for the release

    def _doubt(self, reason: str) -> None:
        self._doubtful = self._doubtful or reason

    def _skip(self, strict: bool = False) -> None:
        """Skip white space and comments.

        strict: before a name and its colon; there control characters are no white space.
        """
        space = _SPACE if strict and self._rules.bare_names else self._space
        while True:
            if match := space.match(self._text, self._at):
                if self._inside:
                    self._look_at_space(match[0])
                self._at = match.end()
            elif self._text.startswith("/*", self._at) and (end := self._text.find("*/", self._at + 2)) >= 0:
                if self._inside and self._rules.fastjson2:
                    self._doubt("a comment")
                self._at = end + 2
            else:
                return

    def _next(self, strict: bool = False) -> str:
        self._skip(strict)
        return self._text[self._at : self._at + 1]

    def _look_at_space(self, space: str) -> None:
        """Raise a doubt about white space that only some places of a text may hold."""
        if self._rules.fastjson2 and space.startswith("//"):
            self._doubt("a comment")
        if not space.startswith("//") and _SPACE.fullmatch(space) is None:
            self._doubt("control characters between values")

    def _key_next(self) -> str:
        """Return the next character in the place of a key.

        A number there is read as a token, with the wider white space before it.
        """
        self._skip(strict=True)
        start = self._at
        character = self._next()
        if self._at != start and not _NUMBER.match(self._text, self._at):
            self._at = start
        return self._text[self._at : self._at + 1] if self._at == start else character

    def _value(self) -> Any:
        """Return the value here, with all that is in it."""
        open_values: list[tuple[Any, str]] = []  # each with the key under which its next value belongs
        while True:
            self._depth = len(open_values)
            value, opened = self._single()
            if opened:
                self._inside = True
                self._outermost = value if self._outermost is None else self._outermost
                if len(open_values) >= MAX_DEPTH:
                    raise ConfigFault(f"a nesting of more than {MAX_DEPTH} levels", known=False)
                open_values.append((value, ""))
            elif not open_values:
                return value
            else:
                self._put(open_values[-1], value)
                self._after_value(open_values[-1][0])
            while True:  # closed ones, one after another
                holder, _ = open_values[-1]
                key = self._next_place(holder)
                if key is not None:
                    open_values[-1] = (holder, key)
                    break
                open_values.pop()
                self._check_type(holder)
                if not open_values:
                    self._inside = False
                    return holder
                self._put(open_values[-1], holder)
                self._after_value(open_values[-1][0])

    @staticmethod
    def _put(place: tuple[Any, str], value: Any) -> None:
        holder, key = place
        if isinstance(holder, Pairs):
            holder[key] = value
            holder.written.append((key, value))
        else:
            holder.append(value)

    def _single(self) -> tuple[Any, bool]:
        """Return (a value, whether it was only opened)"""
        character = self._next()
        if character in ("{", "["):
            self._at += 1
            return (Pairs(), True) if character == "{" else ([], True)
        if character in ('"', "'"):
            return self._string(), False
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            behind = self._text[self._at : self._at + 1]
            if behind and (behind.isalnum() or behind in "_."):
                if behind in "eE":
                    raise self._fault("something after a number", known=False)
                if behind not in "tfn" or self._rules.fastjson2:
                    raise self._fault("something after a number", known=behind not in "tfn")
            return self._number(number), False
        word = _NAME.match(self._text, self._at)
        if word is not None and word[0] in WORDS:
            self._at = word.end()
            return WORDS[word[0]], False
        if word is not None and word[0] in _NULL_WORDS and self._rules.bare_names:
            self._at = word.end()
            return Word(word[0]), False
        if _MADE.match(self._text, self._at) or character == "-":
            raise self._fault("a value that is no JSON", known=False)
        if character == "," and self._rules.fastjson2:
            raise self._fault("no value", known=False)
        if character == "}" and self._rules.fastjson2:  # the end of a map without its brace
            self._at += 1
            self._unsure |= self._depth > 2
            return Word(character), False
        if character == "]" and self._outermost is not None:
            raise self._fault("a bracket in the place of a value", known=False)
        raise self._fault("no value") if character else self._ended()

    def _number(self, match: re.Match[str]) -> int | Decimal | Suffixed:
        whole = match[1] + (match[2] or "") + (match[3] or "")
        if not (match[2] or match[3]) and len(whole) > MAX_DIGITS:
            raise self._fault(TOO_MANY_DIGITS, known=False)
        number = decimal_of(whole) if match[2] or match[3] else int(whole)
        letter = match[4] or ("+" if match[0][0] == "+" else "")
        return Suffixed(number, letter) if letter else number

    def _next_place(self, holder: Any) -> str | None:
        """Return the key of the next value of an object, "" in a list. None at its end, which is read."""
        end = "}" if isinstance(holder, dict) else "]"
        character = self._key_next() if end == "}" else self._next()
        while character == ",":
            if self._rules.fastjson2:
                self._doubt_unless_empty(holder, "repeated commas")
            if isinstance(holder, Pairs):
                holder.commas = True
            self._at += 1
            character = self._key_next() if end == "}" else self._next()
        if character == end:
            self._at += 1
            return None
        if end == "]":
            if character == "}":
                raise self._fault("a brace in a list", known=False)
            return ""
        if character in ('"', "'"):
            start, key = self._at, self._string()
            if self._rules.bare_names and "\x1a" in self._text[start : self._at]:  # there fastjson 1 takes the text to end
                raise self._fault("a text that is not closed")
        else:
            bare = _NUMBER.match(self._text, self._at) or _NAME.match(self._text, self._at)
            if bare is None:
                if character and character in ("{[:" if self._rules.fastjson2 else "{["):
                    raise self._fault("an object as a key", known=False)
                if character == "]":
                    raise self._fault("a bracket in an object", known=False)
                raise self._fault("no key") if character else self._ended()
            if bare.re is _NAME and not self._rules.bare_names:
                if bare[0] in WORDS:
                    self._doubt("a word as a key")
                else:
                    holder.unquoted = holder.unquoted or self._fault("a name without quotes")
            self._at = bare.end()
            key = bare[0].rstrip("LSBFD").lstrip("+") if bare.re is _NUMBER else bare[0]
            if bare.re is _NUMBER:
                self._number(bare)  # raises where it is out of all bounds
            holder.bare[key] = "number" if bare.re is _NUMBER else "word"
            holder.numbered |= bare.re is _NUMBER
        end_of_key = self._at
        number = holder.bare.get(key) == "number"
        if number and self._rules.bare_names and self._text[self._at : self._at + 1].isspace():
            self._doubt("white space between a number and its colon")
        if self._next(strict=not number) != ":":
            may_be_taken = (
                key in WORDS or number and (self._doubtful == _NO_COMMA or self._text[self._at : self._at + 1] in (",", "{"))
            )
            raise self._fault("a key without a colon", known=not (self._rules.fastjson2 and may_be_taken))
        holder.late_colon |= "/" in self._text[end_of_key : self._at]
        self._at += 1
        return key

    def _after_value(self, holder: Any) -> None:
        character = self._next()
        if character == ",":
            self._at += 1
        elif character == "}" or character == "]" and not (isinstance(holder, Pairs) and self._rules.bare_names):
            return
        elif not character:
            raise self._ended()
        elif ord(character) > 127 or character == ":" and self._rules.fastjson2:  # which reads a map without its brace
            raise self._fault(_NO_COMMA, known=False)
        elif self._rules.fastjson2:
            self._doubt_unless_empty(holder, _NO_COMMA)
        elif isinstance(holder, Pairs) and not (holder.numbered and _INTEGER_KEY.match(self._text, self._at)):
            self._doubt(_NO_COMMA)
            self._pass_over(holder.written[-1][1])
            holder.swallowed = True

    def _doubt_unless_empty(self, holder: Any, reason: str) -> None:
        """After an empty object in an inner one fastjson2 takes neither; after an empty map it may."""
        last = (
            holder.written[-1] if isinstance(holder, Pairs) and holder is not self._outermost and holder.written else ("", None)
        )
        if last[1] == {} and last[0] != "attributes":
            raise self._fault(reason)
        self._doubt(reason)

    def _pass_over(self, before: Any) -> None:
        """Pass over one token that follows a value without a comma. before: that value."""
        token = _PASSED_OVER.match(self._text, self._at)
        if token is not None:
            self._at = token.end()
            return
        try:
            value, _ = self._single()
        except ConfigFault as fault:
            fault.known = fault.known and not isinstance(before, dict | list)  # then it may pass over what is no token, too
            raise
        if isinstance(value, str) and self._next() == ":":
            raise self._fault(_NO_COMMA, known=isinstance(before, dict))

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
        """Judge a class named in the text: fastjson 1 refuses what it does not allow, fastjson2 reads on."""
        if isinstance(holder, dict) and isinstance(holder.get("$ref"), str):
            self._doubt("$ref refers to another part")
        if self._rules.ignores_types or not isinstance(holder, dict) or "@type" not in holder:
            return
        if not isinstance(holder["@type"], str):
            raise ConfigFault("@type names no class", known=False)
        if not (self._rules.hash_map_type and holder["@type"] == "java.util.HashMap"):
            inside = holder is not self._outermost and holder["@type"] == "java.util.HashMap"  # some places allow that one
            raise self._fault("@type names a class", known=not inside)
        del holder["@type"]
        assert isinstance(holder, Pairs)
        holder.written = [pair for pair in holder.written if pair[0] != "@type"]
