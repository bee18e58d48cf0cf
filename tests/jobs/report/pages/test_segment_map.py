"""The map of a log, and the axis below it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.report.pages.segment_map import CELLS, Stretch, Tick, axis_ticks
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.texts.pages import page_of

GB = 10**9


def bar_of(segment: dict[str, Any], cut: int | None = None) -> list[str]:
    """kind*cells from left to right, of the bar of this segment alone."""
    outcome = samples.clean()
    alter(outcome, segments=[segment])
    if cut is None:
        alter(outcome, effect=None)
    else:
        samples.start_changed(outcome, truncate_at=cut)
    tags = page_of(outcome).tags
    start = next(i for i, (tag, a) in enumerate(tags) if tag == "svg" and a.get("class") == "bar")
    rects = []
    for tag, a in tags[start + 2 :]:  # behind its title
        if tag not in ("rect", "line"):
            break
        if tag == "rect":
            rects.append(f"{a['class'].removeprefix('k-')}*{round(float(a['width'].rstrip('%')) * CELLS / 100)}")
    return rects


def test_a_bar_tells_each_kind_in_place_and_never_hides_damage() -> None:
    segment: dict[str, Any] = samples.damaged().rows.segments[1]
    assert bar_of(segment) == ["message*23", "damaged*48", "plausible*94", "message*46", "unwritten*29"]
    assert bar_of(segment, 1024 + 800)[3:] == ["message*22", "beyond*24", "unwritten*29"]
    tiny = {"kind": "damaged", "start": 500_000, "end": 500_001}
    rest = [{"kind": "message", "start": 0, "end": 500_000}, {"kind": "message", "start": 500_001, "end": 1_000_000}]
    big = {"file": "commitlog/0", "base_offset": 0, "size_bytes": 1_000_000, "extents": [rest[0], tiny, rest[1]]}
    assert bar_of(big) == ["message*120", "damaged*1", "message*119"]
    assert bar_of({**big, "problem": "cannot be read"}) == ["unread*240"]
    assert bar_of({**big, "size_bytes": 0}) == []


def test_a_long_sound_log_is_folded_but_for_what_matters() -> None:
    outcome = samples.clean()
    sound = outcome.rows.segments[0] | {
        "size_bytes": 1024,
        "extents": [{"kind": "message", "start": 0, "end": 1024}],
        "messages": 2,
    }
    alter(outcome, segments=[{**sound, "base_offset": i * 1024, "file": f"commitlog/{i * 1024:020}"} for i in range(1000)])
    outcome.rows.segments[500] |= {"extents": [{"kind": "damaged", "start": 0, "end": 1024, "reason": "magic"}], "messages": 0}
    del outcome.rows.segments[800:803]
    samples.start_changed(outcome, truncate_at=997 * 1024, start_segment=f"{990 * 1024:020}")
    text = page_of(outcome).text
    items = text.partition("The whole log")[2].partition("Where each file ends")[0]
    assert re.findall(r"(\d+) segments, 0", items) == ["499", "299", "187", "6"]
    assert "no file for 3,072 bytes" in items and "damaged 1.02 KB" in items and "recovery begins here" in items
    assert "cut at byte 0, physical offset 1,020,928" in items


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
