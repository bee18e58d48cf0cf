"""Sets of ranges against sets of integers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from store_io.base.ranges import intersect, subtract, total, union

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def members(ranges: list[tuple[int, int]]) -> set[int]:
    return {n for start, end in ranges for n in range(start, end)}


@given(pairs)
def test_union_is_sorted_disjoint_and_keeps_every_member(ranges: list[tuple[int, int]]) -> None:
    merged = union(ranges)
    assert members(merged) == members(ranges)
    assert all(a[1] < b[0] for a, b in pairwise(merged))
    assert total(merged) == len(members(ranges))


@given(pairs, pairs)
def test_subtract_and_intersect_are_those_of_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = union(left), union(right)
    assert members(subtract(a, b)) == members(a) - members(b)
    assert members(intersect(a, b)) == members(a) & members(b)
