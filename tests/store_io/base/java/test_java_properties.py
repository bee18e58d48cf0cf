"""broker.conf as java.util.Properties reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from store_io.base.errors import UsageError
from store_io.base.java.java_properties import parse_properties, property_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2 \n  c:3\nd 4\ne\t=\t5", {"a": "1", "b": "2 ", "c": "3", "d": "4", "e": "5"}),
        ("# a=1\n  ! b=2\n\n   \nc=3#no comment", {"c": "3#no comment"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a\\=b\\:c\\ d=\\u0041\\t\\q", {"a=b:c d": "A\tq"}),
        ("a==b\nb=:c\nc", {"a": "=b", "b": ":c", "c": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("\xef\xbb\xbfa=1\\", {"\xef\xbb\xbfa": "1"}),
        ("a = true \nb:\\ x\t", {"a": "true ", "b": " x\t"}),
        ("\\\n#a=1\nb=1\\\n#2\nc=3\\\n\n d=4", {"b": "1#2", "c": "3", "d": "4"}),
        ("a=\\ud83d\\ude00\\ud83d", {"a": "\U0001f600\ufffd"}),
        ("a=C:\\\\dir\\\\file", {"a": "C:\\dir\\file"}),
    ],
)
def test_reads_properties_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@given(st.dictionaries(st.from_regex("[a-zA-Z]+", fullmatch=True), st.text(st.characters(exclude_categories=("Cs",)))))
def test_what_is_written_is_read_again(settings: dict[str, str]) -> None:
    assert parse_properties("\n".join(property_line(*row) for row in settings.items())) == settings


@example_settings(deadline=None)
@given(st.text())
def test_any_text_is_properties_or_a_usage_error(text: str) -> None:
    try:
        parse_properties(text)
    except UsageError:
        pass
