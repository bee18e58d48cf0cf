"""The page of a run, without a browser."""

from __future__ import annotations

import re
from dataclasses import replace

from jobs.report.pages.page import TOOLS_FROM
from jobs.report.texts.safety_text import most_dangerous_first
from schemas.losses import LossOfStart
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import alter
from tests.support.texts.golden import check
from tests.support.texts.pages import index_of, without_style


def test_page_of_a_run() -> None:
    check("index.html", without_style(index_of([make() for make in samples.MAKERS]).source))


def test_the_page_of_a_run_too() -> None:
    assert index_of([make() for make in samples.MAKERS]).problems() == []
    assert index_of([]).problems() == []


def test_the_link_to_a_store_leads_to_its_folder() -> None:
    outcome = samples.clean()
    alter(outcome, name="a%2Fb?#&")
    assert [a["href"] for a in index_of([outcome]).all("a")] == ["a%252Fb%3F%23%26/report.html"]


def test_the_most_dangerous_store_comes_first() -> None:
    hurt = samples.damaged()
    alter(hurt, findings=[replace(hurt.found.findings[0], code="broker_drops_messages", count=12)])
    mild = replace(hurt, name="mild", loss=LossOfStart(1, 1))
    fleet = [samples.clean(), samples.refused(), mild, samples.not_audited(), hurt]
    assert [o.name for o, _ in most_dangerous_first(fleet)] == ["hurt-\u202e", "mild", "stuck", "gone", "calm"]
    page = index_of(fleet)
    assert "3 of 5 stores are not safe to start" in page.text
    assert [a["href"] for a in page.all("a")][2:] == ["stuck/report.html", "gone/report.html", "calm/report.html"]


def test_a_long_table_gets_tools_and_what_they_sort_by() -> None:
    outcomes = [replace(samples.MAKERS[i % len(samples.MAKERS)](), name=f"s{i}") for i in range(TOOLS_FROM)]
    page = index_of(outcomes)
    assert page.problems() == [] and len(page.all("script")) == 1
    cells = [cell["data-sort"] for cell in page.all("td") if cell["data-label"] == "answer" and "data-sort" in cell]
    assert cells == [str(rank) for rank in range(TOOLS_FROM, 0, -1)]
    damaged = [cell.get("data-sort") for cell in page.all("td")[:7]]
    assert damaged[1:] == [None, "12", "1 25 1", str(samples.START_MS), "4 9 8", "20"]
    assert "" in [cell.get("data-sort") for cell in page.all("td") if cell["data-label"] == "lost"]
    short = index_of(outcomes[1:])
    assert short.all("script") == [] and not any("data-sort" in cell for cell in short.all("td"))


def test_copies_of_one_broker_stand_by_what_a_start_of_each_would_do() -> None:
    """There a copy that is whole and needs a rebuild comes before one that is consistent and lacks messages."""
    rebuild = replace(samples.behind(samples.rebuild()), name="master")
    slave = samples.behind(samples.clean())
    groups = index_of([slave, rebuild]).source.partition('id="groups"')[2]
    assert re.findall(r'data-label="answer">(\w+)', groups) == ["repair", "start"]


def test_a_store_has_its_answer_and_the_name_of_its_first_step() -> None:
    wiped, used = samples.emptied(), replace(samples.clean(), name="used", in_use="A broker uses it.")
    page = index_of([samples.not_audited(), samples.damaged(), wiped, used])
    cells = re.findall(
        r'data-label="answer">.*?<span class="badge c-([a-z]+)">(\w+)</span><br><span class="where">(.*?)<', page.source
    )
    assert set(cells) == {
        ("unknown", "not_known", "first: change"),
        ("stop", "repair", "first: other"),
        ("stop", "copy_again", "first: copy"),
        ("safe", "start", "first: stop"),
    }


def test_copies_of_one_broker_stand_side_by_side() -> None:
    fleet = [samples.damaged(), samples.clean()]
    for outcome in fleet:
        alter(outcome, replica_group="broker-a")
    text = index_of(fleet).text
    assert "Copies of one broker" in text
    assert "Copies of one broker" not in index_of(fleet[:1]).text
