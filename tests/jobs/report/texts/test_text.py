"""Values as people read them, and that no text steers a terminal."""

from __future__ import annotations

import html
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from jobs.report.pages.page import name_of
from jobs.report.texts.text import name_text, printable, seconds_text
from store_io.base.times import second_text, span_text
from store_io.base.wording import bytes_text, count_text
from tests.support.handmade import samples


@given(st.text(alphabet=st.characters()))
def test_printable_text_steers_nothing(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs") and c != " "]
    assert not set(name_of(text).removeprefix("<bdi>").removesuffix("</bdi>")) & set("<>\"'")


# DerivedCoreProperties.txt of Unicode 15, Default_Ignorable_Code_Point.
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F),
    (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip


def test_nothing_is_shown_that_cannot_be_seen() -> None:
    hidden = {chr(code) for first, last in IGNORABLE for code in range(first, last + 1)}
    hidden |= {chr(code) for code in range(0x110000) if unicodedata.category(chr(code)).startswith(("C", "Z"))} - {" "}
    hidden |= set("\u2800\U00016fe4\U0001d159\U00013441\U00013442")  # blank by their names
    for letter in hidden:
        assert printable(f"a{letter}b").isascii(), f"{ord(letter):x}"
    assert printable("\u3164\u115f\u2800\xa0\ufe00\U000e0041\u2028") == ("\\u3164\\u115f\\u2800\\xa0\\ufe00\\U000e0041\\u2028")


def test_a_name_is_always_seen() -> None:
    shown = {"": '""', " ": '" "', "a ": '"a "', " a": '" a"', "a b": "a b", "\t": "\\x09", "\u3000": "\\u3000"}
    assert {name: name_text(name) for name in shown} == shown
    assert {name: html.unescape(str(name_of(name))) for name in shown} == {n: f"<bdi>{text}</bdi>" for n, text in shown.items()}


def test_printable_keeps_what_people_write() -> None:
    assert printable("Grüße, 消息, 🚀, a b") == "Grüße, 消息, 🚀, a b"
    assert printable("a\x1b[2J\u202eb\nc\u2028\ud800") == "a\\x1b[2J\\u202eb\\x0ac\\u2028\\ud800"
    assert printable("x" * 10, 5) == "xxxx…"


def test_values_as_people_read_them() -> None:
    assert [bytes_text(n) for n in (0, 812, 999, 1000, 1_610_613_762, 999_700, 5 * 10**15)] == [
        "0 B", "812 B", "999 B", "1 KB", "1.61 GB", "1 MB", "5,000 TB",
    ]  # fmt: skip
    assert [count_text(n, "loss", "losses") for n in (0, 1, 1234)] == ["0 losses", "1 loss", "1,234 losses"]
    assert [seconds_text(s) for s in (0.04, 9.96, 61.2, 7500)] == ["0.0 s", "10 s", "1 min 1 s", "2 h 5 min"]
    assert second_text(samples.START_MS) == "2026-11-20 21:20:30"
    assert [second_text(ms) for ms in (0, -5, 1 << 62)] == ["0 ms", "-5 ms", "4611686018427387904 ms"]
    assert span_text(samples.START_MS, samples.START_MS + 1000) == "2026-11-20 21:20:30 to 21:20:31 UTC"


def test_a_store_time_of_zero_begins_no_window() -> None:
    told = span_text(0, 1_700_000_000_000)
    assert told == "times up to 2023-11-14 22:13:20 UTC (the earliest is 0, which no broker writes)"
    assert span_text(0, 0) == "0 ms"
