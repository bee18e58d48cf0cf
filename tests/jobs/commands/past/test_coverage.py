"""What coverage makes of rows of the tables, without Spark: literal rows in, literal answers out."""

from __future__ import annotations

import pytest

from jobs.report.texts.history_text import coverage_text
from tests.support.handmade.history_rows import BEFORE, DAY, T0, covered, segment
from tests.support.handmade.samples import HOSTILE


def test_coverage_is_the_union_of_what_runs_read() -> None:
    view = covered({0: 2, 1: 3, 2: 1, 3: 0})
    (store,) = view.stores
    assert (store.segments, store.segments_verified, store.runs_within) == (5, 2, 2)
    assert (view.bytes, view.bytes_verified, view.fraction, store.fraction) == (500, 200, 0.4, 0.4)
    assert [(s.file[-3:], s.verified) for s in store.least_recently] == [("400", None), ("300", T0), ("200", T0 + DAY)]
    text = coverage_text(view)
    assert text.splitlines()[1].split() == ["40.0", "%", "s", "500", "B", "2", "of", "5", "2", "2026-11-21", "11:06:40"]
    assert "  commitlog/00000000000000000400  100 B, not within 100 runs before that" in text


def test_coverage_is_not_rounded_up_and_no_bytes_are_no_fraction() -> None:
    many = [segment(n) for n in range(3000)]
    text = coverage_text(covered(dict.fromkeys(range(2999), 3), many))
    assert " 99.9 %  s" in text and "100.0 %" not in text
    assert "100.0 %  s" in coverage_text(covered(dict.fromkeys(range(3000), 3), many))
    empty = covered({}, [])
    assert empty.stores[0].fraction is None and coverage_text(empty).splitlines()[1].startswith("       -  s")
    assert coverage_text(empty).splitlines()[-1] == "not in this figure: 1 store of which no run could list a segment"
    assert "not in this figure" not in text


@pytest.mark.parametrize(("code", "complete"), [(3, False), (20, True)])
def test_a_store_without_a_segment_any_more_is_not_covered(code: int, complete: bool) -> None:
    """As where its disk was not mounted in the newest run, or all was deleted: what runs before have read is not there."""
    view = covered(dict.fromkeys(range(5), 2), code=code, segment_count=0, complete=complete, verdict=f"gone{HOSTILE}")
    (store,) = view.stores
    assert (view.fraction, store.fraction, store.segments_verified) == (0, 0, 0)
    assert store.gone and (store.gone.run_id, store.gone.exit_code, store.listed.run_id) == ("r4", code, "r3")
    text = coverage_text(view)
    found = "could not read it" if code == 3 else "found no CommitLog segment any more"
    assert "100.0 %" not in text and f"s: run r4 {found}, so nothing counts as verified (gone" in text
    assert "\x1b" not in text


def test_a_segment_that_cannot_be_read_any_more_is_not_covered() -> None:
    view = covered(dict.fromkeys(range(5), 3), problem=0)
    (store,) = view.stores
    assert (store.segments_verified, store.fraction, store.gone) == (4, 0.8, None)
    assert [row.file for row in store.least_recently] == [BEFORE[0].file]
