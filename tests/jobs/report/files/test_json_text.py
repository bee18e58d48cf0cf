"""JSON that says what it was given, whatever a store holds."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.report.files.json_text import document, line

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_text_says_what_it_was_given(value: Any) -> None:
    assert json.loads(document(value)) == value
    assert json.loads(line(value)) == value
    assert document(value).isascii()
