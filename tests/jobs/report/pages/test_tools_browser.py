"""Filter and order of a page with 500 stores, in a real Chromium (mark: browser)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.report.pages.fleet_html import fleet_html
from jobs.report.pages.index_html import index_html
from schemas.losses import LossOfStart
from schemas.rows import TAKEN, Premise
from tests.support.handmade import samples
from tests.support.handmade.history_rows import run_row, view_of
from tests.support.handmade.outcome_fields import alter
from tests.support.processes.browser import Witness, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
STORES = 500
WIDTHS = (380, 1280)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    outcomes = []
    for number in range(STORES):
        outcome = samples.MAKERS[number % len(samples.MAKERS)]()
        lost = LossOfStart(number, 10 * number) if outcome.loss.messages else outcome.loss
        outcomes.append(replace(outcome, name=f"store-{number}", replica_group="", loss=lost))
    alter(outcomes[77], premises=[Premise(TAKEN, f"<b>needle</b> {samples.HOSTILE}")])
    (folder / "index.html").write_text("".join(index_html(samples.RUN, outcomes)), "utf-8")
    rows = [run_row(f"s{n}", 1, 20 if n % 2 else 0, safety="stop" if n % 2 else "safe", lost_messages=n) for n in range(STORES)]
    (folder / "fleet.html").write_text("".join(fleet_html(view_of(rows))), "utf-8")
    return folder


def shown(page: Page) -> list[str]:
    """The names in the rows that can be seen, from top to bottom."""
    names: list[str] = page.evaluate(
        "[...document.querySelectorAll('[data-tools] tbody tr')].filter(row => row.checkVisibility())"
        ".map(row => row.querySelector('a').textContent)"
    )
    return names


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["index.html", "fleet.html"])
def test_rows_are_filtered_by_words_and_by_answer_and_counted(browser: Browser, pages: Path, name: str, width: int) -> None:
    witness = Witness()
    page = opened(browser, pages / name, witness, viewport={"width": width, "height": 900})
    count, field = page.get_by_role("status"), page.get_by_label("Filter", exact=True)
    assert count.inner_text() == f"{STORES} of {STORES} stores" and len(shown(page)) == STORES
    worst = shown(page)
    field.fill("49 s")
    assert all("49" in row for row in shown(page)) and 0 < len(shown(page)) < 30
    assert count.inner_text() == f"{len(shown(page))} of {STORES} stores"
    field.fill("")
    answers = page.get_by_label("Show")
    safe = next(text for text in answers.locator("option").all_inner_texts() if text.startswith(("safe", "start (")))
    answers.select_option(label=safe)
    assert safe == f"{'start' if name == 'index.html' else 'safe to start'} ({len(shown(page))})"
    field.fill("nothing has this")
    assert shown(page) == [] and count.inner_text() == f"0 of {STORES} stores"
    field.fill("")
    answers.select_option(index=0)
    assert shown(page) == worst
    assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= width
    page.close()
    assert witness.problems == []


def test_a_head_orders_the_rows_and_says_so(browser: Browser, pages: Path) -> None:
    witness = Witness()
    page = opened(browser, pages / "index.html", witness, viewport={"width": 1280, "height": 900})
    worst = shown(page)
    button = page.get_by_role("button", name="lost")
    button.focus()
    page.keyboard.press("Enter")
    most = shown(page)
    assert page.get_by_role("columnheader", name="lost").get_attribute("aria-sort") == "descending"
    assert page.locator("[aria-sort]").count() == 1
    losing = [name for number in range(STORES - 1, 0, -1) if (name := f"store-{number}") in worst[: worst.index("store-1")]]
    assert most[: len(losing)] == sorted(losing, key=lambda name: -int(name.partition("-")[2])) and sorted(most) == sorted(worst)
    page.keyboard.press("Space")
    assert page.get_by_role("columnheader", name="lost").get_attribute("aria-sort") == "ascending"
    lost = page.locator('td[data-label="lost"]').all_inner_texts()
    unknown = lost.count("not known")
    assert unknown and lost[-unknown:] == ["not known"] * unknown  # last, both ways
    page.get_by_role("button", name="store", exact=True).click()
    assert shown(page) == [f"store-{number}" for number in range(STORES)]  # 2 before 10
    page.get_by_role("button", name="answer").click()
    assert shown(page) == worst
    page.close()
    assert witness.problems == []


def test_a_phone_has_a_list_of_orders(browser: Browser, pages: Path) -> None:
    page = opened(browser, pages / "index.html", Witness(), viewport={"width": 380, "height": 900})
    assert not page.get_by_role("button", name="lost").is_visible()
    order = page.get_by_label("Order")
    worst = shown(page)
    assert order.locator("option:checked").inner_text() == "most dangerous first"
    order.select_option(label="store, Z to A")
    assert shown(page)[0] == f"store-{STORES - 1}"
    order.select_option(label="most dangerous first")
    assert shown(page) == worst
    page.close()


def test_paper_shows_every_row_the_worst_first(browser: Browser, pages: Path) -> None:
    page = opened(browser, pages / "index.html", Witness(), viewport={"width": 1280, "height": 900})
    worst = shown(page)
    page.get_by_label("Filter", exact=True).fill("needle")
    page.get_by_role("button", name="store", exact=True).click()
    kept = shown(page)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown(page) == worst and not page.locator(".tools").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert shown(page) == kept == ["store-77"]
    page.close()


def test_without_scripts_every_row_is_there_and_nothing_that_does_not_work(browser: Browser, pages: Path) -> None:
    page = opened(browser, pages / "index.html", Witness(), viewport={"width": 1280, "height": 900}, java_script_enabled=False)
    assert page.locator("[data-tools] tbody tr").count() == STORES
    assert page.locator("button, input, select").count() == 0
    page.close()


def test_the_policy_allows_our_script_alone(browser: Browser, pages: Path, tmp_path: Path) -> None:
    source = (pages / "index.html").read_text("utf-8")
    witness = Witness()
    bad = tmp_path / "bad.html"
    bad.write_text(source.replace("</main>", "<script>document.title = 'run'</script><p onclick='x()'>x</p></main>"), "utf-8")
    page = opened(browser, bad, witness)
    assert page.title() != "run" and len(witness.problems) == 2  # the script, and the handler
    assert all("violates the following Content Security Policy" in problem for problem in witness.problems)
    assert page.locator("b", has_text="needle").count() == 0 and page.get_by_text("<b>needle</b>").count() == 1
    page.close()
    changed = tmp_path / "changed.html"
    changed.write_text(source.replace('"use strict";', '"use strict"; '), "utf-8")
    page = opened(browser, changed, Witness())
    assert page.locator("input").count() == 0  # another digest
    page.close()
