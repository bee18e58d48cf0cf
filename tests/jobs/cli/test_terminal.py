"""Colours only where a terminal shows them and nobody forbids them."""

from __future__ import annotations

import sys

import pytest

from jobs.cli.terminal import RED, Paint, colour_wanted, in_columns, output_width


@pytest.mark.parametrize(
    ("terminal", "forbidden", "term", "wanted"),
    [(True, "", "xterm", True), (True, "1", "xterm", False), (True, "", "dumb", False), (False, "", "xterm", False)],
)
def test_colour_is_for_terminals(
    terminal: bool, forbidden: str, term: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", forbidden)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "77")
    assert colour_wanted() is wanted
    assert output_width(120) == (77 if terminal else 120)


def test_columns_are_as_wide_as_their_widest_cell_and_a_row_is_painted_whole() -> None:
    rows = [("name", "lost"), ("a", "7"), ("long name", "1,234")]
    assert list(in_columns(rows, (1,), ("", "", RED), Paint(True))) == [
        "name        lost",
        "a              7",
        f"{RED}long name  1,234\x1b[0m",
    ]
    assert Paint(False)(RED, "text") == "text"
