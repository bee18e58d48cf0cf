"""The axis of a whole log: round offsets where they are, never more than a phone has room for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.report.pages.segment_map import Stretch, Tick, axis_ticks

GB = 10**9


def shown(*stretches: tuple[int, int, int]) -> list[str]:
    return [f"{tick.label} at {tick.left} {tick.anchor}" for tick in axis_ticks([Stretch(*stretch) for stretch in stretches])]


def test_round_offsets_are_where_they_lie() -> None:
    assert shown((0, 800_000, 800_000)) == [
        "0 at 0% start", "200 KB at 25% middle", "400 KB at 50% middle", "600 KB at 75% middle", "800 KB at 100% end",
    ]  # fmt: skip
    assert shown((5_368_709_120_000, 5_372_709_120_000, 4 * GB))== [
        "5,369 GB at 7.272% start", " at 32.27% middle", "5,371 GB at 57.27% middle", "5,372 GB at 82.27% middle",
    ]  # fmt: skip
    assert shown((300, 700, 400))[0] == "300 B at 0% start"


def test_a_gap_that_is_drawn_shorter_has_no_ticks_and_moves_no_others() -> None:
    assert shown((0, 100, 100), (100, 10_000, 100), (10_000, 10_100, 100)) == [
        "0 at 0% start", "10,000 B at 66.67% middle", "10,100 B at 100% end",
    ]  # fmt: skip


def test_thousands_of_small_segments_have_no_more_ticks_than_can_be_told_apart() -> None:
    """Each at a round offset, with a gap after it that is drawn as short as the segment."""
    stretches = [
        piece
        for number in range(5_000)
        for piece in (Stretch(number * GB, number * GB + 4096, 4096), Stretch(number * GB + 4096, (number + 1) * GB, 4096))
    ]
    ticks = axis_ticks(stretches)
    assert 5 <= len(ticks) <= 101 and any(tick.label for tick in ticks)
    lefts = [float(tick.left.rstrip("%")) for tick in ticks]
    assert all(b - a > 0.99 for a, b in pairwise(lefts))


@pytest.mark.parametrize("stretches", [(), ((0, 0, 0),), ((7, 7, 0), (7, 7, 0))])
def test_nothing_has_no_axis(stretches: tuple[tuple[int, int, int], ...]) -> None:
    assert shown(*stretches) == []


@given(st.lists(st.tuples(st.integers(0, 1 << 63), st.integers(0, 1 << 40)), min_size=1, max_size=20))
def test_labels_of_any_log_leave_room_for_each_other(segments: list[tuple[int, int]]) -> None:
    """Segments in any order, beside or upon each other."""

    def edges(tick: Tick) -> tuple[float, float]:
        left, width = float(tick.left.rstrip("%")), 100 * len(tick.label) / 46
        begins = {"start": left, "middle": left - width / 2, "end": left - width}[tick.anchor]
        return begins, begins + width

    found = axis_ticks([Stretch(start, start + size, size) for start, size in segments])
    ticks = [edges(tick) for tick in found if tick.label]
    assert all(a[1] <= b[0] for a, b in pairwise(ticks)) and len(ticks) <= 5 + len(segments)
    assert all(-0.01 <= begins and ends <= 100.01 for begins, ends in ticks)
