"""JSON texts held against schemas/json, without room for keys that these do not name."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tests import ROOT

SCHEMAS = ROOT / "schemas" / "json"


def closed(schema: Any) -> Any:
    """The schema with no room for keys that it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(item) for key, item in schema.items()}
    if "properties" in found and "required" in found:
        found.setdefault("additionalProperties", False)
    return found


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(closed(schema))


def faults(name: str, text: str) -> list[str]:
    return [f"{error.json_path}: {error.message}"[:300] for error in validator(name).iter_errors(json.loads(text))]
