"""The page of all stores over time, without a browser."""

from __future__ import annotations

from dataclasses import replace

from jobs.report.pages.fleet_html import fleet_html
from jobs.report.pages.page import TOOLS_FROM
from jobs.report.past_views import CodeCount
from jobs.report.texts.history_text import fleet_text
from jobs.report.texts.text import printable
from schemas.finding_codes import CATALOGUE, Code
from store_io.wording.steps import advice_text
from tests.support.handmade.history_rows import T0, run_row, view_of
from tests.support.handmade.samples import HOSTILE
from tests.support.texts.pages import Page


def test_the_page_is_inert_and_hostile_names_stay_text() -> None:
    rows = [
        run_row(HOSTILE, n, 20, verdict=HOSTILE, location=HOSTILE, lost_messages=n, losses=1, safety="stop") for n in range(3)
    ]
    codes = [CodeCount(HOSTILE, "loss", "x", 2, 1, HOSTILE)]
    shown = Page("".join(fleet_html(view_of([*rows, run_row("calm", 2, safety="safe")], codes, {HOSTILE + "2": T0}))))
    assert shown.problems() == []
    assert "1 of 2 stores is not safe to start" in shown.text and shown.text.count("<script>alert(1)</script>") >= 4
    assert "\x1b" not in shown.text and "\u202e" not in shown.text
    assert [bar["height"] for bar in shown.all("rect")] == ["4", "11", "22", "11"]
    assert "All stores are safe" not in shown.text
    calm = Page("".join(fleet_html(view_of([run_row("a", 2, safety="safe"), run_row("b", 2, safety="safe")]))))
    assert "All stores are safe to start" in calm.text and calm.problems() == []
    text = fleet_text(view_of(rows, codes))
    assert "\x1b" not in text and "\u202e" not in text


def test_a_finding_leads_to_what_its_code_means() -> None:
    codes = [CodeCount("a", "loss", code, 2, 1, "f") for code in ("commitlog_damaged", "of_another_version")]
    page = Page("".join(fleet_html(view_of([run_row("a", 2, 20, safety="stop")], codes))))
    assert page.problems() == [] and page.text.count("of_another_version") == 1
    assert {"href": "#code-commitlog_damaged"} in page.all("a") and advice_text(CATALOGUE["commitlog_damaged"].next) in page.text


def test_a_long_list_gets_tools_and_stores_their_brokers_names() -> None:
    broker = HOSTILE.replace("(1)", "")  # with parentheses it would not be shown
    rows = [run_row(f"store-{n}", 2, safety="safe", settings={"brokerName": broker}) for n in range(TOOLS_FROM)]
    rows[3] = replace(rows[3], safety="stop", answer="change", exit_code=20, starts=None)
    page = Page("".join(fleet_html(view_of(rows))))
    assert page.problems() == [] and len(page.all("script")) == 1
    assert [cell.get("data-sort") for cell in page.all("td")[:7]] == ["-3", "0", None, "", "20", "75200", "1"]
    assert [cell.get("data-sort") for cell in page.all("td")[7:8]] == ["-8"], "no answer was kept: last"
    assert page.text.count("change") == 1
    assert f"{printable(broker)} (store-3)" in page.text and f"{printable(broker)[:20]}" in fleet_text(view_of(rows))


def test_timer_messages_that_no_start_delivers_count_as_a_loss_of_their_own() -> None:
    codes = [
        CodeCount("a", severity, code, count, 1, "config/timercheck")
        for severity, code, count in (
            ("loss", Code.TIMER_MESSAGE_LOST, 3),
            ("note", Code.TIMER_MESSAGE_LOST, 50),
            ("loss", "other", 7),
        )
    ]
    view = view_of([run_row("a", 2, 20, safety="stop"), run_row("b", 2, safety="safe")], codes)
    assert (view.totals["lost_timers"], [store.lost_timers for store in view.stores]) == (3, [3, 0])
    page = "".join(fleet_html(view))
    assert Page(page).text.count("3 timer messages never delivered") == 2 and 'class="c-safe"' not in page.partition("</dl>")[0]
    assert "would be lost by a start; 3 timer messages never delivered" in fleet_text(view)


def test_the_text_cuts_a_long_name_of_a_broker_and_never_the_stores_own() -> None:
    text = fleet_text(view_of([run_row("store-2", 2, safety="safe", settings={"brokerName": "b" * 60})]))
    assert text.count("bbb… (store-2)") == 2  # in the table and above the store's runs
