"""Makes and changes handmade outcomes by the names of their fields, whichever value of the outcome holds these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from schemas.outcome import Assumed, Contents, CopyWhole, Cost, Covered, Differences, Outcome, OutcomeRows, PlanParts

_PARTS = (Assumed, Contents, CopyWhole, Cost, Covered, Differences, OutcomeRows, PlanParts)
_PART_OF: Mapping[str, str] = {
    field.name: part.name for part in fields(Outcome) if type(part.default) in _PARTS for field in fields(part.default)
}


def handmade(name: str, location_text: str, release: str, exit_code: int, **facts: Any) -> Outcome:
    return varied(Outcome(name, location_text, release, exit_code), **facts)


def varied(outcome: Outcome, **facts: Any) -> Outcome:
    """A copy of the outcome with these fields."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in facts.items():
        parts.setdefault(_PART_OF.get(name, ""), {})[name] = value
    own = parts.pop("", {})
    return replace(outcome, **own, **{part: replace(getattr(outcome, part), **known) for part, known in parts.items()})


def alter(outcome: Outcome, **facts: Any) -> None:
    """Give a handmade outcome, which is frozen, these fields."""
    changed = varied(outcome, **facts)
    for field in fields(Outcome):
        object.__setattr__(outcome, field.name, getattr(changed, field.name))
