"""Tasks in parts, one after the other: where the first ones may be enough, the others need not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

GROWTH, MOST_TIMES = 2, 16  # each part is so many times as large as the one before, up to so many times the first

_T = TypeVar("_T")


def waves(tasks: Sequence[_T], at_once: int, most: int | None = None) -> Iterator[Sequence[_T]]:
    """Yield all tasks, in order, in parts that grow while nobody has enough. The first part has as many as can run at once.

    most: the tasks of one part; None: no other bound than that of growth.
    """
    bound = at_once * MOST_TIMES if most is None else min(at_once * MOST_TIMES, most)
    size, at = min(at_once, bound), 0
    while at < len(tasks):
        yield tasks[at : at + size]
        at, size = at + size, min(size * GROWTH, bound)
