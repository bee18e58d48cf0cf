"""Writes values as JSON documents have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

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
