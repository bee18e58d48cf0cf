"""Values become plain data: objects with their fields in order, lists, and what is not known left out if it says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from typing import Any, NamedTuple

import pytest

from schemas.repair import IF_KNOWN
from store_io.base.documents import document_of, value_of, whole_form


class Pair(NamedTuple):
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    pairs: tuple[Pair, ...] = ()


@dataclass(frozen=True, slots=True)
class Outer:
    inner: Inner | None
    counts: dict[str, tuple[int, ...]]
    digest: str = field(default="", metadata=IF_KNOWN)
    more: bool = False


def test_fields_keep_their_order_and_tuples_become_lists() -> None:
    found = document_of(Outer(Inner("a", (Pair(1, 2),)), {"x": (3, 4)}, "d"))
    assert (
        json.dumps(found) == '{"inner": {"name": "a", "pairs": [[1, 2]]}, "counts": {"x": [3, 4]}, "digest": "d", "more": false}'
    )


def test_only_a_field_that_says_so_is_left_out_with_its_default() -> None:
    assert document_of(Outer(None, {})) == {"inner": None, "counts": {}, "more": False}


class Colour(StrEnum):
    RED = auto()


@dataclass(frozen=True, slots=True)
class Whole:
    pairs: tuple[Pair, ...]
    colour: Colour
    by_key: Mapping[tuple[str, int], Inner | None]
    share: float | None = None
    marks: frozenset[str] = frozenset()
    listed: Sequence[int | str] = ()
    two: tuple[int, str] = (2, "y")
    row: dict[str, Any] = field(default_factory=dict)
    digest: str = field(default="", metadata=IF_KNOWN)


WHOLE = Whole(
    (Pair(1, 2),), Colour.RED, {("a", 1): Inner("x"), ("b", 2): None}, 1.5, frozenset("ab"), [1, "x"], (2, "y"), {"z": [1]}
)


def test_a_value_comes_back_from_its_whole_form() -> None:
    for value in (WHOLE, replace(WHOLE, by_key={}, share=None, listed=[], row={})):
        assert value_of(Whole, json.loads(json.dumps(value, default=whole_form))) == value


@pytest.mark.parametrize(
    "change",
    [
        {"pairs": [[1]]},
        {"pairs": [[1, 2, 3]]},
        {"pairs": [["1", 2]]},
        {"pairs": {}},
        {"colour": "blue"},
        {"colour": []},
        {"by_key": [[["a", 1], {"name": "x"}]]},
        {"by_key": [[["a", 1]]]},
        {"share": "1"},
        {"share": True},
        {"marks": [1]},
        {"listed": [None]},
        {"two": [1]},
        {"row": []},
        {"digest": None},
        {"other": 1},
    ],
)
def test_a_form_of_another_type_is_no_value(change: dict[str, Any]) -> None:
    form = json.loads(json.dumps(WHOLE, default=whole_form))
    with pytest.raises(ValueError):
        value_of(Whole, form | change)
    with pytest.raises(ValueError):
        value_of(Whole, {name: held for name, held in form.items() if name != "digest"})


def test_what_has_no_form_is_not_written() -> None:
    with pytest.raises(TypeError):
        json.dumps(replace(WHOLE, row={"x": object()}), default=whole_form)
