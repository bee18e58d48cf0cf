"""The part of a page that compares copies: hostile names stay text, and it is bounded."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.pages.index_html import index_html
from jobs.report.pages.report_html import report_html
from jobs.report.texts.summary_text import summary_text
from tests.support.handmade import samples


def hostile_group(name: str) -> dict[str, object]:
    bad = "<script>\x1b[31m"
    first = {
        "phy_offset": 9, "message": 1, "size": 300, "field": "BODY", "topic": bad, "queue_id": 0, "queue_offset": 3,
        "holder": name, "other": bad, "other_has": "damaged",
    }  # fmt: skip
    copy = {"start": 0, "end": 10, "messages": 5, "lacks": 1, "cut": None, "loses": None, "complete": True, "starts": None}
    part = {
        "start": 1,
        "end": 301,
        "other_has": "damaged",
        "messages": 1,
        "bytes": 300,
        "first_store_time": 1,
        "last_store_time": 2,
    }
    return {
        "group": bad, "best": None, "why": f"{bad} is not known to start.", "problems": [bad],
        "copies": [{"store": name, **copy}, {"store": bad, **copy}],
        "pairs": [{"left": name, "right": bad, "relation": "damaged", "same_until": 9, "first_difference": first}],
        "lacks": [{"store": name, "holder": bad, "messages": 1, "bytes": 300, "by_queue": [{}], "ranges": [part] * 200}],
    }  # fmt: skip


def test_hostile_names_stay_text() -> None:
    one, other = samples.clean(), samples.clean()
    other = replace(other, name="b")
    for outcome in (one, other):
        outcome.replicas = hostile_group(one.name)
        outcome.replica_group = str(outcome.replicas["group"])
    page = "".join(report_html(one)).partition('<section id="replicas"')[2].partition("</section>")[0]
    assert "<script>" not in page and "\x1b" not in page and "&lt;script&gt;" in page
    assert page.count("<tr>") < 110  # bounded
    index = "".join(index_html(samples.RUN, [one, other]))
    assert "<script>" not in index and "\x1b" not in index and "is not known to start." in index
    text = summary_text(samples.RUN, [one, other], "out")
    assert "\x1b" not in text and "Replicas" in text
