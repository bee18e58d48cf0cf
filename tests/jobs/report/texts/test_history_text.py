"""What `report` and `diff` say on a terminal."""

from __future__ import annotations

from jobs.report.texts.history_text import difference_text, fleet_text
from tests.support.handmade.history_rows import A, B, diff, place, run_row, view_of


def test_a_few_stores_are_told_run_by_run() -> None:
    rows = [run_row("a", n, 0, rules_version="1" if n < 3 else "2", location=f"/copies/{n}", safety="safe") for n in range(25)]
    lines = fleet_text(view_of(rows)).splitlines()
    assert lines[1].split()[9:] == ["0"] * 8 + ["verdict", "0"]  # audited is two words
    assert sum(line.endswith(tuple(f"  r{n}" for n in range(25))) for line in lines) == 20
    assert "  and 5 earlier runs (--format json has more)" in lines
    assert "  under this name, copies in 25 places; the latest in /copies/24" in lines
    assert "  other rules from 2026-11-21 11:06:40: rules 1 -> 2" in lines


def test_a_store_that_came_or_went_is_told() -> None:
    assert "s: not in run B; code 0 in run A" in difference_text(diff(A, None))
    assert "s: first seen in run B, code 0" in difference_text(diff(None, B, place(0, 1, None, 1)))
