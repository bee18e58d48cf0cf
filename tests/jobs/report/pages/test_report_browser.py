"""The pages in a real Chromium (mark: browser): nothing is requested, nothing runs, nothing is wider than the screen.

    ./spark-submit.sh test -m browser

A machine without Chromium fails these tests: they cannot tell anything there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.audit.run_audit import write_run_files, write_store
from jobs.report.pages.hand_over_page import hand_over_html
from jobs.report.pages.report_html import PageContext
from jobs.report.texts.text import printable
from jobs.runtime.output import OutputFolder
from schemas.outcome import Outcome
from store_io.audit.audit_store import run_local
from store_io.audit.compared.compared_audit import run_compared
from store_io.broker.releases import KNOWN_RELEASES
from store_io.model.audit_request import AuditRequest
from store_io.source.byte_source import StoreLocation
from tests.support import damage
from tests.support.handmade import handed, samples
from tests.support.processes.browser import Witness, opened
from tests.support.stores import builders
from tests.support.stores.corpus_tools import cases

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
WIDTHS = (390, 1280)
COMPARED = ("g14-533-torn-old-seen",)  # with all releases beside one another
HOSTILE_TOPICS = (
    "<script>alert(document.title)",
    "\"'><img src=x onerror=alert(1)>",
    "\u202egnp.exe",
    "a" * 255,
    "x\x1b[31m\x07y",
    "é消息",
)


def corpus_outcome(name: str, folder: Path) -> Outcome:
    (case,) = cases(name)
    case.unpack(folder)
    release, conf = case.release, case.broker_conf
    releases = KNOWN_RELEASES if name in COMPARED else ()
    asked = AuditRequest(name, StoreLocation(str(folder / "store")), release, conf, releases=releases)
    return run_compared(asked).outcome() if releases else run_local(asked)


def hostile_outcome(folder: Path) -> Outcome:
    """A store whose topics want to be markup and more, damaged in the middle and with wrong entries."""
    builder = builders.StoreBuilder("5.3.3", builders.Sizes(segment=1 << 16))
    for number in range(240):
        builder.put(builders.Message(HOSTILE_TOPICS[number % len(HOSTILE_TOPICS)], body=b"b" * 100, keys=f"k{number}"))
    groups = {f"{topic}@<b>group</b>": {"0": 10_000} for topic in HOSTILE_TOPICS[:1]}
    store = builder.write(folder / "store", config={"consumerOffset.json": json.dumps({"offsetTable": groups})})
    record = store.records[150]
    path = store.segment_of(record)
    damage.invert_byte(path, store.position_of(record) + record.size // 2)
    return run_local(AuditRequest("hostile", StoreLocation(str(store.root)), "5.3.3", store.broker_conf))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's pages as the audit writes them: damaged, clean, hostile and not audited stores, and the index."""
    folder = tmp_path_factory.mktemp("pages")
    outcomes = [
        corpus_outcome(name, folder / name)
        for name in ("g14-533-torn-old-seen", "g04-533-clean-all", "g76-550-foreign-commitlog")
    ]
    outcomes += [
        hostile_outcome(folder / "hostile"),
        run_local(AuditRequest("gone", StoreLocation(str(folder / "no<b>ne")), "5.5.0")),
    ]
    out = OutputFolder(str(folder / "out"))
    out.begin([outcome.name for outcome in outcomes])
    for outcome in outcomes:
        context = PageContext(samples.RUN, (outcome.location_text, "--release", outcome.release), "/out/plan.json", index=True)
        assert write_store(out, outcome, context) == []
    assert write_run_files(out, samples.RUN, outcomes) == {}
    for name, own in (("handed", handed.saved()), ("handed-lossy", handed.lossy())):
        (folder / "out" / name).mkdir()
        out.write(f"{name}/report.html", hand_over_html(own))
    return folder / "out"


HANDED = ["handed", "handed-lossy"]  # hand-over pages: no index leads to them
PAGES = [
    *HANDED,
    "g14-533-torn-old-seen",
    "g04-533-clean-all",
    "g76-550-foreign-commitlog",
    "hostile",
    "gone",
    "",
]


def file_of(results: Path, name: str) -> Path:
    return results / name / "report.html" if name else results / "index.html"


WIDER = """() => [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, svg, caption')
  && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 120))"""
