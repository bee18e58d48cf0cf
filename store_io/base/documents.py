"""Writes values as JSON documents have them, and reads values back by the types of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from schemas.repair import IF_KNOWN


def document_of(value: Any) -> Any:
    """Return a value as plain data: a dataclass as an object with its fields in their order.

    A field that a document has `IF_KNOWN` is left out with its default.
    """
    if is_dataclass(value) and not isinstance(value, type):
        known = ((each, getattr(value, each.name)) for each in fields(value))
        return {each.name: document_of(held) for each, held in known if not (each.metadata == IF_KNOWN and held == each.default)}
    if isinstance(value, Mapping):
        return {key: document_of(held) for key, held in value.items()}
    return [document_of(each) for each in value] if isinstance(value, list | tuple) else value


def whole_form(value: Any) -> Any:
    """Return the form that `value_of` reads, of a value that JSON has no form for: the `default` of `json.dumps`.

    All fields are written, and a mapping as its pairs if a key is no text. Raises TypeError.
    """
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
        return {name: _pairs(each) if isinstance(each, Mapping) else each for name, each in held.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _pairs(value: Mapping[Any, Any]) -> Any:
    return dict(value) if all(isinstance(key, str) for key in value) else [*value.items()]


def value_of(kind: Any, form: Any) -> Any:
    """Return the value of a type whose form this is, as `whole_form` has it.

    Anyone may have written the form: only values of this type and of the types of its fields are made. Those are plain values,
    enumerations, named tuples, sequences, mappings, and dataclasses of them. Raises ValueError if the form is of another type.
    """
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if kind is Any:
        return form
    if origin in (UnionType, Union):
        return _first_of(inner, form)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _by_fields(kind, form)
    if issubclass(origin, Enum):
        return origin(_a(str, form))
    if issubclass(origin, Mapping):
        pairs = _a(dict, form).items() if inner[0] is str or not form else [_a(list, pair) for pair in _a(list, form)]
        return {value_of(inner[0], key): value_of(inner[1], held) for key, held in pairs}
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(value_of(each, held) for each, held in zip(inner, _a(list, form), strict=True))
    if inner:
        make = origin if origin in (tuple, frozenset) else list
        return make(value_of(inner[0], each) for each in _a(list, form))
    return float(form) if kind is float and type(form) is int else _a(kind, form)


def _a(kind: type, form: Any) -> Any:
    if type(form) is not kind:
        raise ValueError(f"it has a {type(form).__name__} in place of a {kind.__name__}")
    return form


def _first_of(kinds: Sequence[Any], form: Any) -> Any:
    for kind in kinds[:-1]:
        try:
            return value_of(kind, form)
        except ValueError:
            continue
    return value_of(kinds[-1], form)


def _by_fields(kind: Any, form: Any) -> Any:
    types = _types(kind)
    held = _a(dict, form) if is_dataclass(kind) else dict(zip(types, _a(list, form), strict=True))
    if held.keys() != types.keys():
        raise ValueError(f"it has other fields than a {kind.__name__}")
    return kind(**{name: value_of(each, held[name]) for name, each in types.items()})


@cache
def _types(kind: Any) -> dict[str, Any]:
    """Return the type of each field, by its name."""
    hints = get_type_hints(kind)
    return {name: hints[name] for name in ([each.name for each in fields(kind)] if is_dataclass(kind) else kind._fields)}
