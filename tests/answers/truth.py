"""Reads what tests/answers holds to be right: a value for each TOML, checked for its form."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ANSWERS = ("not_known", "copy_again", "other_copy", "change", "repair", "start_mends", "empty", "start")  # the first that holds
ASKED = ("audit", "donor", "group")
# What a step is -> its name in result.json. In the order in which they stand: what costs nothing comes first.
STEPS = {
    "stop": "stop",
    "copy_again": "copy",
    "other_copy": "other",
    "change": "change",
    "repair": "repair",
    "before_start": "condition",
    "start": "start",
    "after_start": "check",
    "send_again": "resend",
}
NAMED = ("path", "file", "setting", "value", "option", "number", "of", "gives_up", "if")


@dataclass(frozen=True)
class Step:
    """One thing to do. named: what has to be named with it, by the keys of `NAMED`."""

    step: str
    named: dict[str, Any]


@dataclass(frozen=True)
class Headline:
    """The largest fact. number: messages, unless `of` says of what; 0 where the fact has none."""

    fact: str
    number: int
    of: str
    file: str
    setting: str


@dataclass(frozen=True)
class Copy:
    """One copy of a store. A copy that is only there beside others, as a donor is, has no answer."""

    name: str
    broker_conf: str
    answer: str | None
    codes: tuple[int, ...]
    headline: Headline | None
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Truth:
    """What is right to say of a store or a group of copies."""

    name: str
    about: str
    why: str
    release: str
    asked: str
    start_at: str | None
    copies: tuple[Copy, ...]

    @property
    def answered(self) -> tuple[Copy, ...]:
        return tuple(copy for copy in self.copies if copy.answer)


def names() -> list[str]:
    """List the names of all stores."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def truth_of(name: str) -> Truth:
    """Read NAME.toml. A key that is not known, or one too few, raises."""
    with open(FOLDER / f"{name}.toml", "rb") as file:
        held = tomllib.load(file)
    copies = tuple(_copy(row) for row in held.pop("copies"))
    return Truth(name, start_at=held.pop("start_at", None), copies=copies, **held)


def _copy(row: dict[str, Any]) -> Copy:
    headline = row.pop("headline", None)
    steps = tuple(Step(step.pop("step"), step) for step in row.pop("steps", []))
    return Copy(
        answer=row.pop("answer", None),
        codes=tuple(row.pop("code", ())),
        headline=None if headline is None else Headline(**{"number": 0, "of": "messages", "file": "", "setting": ""} | headline),
        steps=steps,
        **row,
    )
