"""Values become plain data: objects with their fields in order, lists, and what is not known left out if it says so."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.repair import IF_KNOWN
from store_io.base.documents import document_of


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
