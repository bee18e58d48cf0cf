"""The map of a CommitLog: every kind in its place, no damage hidden."""

from __future__ import annotations

import re
from typing import Any

from jobs.report.pages.segment_map import CELLS
from tests.support.handmade import samples
from tests.support.texts.pages import page_of


def bar_of(segment: dict[str, Any], cut: int | None = None) -> list[str]:
    """kind*cells from left to right, of the bar of this segment alone."""
    outcome = samples.clean()
    outcome.segments = [segment]
    outcome.plan["broker"] = None if cut is None else {"starts": True, "truncate_at": cut}
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
    segment: dict[str, Any] = samples.damaged().segments[1]
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
    sound = outcome.segments[0] | {"size_bytes": 1024, "extents": [{"kind": "message", "start": 0, "end": 1024}], "messages": 2}
    outcome.segments = [{**sound, "base_offset": i * 1024, "file": f"commitlog/{i * 1024:020}"} for i in range(1000)]
    outcome.segments[500] |= {"extents": [{"kind": "damaged", "start": 0, "end": 1024, "reason": "magic"}], "messages": 0}
    del outcome.segments[800:803]
    outcome.plan["broker"] |= {"truncate_at": 997 * 1024, "start_segment": f"{990 * 1024:020}"}
    text = page_of(outcome).text
    items = text.partition("The whole log")[2].partition("Where each file ends")[0]
    assert re.findall(r"(\d+) segments, 0", items) == ["499", "299", "187", "6"]
    assert "no file for 3,072 bytes" in items and "damaged 1.02 KB" in items and "recovery begins here" in items
    assert "cut at byte 0, physical offset 1,020,928" in items
