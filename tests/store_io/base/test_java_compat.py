"""Java's own ways with numbers and text, at the edges that Python sees otherwise."""

from __future__ import annotations

import pytest

from store_io.base.java_compat import is_blank, parse_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("9" * 5000, None), ("-" + "1" * 5000, None), ("0" * 5000 + "7", 7), ("-" + "0" * 5000 + "7", -7), ("+0", 0), ("-0", 0)],
)
def test_numbers_of_any_length(text: str, number: int | None) -> None:
    assert parse_number(text, 64) == number


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \t\u3000", True), ("\xa0", False), (" x ", False)])
def test_blank_is_what_java_calls_white(text: str, blank: bool) -> None:
    assert is_blank(text) == blank