# Words of usual length in two lines: no sentence needs that, a long name does.
# A part of a path may break: no command line could be shown on a phone otherwise.
BROKEN = r"""() => {
  const range = document.createRange(), found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = texts.nextNode();) {
    if (node.parentElement.closest('svg, caption, thead, script') || !node.parentElement.checkVisibility()) continue;
    for (const word of node.textContent.matchAll(/(?<![\w/.-])(\d{4}-\d\d-\d\d|[\w.,:]{1,22})(?![\w-])/g)) {
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].filter(r => r.width).map(r => Math.round(r.top))).size > 1) found.push(word[0]);
    }
  }
  return found;
}"""
CONTRAST = """() => {
  const light = rgb => { const c = rgb.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
  const parse = text => text.match(/[0-9.]+/g).map(Number);
  const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    const words = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!words || e.closest('svg, caption') || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color).slice(0, 3)), light(ground(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) poor.push(e.outerHTML.slice(0, 100) + ' ' + ratio.toFixed(2));
  }
  return poor;
}"""


@pytest.mark.parametrize("name", PAGES, ids=lambda name: name or "index")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_renders_quietly_fits_and_can_be_read(browser: Browser, results: Path, name: str, width: int, scheme: Any) -> None:
    witness = Witness()
    page = opened(browser, file_of(results, name), witness, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)") <= width
    assert page.evaluate(WIDER) == []
    assert page.evaluate(BROKEN) == []
    assert page.evaluate("[...document.querySelectorAll('.facts div')].filter(e => e.scrollWidth > e.clientWidth).length") == 0
    assert page.evaluate(CONTRAST) == []
    assert page.locator("h1").count() == 1 and page.locator(".answer h2").first.is_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(246, 247, 249)" if scheme == "light" else "rgb(16, 20, 26)")  # the style sheet is in force
    page.close()
    assert witness.problems == []


@pytest.mark.parametrize("name", PAGES, ids=lambda name: name or "index")
def test_a_page_prints_whole_and_on_white(browser: Browser, results: Path, name: str) -> None:
    witness = Witness()
    page = opened(browser, file_of(results, name), witness, viewport={"width": 760, "height": 1000}, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 760
    closed = page.locator("details:not([open]) > :not(summary)")
    assert all(closed.nth(i).evaluate("e => e.getBoundingClientRect().height > 0") for i in range(min(closed.count(), 10)))
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    page.close()
    assert witness.problems == []


def test_hostile_names_are_text(browser: Browser, results: Path) -> None:
    witness = Witness()
    page = opened(browser, file_of(results, "hostile"), witness)
    text = page.evaluate("document.body.textContent")
    for topic in HOSTILE_TOPICS:
        assert printable(topic) in text
    assert "<b>group</b>" in text
    assert page.locator("script, img, iframe, link, object, form, style:not(head style)").count() == 0
    page.close()
    assert witness.problems == []


def test_what_the_pages_say(browser: Browser, results: Path) -> None:
    expected = {
        "g14-533-torn-old-seen": "Do not start this copy yet: a start cuts 687 valid messages after physical offset 401,332",
        "g04-533-clean-all": "Safe to start once config/ is there",
        "g76-550-foreign-commitlog": "RocketMQ 5.5.0 does not start on this copy: commitlog/00000000000000000000.bak: the name is"
        " not a number",
        "hostile": "Do not start this copy yet: a start cuts 89 valid messages after physical offset 38,590",
        "gone": f"Could not be audited: {results.parent}/no<b>ne: there is nothing of this name",
        "": "3 of 5 stores are not safe to start; 1 not known",
    }
    witness = Witness()
    said = {}
    for name in expected:
        page = opened(browser, file_of(results, name), witness)
        said[name] = page.locator(".answer h2").inner_text()
        page.close()
    assert said == expected
    assert witness.problems == []


def test_the_index_leads_to_each_page_and_back(browser: Browser, results: Path) -> None:
    page = browser.new_page()
    page.goto(file_of(results, "").as_uri())
    links = page.locator("tbody a")
    assert links.count() == len(PAGES) - len(HANDED) - 1
    for number in range(links.count()):
        name = links.nth(number).inner_text()
        links.nth(number).click()
        assert page.locator("h1").inner_text() == name
        page.get_by_text("all stores of this run").click()
        assert "most dangerous" in page.locator("h1").inner_text()
    page.close()


def test_the_map_is_drawn_to_scale_with_patterns(browser: Browser, results: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file_of(results, "g14-533-torn-old-seen").as_uri())
    damaged = page.locator(".segments .k-damaged").first
    assert "p-damaged" in damaged.evaluate("e => getComputedStyle(e).fill")
    bar, part = page.locator(".segments .bar").nth(3).bounding_box(), damaged.bounding_box()
    assert bar and part
    start = (part["x"] - bar["x"]) / bar["width"] * 131_072
    assert abs(start - 8_116) < 131_072 / 240  # where the damage begins, to a cell
    page.close()
