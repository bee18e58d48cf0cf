"""One explanation as people read it, without a store."""

from __future__ import annotations

from jobs.report.texts.explain_text import explain_text
from store_io.messages.explain.explain_place import Explanation
from tests.support.handmade import samples


def said() -> Explanation:
    return Explanation(
        1124, "5.3.3", "damaged", f"nothing valid begins here {samples.HOSTILE}", f"commitlog/{samples.HOSTILE}", 100, 1024, 2048,
        around=bytes(range(16)), around_start=1124,
    )  # fmt: skip


def test_text_steers_nothing_and_has_colour_only_where_asked() -> None:
    text = explain_text(said(), 100)
    assert not set(text) & set("\x1b\u202e") and text.startswith("physical offset 1,124: nothing valid begins here <script>")
    assert "bytes at 1,124:" in text and "00 01 02 03" in text
    assert "\x1b[33m" in explain_text(said(), 100, colour=True)
