"""The part of a page about timer messages."""

from __future__ import annotations

import re

from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import report_html
from jobs.report.pages.sections_on_kinds import timers_view
from jobs.report.texts.safety_text import timer_words
from schemas.finding_codes import Code
from schemas.rows import LOSS, Finding
from tests.support.handmade import samples

NONE = {"messages": 0, "first": 0, "last": 0}
TIMERS = {
    "units": 9, "stale": 2, "judged": True, "again": {"messages": 3, "first": 0, "last": 1000},
    "waiting": {"messages": 5, "first": 1_700_000_000_000, "last": 1_700_000_060_000},
    "cut": {"messages": 4, "first": 1_700_000_000_000, "last": 1_700_000_060_000}, "never": NONE, "after_end": NONE,
}  # fmt: skip


def test_what_waits_what_comes_again_and_what_is_never_delivered() -> None:
    outcome = samples.clean()
    assert not list(timer_words(outcome))
    outcome.timers = TIMERS
    view = timers_view(outcome, {"timer": {"log_end": 520, "queue_offset": 7}})
    words = view["words"]
    assert isinstance(words, list) and len(words) == 2
    assert words[0].startswith("4 timer messages, due 2023-11-14 22:13:20") and "never delivered" in words[0]
    assert words[1] == "3 timer messages that were delivered come again"
    page = "".join(report_html(outcome))
    assert "5 timer messages wait for delivery" in page and "never delivered again" in page and "2 of them lead to" in page
    outcome.timers = {"units": 9, "stale": 0, "judged": False}
    assert "was not judged" in "".join(report_html(outcome))


def test_messages_that_are_never_delivered_are_no_green_number() -> None:
    outcome = samples.clean()
    outcome.timers = TIMERS | {"waiting": {"messages": 1, "first": 1_700_000_000_000, "last": 1_700_000_060_000}}
    outcome.findings = [Finding(Code.TIMER_MESSAGE_LOST, "config/timercheck", severity=LOSS, count=4)]
    page = "".join(report_html(outcome))
    assert "1 timer message waits for delivery" in page and re.search(
        r"would be lost, and\s+4 timer messages never delivered", page
    )
    assert re.search(r"UTC\.\s+The timer log has", page)


def test_lost_timers_of_a_fleet_count_beside_lost_messages() -> None:
    outcome = samples.clean()
    assert "never delivered" not in "".join(index_html(samples.RUN, [outcome]))
    outcome.findings.append(Finding(Code.TIMER_MESSAGE_LOST, "timerlog/0", severity=LOSS, count=94))
    page = "".join(index_html(samples.RUN, [outcome]))
    lost = page[page.index("would be lost") :][:200]
    assert "94 timer messages never delivered" in lost and "c-stop" in lost
