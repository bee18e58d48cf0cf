"""A value of a text as the release's parser takes it for a field of some kind. Many values of another kind are taken too.

Source: com.alibaba.fastjson.util.TypeUtils (castToInt, castToLong, castToBoolean, intValue), IntegerCodec, LongCodec,
EnumDeserializer, MapDeserializer, JavaBeanDeserializer; com.alibaba.fastjson2.JSONReader (readInt32Value, readInt64Value,
readBoolValue), ObjectReaderImplEnum, ObjectReaderImplMapTyped (config.md 3).
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from store_io.base.java.java_compat import parse_number
from store_io.broker.settings.config_rules import ConfigRules
from store_io.broker.texts.fastjson import (
    MAX_DIGITS,
    OTHER_SHAPE,
    TOO_MANY_DIGITS,
    ConfigFault,
    Pairs,
    Suffixed,
    Word,
    decimal_of,
)

# Kinds of a single value. INT, LONG: of a field; INT_ENTRY, ENTRY: an int and a long that are an entry of a map, and may be null.
# ATOMIC: an AtomicLong.  TEXT_SET: a set of texts.
INT, LONG, INT_ENTRY, ENTRY, ATOMIC = "int", "long", "int entry", "entry", "atomic"
TEXT_SET = "set of texts"
BOOLEAN, TEXT, CHOICE, ANY = "boolean", "text", "choice", "any"
_INTS = (INT, INT_ENTRY)


class _Left:
    """The field keeps its default."""


LEFT = _Left()


class NotExact(ValueError):
    """Raised for a text read as a broker writes it, if quotes of a key decide what a release takes."""


_DECIMAL_TEXT = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_ZEROS_BEHIND = re.compile(r"\.0*$")
_NOTHING_TEXTS = ("", "null")
MAX_INT_DIGITS = 10  # of a number of more digits nobody sees at once whether it is one of 32 bits
_MAX_SCALE = 100  # beyond, fastjson 1 takes a decimal only if it is an integer in range


@dataclass(frozen=True)
class Bean:
    """An object with these fields; others are skipped."""

    fields: Mapping[str, Any]


@dataclass(frozen=True)
class MapOf:
    """The type of a map.

    keys: TEXT, INT or LONG.
    nulls: whether a value may be null.
    plain: a map of texts, which has keys in quotes alone, and may be the one object of a list.
    added: it has no setter, so that the entries read are added to those that its getter gives.
    """

    values: Any
    keys: str = TEXT
    nulls: bool = False
    plain: bool = False
    added: bool = False


@dataclass(frozen=True)
class ListOf:
    values: Any


@dataclass(frozen=True)
class Seldom:
    """A field that a release takes in a broker's own form; what it makes of another form is not known."""

    kind: Any


def taken(value: Any, kind: Any, rules: ConfigRules) -> Any:
    """Return the value as the parser takes it: dicts of beans and maps, None for null, or `LEFT`. Raises ConfigFault."""
    if isinstance(value, Pairs) and isinstance(value.get("$ref"), str):
        raise ConfigFault("$ref refers to another part", known=False)
    if isinstance(value, Word) and rules.fastjson2 and not isinstance(kind, MapOf):
        raise ConfigFault(OTHER_SHAPE)
    if isinstance(kind, Bean):
        return _bean(value, kind, rules)
    if isinstance(kind, MapOf):
        return _map(value, kind, rules)
    if isinstance(kind, ListOf):
        return _list(value, kind, rules)
    if isinstance(kind, Seldom):
        return _seldom(value, kind, rules)
    if kind is ANY:
        return value
    if kind is TEXT_SET:
        return _text_set(value, rules)
    if kind is TEXT:
        return None if value is None or isinstance(value, Word) else value if isinstance(value, str) else _text_of(value)
    if isinstance(value, Word) and (kind is not CHOICE or value.text == "NULL"):
        return LEFT if kind in (INT, BOOLEAN) else None
    return (_second if rules.fastjson2 else _first)(value, kind, rules)


