"""Times as people read them."""

from __future__ import annotations

import pytest

from store_io.base.times import iso_time, time_text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_209_630_007, "2026-11-20T21:20:30.007Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, None),
        (-62_135_596_800_001, None),
        (-(1 << 63), None),
    ],
)
def test_utc_with_milliseconds_or_nothing_where_no_calendar_reaches(milliseconds: int, text: str | None) -> None:
    assert iso_time(milliseconds) == text


def test_a_sentence_has_the_number_of_what_no_calendar_holds() -> None:
    assert time_text((1 << 63) - 1) == "9223372036854775807 ms" and time_text(0) == iso_time(0)
