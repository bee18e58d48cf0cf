"""Colours only where a terminal shows them and nobody forbids them."""

from __future__ import annotations

import sys

import pytest

from jobs.cli.terminal import CLEAR_LINE, RED, Paint, clear_line, colour_wanted, fold_width, in_columns, output_width, redraws


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


@pytest.mark.parametrize(
    ("columns", "most", "width"), [(80, 120, 80), (120, 120, 120), (121, 120, 120), (39, 120, 40), (80, 60, 60)]
)
def test_a_text_is_folded_at_the_width_of_the_terminal(
    columns: int, most: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert fold_width(most) == width
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert fold_width(most) == most


def test_a_line_is_drawn_again_without_escape_codes_if_colours_are_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "9")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for forbidden, cleared in (("", CLEAR_LINE), ("1", "\r        \r")):
        monkeypatch.setenv("NO_COLOR", forbidden)
        assert clear_line() == cleared and redraws(sys.stderr)
    monkeypatch.setenv("TERM", "dumb")
    assert not redraws(sys.stderr)


def test_columns_are_as_wide_as_their_widest_cell_and_a_row_is_painted_whole() -> None:
    rows = [("name", "lost"), ("a", "7"), ("long name", "1,234")]
    assert list(in_columns(rows, (1,), ("", "", RED), Paint(True))) == [
        "name        lost",
        "a              7",
        f"{RED}long name  1,234\x1b[0m",
    ]
    assert Paint(False)(RED, "text") == "text"
