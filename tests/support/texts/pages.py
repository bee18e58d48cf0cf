"""What tests ask of a page: its tags, its text, and that it loads nothing and runs at most our own script. For tests with a
browser and without."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from jobs.report.pages.index_html import index_html
from jobs.report.pages.page import template_text
from jobs.report.pages.report_html import PageContext, report_html
from schemas.outcome import Outcome
from tests.support.handmade import samples

VOID = {"meta", "br", "input", "wbr"}
INERT = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "nav", "footer", "div", "span", "p", "h1",
    "h2", "h3", "b", "code", "bdi", "br", "wbr", "ul", "ol", "li", "dl", "dt", "dd", "details", "summary", "figure", "figcaption",
    "label", "input", "a", "table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "defs", "pattern", "rect", "path",
    "circle", "line", "text",
}  # fmt: skip


class Page(HTMLParser):
    """tags: with their attributes, in order.  text: all that is read, but for the style sheet, with white space as shown."""

    def __init__(self, source: str):
        super().__init__()
        self.source = source
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every such tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    def problems(self) -> list[str]:
        """What a page that is inert and can be heard must not have."""
        found = [f"<{tag}> is not closed" for tag in self.open]
        scripts = self.all("script")
        found += [f"<{tag}>" for tag, _ in self.tags if tag not in INERT and tag != "script"]
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        found += [f"id {name} twice" for name in set(ids) if ids.count(name) > 1]
        for tag, attributes in self.tags:
            found += [f"{name} of <{tag}>" for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc")]
            link = attributes.get("href", "")
            if link and not (link.startswith("#") and link[1:] in ids or link == "../index.html" or is_store_link(link)):
                found.append(f"a link to {link}")
            found += [
                f"{attributes[n]} is not there" for n in ("aria-labelledby",) if n in attributes and attributes[n] not in ids
            ]
            if tag == "svg" and not (attributes.get("aria-hidden") or attributes.get("aria-label")):
                found.append("a drawing without words")
            if tag == "th" and attributes.get("scope") not in ("col", "row"):
                found.append("a table's head without a scope")
        if self.all("html") != [{"lang": "en"}] or len(self.all("h1")) != 1 or len(self.all("main")) != 1:
            found.append("no language, or not one heading and one main part")
        style = self.source.partition("<style>")[2].partition("</style>")[0]
        script = self.source.partition("<script>")[2].partition("</script>")[0]
        if scripts not in ([], [{}]) or bool(scripts) != bool(script) or script not in ("", template_text("tools.js")):
            found.append("another script than ours")
        runs = f"script-src 'sha256-{digest_of(script)}'; " if script else ""
        policy = f"default-src 'none'; {runs}style-src 'sha256-{digest_of(style)}'; base-uri 'none'; form-action 'none'"
        if [m.get("content") for m in self.all("meta") if m.get("http-equiv") == "Content-Security-Policy"] != [policy]:
            found.append("another policy")
        if "@import" in style or style.count("url(") != style.count("url(#"):
            found.append("the style sheet loads something")
        return found


def digest_of(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def is_store_link(link: str) -> bool:
    name, _, rest = link.partition("/")
    return rest == "report.html" and name not in ("", ".", "..") and ":" not in name


WORDS = ("/copies/a b", "--release", "4.9.8", "--broker-conf", "/conf/b'c.conf")
CONTEXT = PageContext(samples.RUN, WORDS, "/out/a/plan.json", index=True)


def page_of(outcome: Outcome, context: PageContext | None = CONTEXT) -> Page:
    return Page("".join(report_html(outcome, context)))


def index_of(outcomes: list[Outcome]) -> Page:
    return Page("".join(index_html(samples.RUN, outcomes)))


def without_style(text: str) -> str:
    """The style sheet is the same in all of them: the golden files leave it out."""
    text = re.sub(r"<style>.*?</style>", "<style></style>", text, flags=re.DOTALL)
    return re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-", text)
