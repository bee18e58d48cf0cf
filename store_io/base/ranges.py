"""Sets of half-open integer ranges: sorted, disjoint lists of (start, end)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

Ranges = list[tuple[int, int]]


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges sorted, with overlapping and touching ones merged; empty ones dropped."""
    merged: Ranges = []
    for start, end in sorted([r for r in ranges if r[0] < r[1]]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def subtract(ranges: Ranges, holes: Ranges) -> Ranges:
    """Return the parts of `ranges` that lie in none of `holes`; both are sorted and disjoint."""
    left: Ranges = []
    place = 0
    for start, end in ranges:
        while place < len(holes) and holes[place][1] <= start:
            place += 1
        at, i = start, place
        while i < len(holes) and holes[i][0] < end:
            if holes[i][0] > at:
                left.append((at, holes[i][0]))
            at = max(at, holes[i][1])
            i += 1
        if at < end:
            left.append((at, end))
    return left


def intersect(ranges: Ranges, others: Ranges) -> Ranges:
    """Return the parts that lie in both; both are sorted and disjoint."""
    found: Ranges = []
    i = j = 0
    while i < len(ranges) and j < len(others):
        start, end = max(ranges[i][0], others[j][0]), min(ranges[i][1], others[j][1])
        if start < end:
            found.append((start, end))
        if ranges[i][1] < others[j][1]:
            i += 1
        else:
            j += 1
    return found


def total(ranges: Ranges) -> int:
    """Return how many integers they hold."""
    return sum(end - start for start, end in ranges)


def inside(values: np.ndarray, bounds: tuple[int | None, int | None]) -> np.ndarray:
    """Say which values lie in the half-open range; None: no bound on that side."""
    low, high = bounds
    mask = np.ones(len(values), bool)
    if low is not None:
        mask &= values >= low
    if high is not None:
        mask &= values < high
    return mask


def least_offset(one: int, other: int) -> int:
    """Return the lesser of two physical offsets; -1: none."""
    return min(one, other) if one >= 0 <= other else max(one, other)
