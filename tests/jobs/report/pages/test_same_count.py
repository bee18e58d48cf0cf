"""Index page, report and metrics count the same stores as unsafe, and what a page's title says no bullet of it denies."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from jobs.report.files.ci_files import prometheus_text
from jobs.report.files.result_files import result_json
from jobs.report.pages.fleet_html import fleet_html
from jobs.report.past_views import FleetView
from jobs.report.texts.safety_text import MEANING, SHORT
from schemas.outcome import Outcome
from store_io.answer.headline import judge
from store_io.outcome.safety import Safety, is_unsafe
from tests.support.handmade import samples
from tests.support.handmade.history_rows import kept, view_of
from tests.support.texts.pages import Page, index_of

_ONE_OF_EACH = list({judge(outcome).kind: outcome for outcome in samples.every_kind()}.values())
RUNS = [
    *([outcome] for outcome in samples.every_kind()),
    *([*pair] for pair in combinations(_ONE_OF_EACH, 2)),
    samples.every_kind(),
]
BULLET = re.compile(r"<li>(\d+)(?: stores?)?: ([^<]*)</li>")
AT_EASE = ("All stores are safe", "The store is safe", "No start loses a message", "A start loses no message")


def named(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The same outcomes, each as a store of its own: a group keeps the names of its copies."""
    return [replace(outcome, key=f"s{number}") for number, outcome in enumerate(outcomes)]


def report_of(outcomes: Sequence[Outcome]) -> FleetView:
    return view_of([kept(outcome, outcome.key) for outcome in outcomes])


def bullets(page: Page, words: dict[Safety, str]) -> Counter[Safety]:
    kinds = {text: kind for kind, text in words.items()}
    found = [(int(number), " ".join(text.split())) for number, text in BULLET.findall(page.source.replace("&#39;", "'"))]
    return Counter({kinds[text]: number for number, text in found if text in kinds})


def title(page: Page) -> str:
    return " ".join(re.findall(r'<h2 id="answer"[^>]*>([^<]*)</h2>', page.source)[0].split())


@pytest.mark.parametrize("outcomes", RUNS, ids=lambda run: "-".join(judge(one).kind for one in run[:2]) + f"-{len(run)}")
def test_index_report_and_metrics_agree_and_no_page_denies_itself(outcomes: list[Outcome]) -> None:
    outcomes = named(outcomes)
    kinds = Counter(judge(outcome).kind for outcome in outcomes)
    unsafe = sum(number for kind, number in kinds.items() if is_unsafe(kind))
    view = report_of(outcomes)
    metrics = prometheus_text(json.loads(result_json(samples.RUN, outcomes)), 0)
    told = [line.rpartition(" ")[2] for line in metrics.splitlines() if line.startswith("rocketmq_store_audit_unsafe{")]
    assert (told.count("1"), len(told)) == (unsafe, len(outcomes) - kinds[Safety.UNKNOWN])
    assert view.totals["unsafe"] == unsafe
    index, report = index_of(outcomes), Page("".join(fleet_html(view)))
    assert title(index).startswith(title(report))
    for page, words in ((index, MEANING), (report, SHORT)):
        assert bullets(page, {Safety(kind): text for kind, text in words.items()}) == kinds
        said = title(page)
        number = re.match(r"([\d,]+) of [\d,]+ stores? (?:is|are) not safe", said)
        assert (int(number[1]) if number else 0) == unsafe
        worse = unsafe + kinds[Safety.UNKNOWN] + kinds[Safety.DIVERGED] + kinds[Safety.LACKS]
        assert not (worse and "makes nothing worse" in said)
        assert not (worse + kinds[Safety.CARE] and said.startswith(AT_EASE))
        for clause, count in (
            ("not known", kinds[Safety.UNKNOWN]),
            ("not as master", kinds[Safety.DIVERGED] + kinds[Safety.LACKS]),
        ):
            found = re.search(rf"; (\d+) {clause}", said)
            assert found is None or int(found[1]) == count
            assert found is not None or not (count and (unsafe or kinds[Safety.CARE]))
        assert ('class="c-safe"' in fact_lost(page)) <= (worse == 0)


def fact_lost(page: Page) -> str:
    """What the page's first fact, on the loss of starts, is made of."""
    return page.source[page.source.index('<dl class="facts">') : page.source.index("would be lost by")]


def test_changed_bytes_are_green_nowhere() -> None:
    outcomes = named([samples.clean(), samples.changed()])
    index, report = index_of(outcomes), Page("".join(fleet_html(report_of(outcomes))))
    for page in (index, report):
        assert title(page) == "1 of 2 stores is already damaged; a start makes nothing worse"
    result = json.loads(result_json(samples.RUN, outcomes))
    metrics = prometheus_text(result, 0)
    assert result["exit_code"] == 20 and 'changed_segments{store="turned"} 1' in metrics
    assert 'changed_segments{store="calm"} 0' in metrics and 'exit_code{store="turned"} 20' in metrics