def is_written(value: Any, kind: Any) -> bool:
    """Say whether a broker writes such a value for a field of this kind; null is left out there."""
    if isinstance(kind, Seldom):
        return is_written(value, kind.kind)
    if isinstance(kind, Bean):
        return isinstance(value, dict) and all(
            name in kind.fields and is_written(value[name], kind.fields[name]) for name in value
        )
    if isinstance(kind, MapOf):
        numbers = kind.keys is not TEXT
        return isinstance(value, dict) and all(
            is_written(held, kind.values) and (not numbers or key.isdecimal() and key.isascii() and len(key) < MAX_INT_DIGITS)
            for key, held in value.items()
        )
    if isinstance(kind, ListOf):
        return type(value) is list and all(is_written(one, kind.values) for one in value)
    if kind is TEXT_SET:
        return type(value) is list and all(type(one) is str for one in value)
    if kind is CHOICE:
        return type(value) is str and value.isidentifier()
    if kind is TEXT:
        return type(value) is str
    if kind is BOOLEAN:
        return type(value) is bool
    return type(value) is int and _fits(value, 32 if kind in _INTS else 64)


def _check_names(value: Any) -> None:
    """Raise ConfigFault if an object in it has a name without quotes, which fastjson2 takes in some of these places."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, Pairs):
            if one.unquoted is not None:
                raise ConfigFault(str(one.unquoted), one.unquoted.start, known=False)
            todo += (held for _, held in one.written)
        elif isinstance(one, list):
            todo += one


def _text_of(value: Any) -> str:
    _check_names(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value.number if isinstance(value, Suffixed) else value)
    except RecursionError as error:
        raise ConfigFault("a text that is a deeply nested object", known=False) from error


# ---- objects -------------------------------------------------------------------------------------------------------


def _bean(value: Any, kind: Bean, rules: ConfigRules) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        _check_nothing(value, rules, lists=not rules.fastjson2)
        return None
    found: dict[str, Any] = {}
    for name, held in fields_of(value, kind, rules):
        made = taken(held, kind.fields[name], rules)
        if made is not LEFT:
            found[name] = made
    return found


def fields_of(read: Mapping[str, Any], kind: Bean, rules: ConfigRules) -> Iterator[tuple[str, Any]]:
    """Yield (field, value as it is written) of each that the release takes, in the order of the text. Raises ConfigFault."""
    pairs: Iterable[tuple[str, Any]] = read.items()
    if isinstance(read, Pairs):
        pairs = read.written
        if read.unquoted is not None:
            raise read.unquoted
        if read.numbered or read.late_colon:
            raise ConfigFault("a number as the name of a field" if not read.late_colon else "a comment before a colon")
        if not isinstance(read.get("$ref", ""), str) and not rules.fastjson2:
            raise ConfigFault("$ref refers to nothing", known=False)
    seen = set()
    for key, value in pairs:
        name = field_of(key, kind, rules)
        if not name:
            _pass_over(key, value, isinstance(read, Pairs), rules)
        elif name in seen and not rules.fastjson2:  # some of its readers set a field once
            raise ConfigFault("a repeated field", known=False)
        else:
            seen.add(name)
            yield name, value


def _pass_over(key: str, value: Any, exact: bool, rules: ConfigRules) -> None:
    """Read the value of an unknown field as JSON alone. exact: the text is known to the sign. Raises ConfigFault."""
    if not exact and is_integer(key):
        raise NotExact(f"{key}: with quotes or without")
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, Word) and rules.fastjson2:
            raise ConfigFault(OTHER_SHAPE)
        if isinstance(one, Pairs):
            if one.unquoted is not None:
                raise one.unquoted
            bare = one.bare if rules.fastjson2 else {}
            if one.swallowed or bare and not (rules.skips_numbers_as_names and {*bare.values()} == {"number"}):
                raise ConfigFault("no comma between values" if one.swallowed else "a key without quotes")
            todo += (held for _, held in one.written)
        elif isinstance(one, dict):
            if rules.fastjson2 and not rules.skips_numbers_as_names and any(map(is_integer, one)):
                raise NotExact("an integer as a name: with quotes or without")
            todo += one.values()
        elif isinstance(one, list):
            todo += one


def is_integer(key: str) -> bool:
    """Say whether the key is written as an integer."""
    return key.lstrip("-").isdecimal()


def field_of(key: str, kind: Bean, rules: ConfigRules) -> str:
    """Return the name of the field that a key means; "" without one. A similar name counts if the parser takes one."""
    if key in kind.fields:
        return key
    if not rules.names_by_likeness or len(key) > 100:
        return ""
    like = key.lower().replace("_", "").replace("-", "")
    for name, held in kind.fields.items():
        if name.lower() == like or held is BOOLEAN and key[:2] == "is" and name.lower() == like[2:]:
            return name
    return ""


def _check_nothing(value: Any, rules: ConfigRules, lists: bool) -> None:
    """Raise ConfigFault unless the parser takes this for no object."""
    nothing = value is None or value == "" and isinstance(value, str) or isinstance(value, Word) and value.text == "NULL"
    if nothing or lists and value == [] or rules.newer_fastjson2 and value == "null":
        return
    raise ConfigFault(OTHER_SHAPE)


def _map(value: Any, kind: MapOf, rules: ConfigRules) -> dict[Any, Any] | None:
    if isinstance(value, Word) and rules.fastjson2:
        return {}
    if kind.plain and isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]
    if not isinstance(value, dict):
        if isinstance(value, list) and len(value) == 1 and not rules.fastjson2:
            raise ConfigFault(OTHER_SHAPE, known=False)  # some maps are taken so
        if (value == "" or kind.added) and not rules.fastjson2:
            raise ConfigFault(OTHER_SHAPE)
        _check_nothing(value, rules, lists=False)
        return None
    if isinstance(value, Pairs) and value.unquoted is not None:
        raise value.unquoted
    if not rules.fastjson2 and isinstance(value, Pairs) and (value.swallowed or value.commas) and kind.keys is not TEXT:
        raise ConfigFault("no comma between values" if value.swallowed else "repeated commas")
    found = {}
    for key, held in value.written if isinstance(value, Pairs) else value.items():
        if kind.plain and isinstance(held, Decimal | Suffixed | dict | list):
            raise ConfigFault("an attribute that is no text", known=False)
        made = taken(held, kind.values, rules)
        if made is LEFT:
            made = None
        if made is None and not kind.nulls:
            raise ConfigFault("null as an entry")
        found[_key(key, value, kind, rules)] = made
    return found


def _list(value: Any, kind: ListOf, rules: ConfigRules) -> list[Any] | None:
    if isinstance(value, list):
        if rules.fastjson2 and kind.values is LONG and any(isinstance(one, dict) for one in value):
            raise ConfigFault("an object in a list of numbers", known=False)
        return [None if one is None else taken(one, kind.values, rules) for one in value]
    if value is None or isinstance(value, Word):
        return None
    raise ConfigFault(OTHER_SHAPE, known=not rules.fastjson2)


def _text_set(value: Any, rules: ConfigRules) -> Any:
    """Take a set of texts; a value of any kind is an entry of it."""
    if value is None or isinstance(value, list) or rules.fastjson2 and isinstance(value, str | dict):
        _check_names(value)
        return value
    raise ConfigFault(OTHER_SHAPE, known=not isinstance(value, Word))


def _seldom(value: Any, kind: Seldom, rules: ConfigRules) -> Any:
    if value is not None and not is_written(value, kind.kind):
        raise ConfigFault("a value that is seldom written, in another form", known=False)
    return value


def _key(key: str, holder: Mapping[str, Any], kind: MapOf, rules: ConfigRules) -> Any:
    bare = holder.bare.get(key) if isinstance(holder, Pairs) else None
    if kind.keys is not TEXT:
        if bare == "word" and key not in ("true", "false"):
            raise ConfigFault("a word as a number")
        if bare is None and parse_number(key, 64) is None:
            if len(key) > MAX_DIGITS and is_integer(key):
                raise ConfigFault(TOO_MANY_DIGITS, known=False)
            raise ConfigFault(f"{reprlib.repr(key)} is no integer", known=not (rules.fastjson2 and key[:1].isdecimal()))
        written: Any = {"true": True, "false": False}.get(key, key) if bare == "word" else _number_of(key) if bare else key
        return taken(written, kind.keys, rules)
    if bare == "number" and (kind.plain or not rules.fastjson2):
        raise ConfigFault("a number as a name")
    if bare == "number" and not (is_integer(key) and str(int(key)) == key):
        raise ConfigFault("a fraction or leading zeros in a name", known=False)
    if bare == "word" and key == "null":
        raise ConfigFault("null as a name", known=not kind.added)
    return key


def _number_of(text: str) -> int | Decimal:
    """Return the number of a text. Raises ConfigFault if it has too many digits."""
    if set(text) & set(".eE"):
        return decimal_of(text)
    if len(text) > MAX_DIGITS:
        raise ConfigFault(TOO_MANY_DIGITS, known=False)
    return int(text)


# ---- fastjson 1 ----------------------------------------------------------------------------------------------------


def _first(value: Any, kind: str, rules: ConfigRules) -> Any:
    if kind is CHOICE:
        return _first_choice(value)
    if value is None:
        return LEFT if kind in (INT, BOOLEAN) else None
    number = value.number if isinstance(value, Suffixed) else value
    if kind is BOOLEAN:
        return _first_boolean(number)
    bits = 32 if kind in _INTS else 64
    if isinstance(number, bool):
        if kind in _INTS or rules.booleans_are_longs:
            return int(number)
    elif isinstance(number, int):
        if kind is LONG and not -(1 << 63) <= number < 1 << 63:
            low = _low(abs(number), 64)
            if low < 0:  # it adds digit after digit, and looks at the sign alone
                raise _no_integer(value)
            return low if number > 0 else -low
        if _fits(number, bits):
            return number
    elif isinstance(number, Decimal):
        return _first_decimal(number, bits)
    elif isinstance(number, str):
        if number in ("", "null", "NULL"):
            return LEFT if kind is INT else None
        plain = number.replace(",", "")
        parsed = parse_number(_ZEROS_BEHIND.sub("", plain) if kind in _INTS else plain, bits)
        if parsed is not None:
            return parsed
    raise _no_integer(value)


def _first_decimal(number: Decimal, bits: int) -> int:
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and abs(exponent) <= _MAX_SCALE:
        return _low(int(number), bits)
    if not number:
        raise ConfigFault(f"{number} is 0 or no integer", known=False)
    if number.adjusted() < 20 and number == number.to_integral_value() and _fits(int(number), bits):
        return int(number)
    raise _no_integer(number)


def _first_boolean(number: Any) -> Any:
    if isinstance(number, bool):
        return number
    if isinstance(number, int) and _fits(number, 32):
        return number == 1
    if isinstance(number, Decimal):
        return _first_decimal(number, 32) == 1
    if isinstance(number, str):
        if number in ("", "null", "NULL"):
            return LEFT
        if number.lower() == "true" or number in ("1", "Y", "T"):
            return True
        if number.lower() == "false" or number in ("0", "N", "F"):
            return False
    raise ConfigFault(f"{reprlib.repr(number)} is neither true nor false")


def _first_choice(value: Any) -> Any:
    number = value.number if isinstance(value, Suffixed) and value.suffix in "LBS+" else value
    if value is None or isinstance(value, str):
        return None  # an unknown name as well
    if type(number) is int and 0 <= number < 2:
        return number
    raise ConfigFault(f"{reprlib.repr(value)} is no constant")


# ---- fastjson2 -----------------------------------------------------------------------------------------------------


def _second(value: Any, kind: str, rules: ConfigRules) -> Any:
    suffixed = isinstance(value, Suffixed)
    if suffixed and isinstance(value.number, Decimal) and not rules.newer_fastjson2 and kind is not BOOLEAN:
        raise _no_integer(value)
    number = value.number if suffixed else value
    if kind is BOOLEAN:
        if suffixed and value.suffix == "+":
            raise _no_integer(value)
        return _second_boolean(number, suffixed)
    if kind is CHOICE:
        return _second_choice(number)
    bits = 32 if kind in _INTS or kind is ATOMIC and not rules.newer_fastjson2 else 64
    if number is None:
        return None if kind in (ATOMIC, ENTRY, INT_ENTRY) else 0
    if kind is INT_ENTRY and (isinstance(number, list | dict) or number in _NOTHING_TEXTS):
        raise ConfigFault(f"{reprlib.repr(number)} is no integer", known=False)
    if isinstance(number, list) and len(number) == 1 and not isinstance(number[0], list | dict | str | None.__class__):
        if kind is not ENTRY or rules.newer_fastjson2:
            return _second(number[0], kind, rules)
    if isinstance(number, dict) and bits == 32:
        _check_names(number)
        return 0
    return _second_number(number, kind, bits, rules)


def _second_number(number: Any, kind: str, bits: int, rules: ConfigRules) -> Any:
    if isinstance(number, bool):
        return int(number)
    if isinstance(number, str):
        if number in _NOTHING_TEXTS:
            return None if kind is ENTRY else 0
        if number in ("true", "false"):
            return int(number == "true")
        plain = number.replace(",", "") if rules.newer_fastjson2 else number
        if not _DECIMAL_TEXT.fullmatch(plain) or len(plain) > MAX_DIGITS:
            raise _no_integer(number)
        number = _number_of(plain)
    if isinstance(number, int):
        if kind is ENTRY and rules.long_wraps:
            return _low(number, 64)
        if _fits(number, bits):
            return number
        if kind is INT_ENTRY:
            raise ConfigFault(f"{number} is beyond 32 bits", known=False)
    elif isinstance(number, Decimal):
        if not number:
            return 0
        if number.adjusted() > 30:
            return (1 << bits - 1) - 1 if number > 0 else -(1 << bits - 1)
        return _low(int(number), bits)
    raise _no_integer(number)


def _second_boolean(number: Any, suffixed: bool) -> bool:
    if isinstance(number, bool):
        return number
    if isinstance(number, int | Decimal):
        return not suffixed and isinstance(number, int) and abs(number) == 1
    if number is None or number in ("", "null", "NULL", "0", "N") or isinstance(number, str) and number.lower() == "false":
        return False
    if isinstance(number, str) and (number.lower() == "true" or number in ("1", "Y")):
        return True
    raise ConfigFault(f"{reprlib.repr(number)} is neither true nor false")


def _second_choice(number: Any) -> Any:
    if isinstance(number, Decimal) and number.adjusted() < 20:
        number = int(number)
    if isinstance(number, str):
        if number == "NULL" or number.isdecimal() and number.isascii() and parse_number(number, 32) is None:
            raise ConfigFault(f"{reprlib.repr(number)} is no constant", known=False)
        return None
    if number is None or type(number) is int and 0 <= number < 2:
        return number
    raise ConfigFault(f"{reprlib.repr(number)} is no constant")


# ---- numbers -------------------------------------------------------------------------------------------------------


def _fits(number: int, bits: int) -> bool:
    return -(1 << bits - 1) <= number < 1 << bits - 1


def _low(number: int, bits: int) -> int:
    """Narrow a number as Java does."""
    half = 1 << bits - 1
    return (number + half) % (1 << bits) - half


def _no_integer(value: Any) -> ConfigFault:
    return ConfigFault(f"{reprlib.repr(value)} is no integer")
