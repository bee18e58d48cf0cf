"""The hand-over page, without a browser: a golden file, hostile text stays text, its size is bounded."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.pages.hand_over_page import HandOver, hand_over_html
from tests.support.handmade import handed
from tests.support.handmade.samples import HOSTILE
from tests.support.texts.golden import check
from tests.support.texts.pages import Page, without_style


def page_of(own: HandOver) -> Page:
    return Page("".join(hand_over_html(own)))


def test_the_page_is_what_was_looked_at() -> None:
    own = handed.lossy()
    page = page_of(replace(own, named=[*own.named[:3], own.named[-1]], ends=own.ends[:3], queues=3))
    assert page.problems() == []
    check("hand-over.html", without_style(page.source))


def test_a_page_of_any_names_is_inert_and_bounded() -> None:
    for own in (handed.saved(), handed.lossy()):
        page = page_of(own)
        assert page.problems() == [] and "<script>alert" not in page.source and "\u202e" not in page.source
        assert len(page.source) < 200_000
    many = handed.named(1, topic="t" * 255)
    page = page_of(replace(handed.lossy(), named=[many] * 100_000, named_count=5_000_000, target=f"/new/{HOSTILE}"))
    assert len(page.source) < 200_000 and "4,999,900 more messages are not shown here" in page.text
