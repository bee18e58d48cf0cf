"""Java's own ways with numbers and text, at the edges that Python sees otherwise."""

from __future__ import annotations

import pytest

from store_io.base.java.java_compat import is_blank, parse_double, parse_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("9" * 5000, None), ("-" + "1" * 5000, None), ("0" * 5000 + "7", 7), ("-" + "0" * 5000 + "7", -7), ("+0", 0), ("-0", 0)],
)
def test_numbers_of_any_length(text: str, number: int | None) -> None:
    assert parse_number(text, 64) == number


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \t\u3000", True), ("\xa0", False), (" x ", False)])
def test_blank_is_what_java_calls_white(text: str, blank: bool) -> None:
    assert is_blank(text) == blank


@pytest.mark.parametrize("zero", ["0", "\u0660", "\u0966", "\uff10"])
def test_digits_of_any_script_are_digits(zero: str) -> None:
    digits = "".join(chr(ord(zero) + digit) for digit in (0, 1, 3, 1, 0, 7, 2))
    assert parse_number(digits, 64) == parse_number("+" + digits, 64) == 131072 and parse_number("-" + digits, 64) == -131072
    assert parse_number(zero * 40 + digits, 64) == 131072


@pytest.mark.parametrize("text", ["\U0001d7d8", "\u00b2", "\u216b", "1\U0001d7d8", "", "+", "-", "+-1", "1 "])
def test_what_java_takes_for_no_number(text: str) -> None:
    """Digits beyond 0xFFFF are two units of UTF-16, of which neither is a digit."""
    assert parse_number(text, 64) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.9", 0.9), ("0.9d", 0.9), ("90E-2F", 0.9), (".9", 0.9), ("9.", 9.0), ("-0.5", -0.5), (" 0x1.8p-1\t", 0.75),
        ("0X.8P0", 0.5),
        ("1e400", float("inf")), ("-0x1p9999", float("-inf")), ("-Infinity", float("-inf")), ("1" * 400, float("inf")),
        ("", None), (".", None), ("0,9", None), ("90%", None), ("1_0", None), ("inf", None), ("nan", None), ("NaNf", None),
        ("0x1", None), ("1e", None), ("0.9 d", None), ("\u0660.\u0669", None), ("\xa00.9", None), ("0xp1", None),
    ],
)  # fmt: skip
def test_fractions_as_java_read_them(text: str, number: float | None) -> None:
    assert parse_double(text) == number


def test_what_is_not_a_number_is_one_to_java() -> None:
    found = parse_double("NaN")
    assert found is not None and found != found
