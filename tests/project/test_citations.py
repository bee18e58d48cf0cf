"""Every citation in code and documents leads somewhere: sections ("recovery.md 7.3"), labels ("pitfalls P2", "audit A"), links.

Sections and labels are anchors in docs/: `<a id="7.3"></a>`, `<a id="P2"></a>`. What is a citation and what is not is tested too,
with broken ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT
from tests.support.texts.own_code import said_in

DOCS = ROOT / "docs"
PACKAGES = ("schemas", "store_io", "jobs", "dev", "tests")
CODE = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])
HERE = Path(__file__).resolve()  # its broken samples are no citations

NUMBER = r"\d+(?:\.\d+)?[a-z]?"
MARK = rf"(?:{NUMBER}|[CPID]\d{{1,2}}|(?:audits? )?[A-D])(?![\w.]*\w)"
NEXT = r"(?:,? and |, |; | to )"
_DOCUMENT = re.compile(rf"\b([a-z]+)\.md(?:'s)?(?:,? sections?)?,? (?P<marks>{MARK}(?:{NEXT}{MARK})*)")
_NAMED = re.compile(r"\b([a-z]+)\.md\b")
_LABEL = re.compile(r"(?<![\w%.#/-])[CPID]\d{1,2}(?![\w%])")
_LABELS = re.compile(r"(?<![\w%.#/-])([CPID])(\d{1,2}) to \1(\d{1,2})(?![\w%])")
_AUDIT = re.compile(r"\b[Aa]udits? ([A-D])(?: to ([A-D]))?(?!\w)")
_WIDTHS = {"I16", "I32", "I64"}  # names of integers
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ID = re.compile(r'<a id="([^"]+)"></a>')


def without_code(text: str) -> str:
    """A page without its code blocks, and without code in its lines."""
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def slug(heading: str) -> str:
    """The anchor that a heading gets from common renderers."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    text = page.read_text("utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return frozenset(_ID.findall(text)) | {slug(heading) for heading in _HEADING.findall(prose)}


def expanded(marks: str) -> Iterator[str]:
    """Each mark of a list like "5.1, 5.3b", "10 to 14", "D1 to D9" or "audits A to D"."""
    whole = re.findall(r"(?:audits? )?([\w.]*\w)(?: to (?:audits? )?([\w.]*\w))?", marks.replace(" and ", ", "))
    for first, last in whole:
        yield first
        if last:
            yield last
        label, start, end = re.match(r"[A-Z]?", first), re.search(r"\d+$", first), re.search(r"\d+$", last)
        if label and start and end and "." not in first + last:
            yield from (f"{label[0]}{number}" for number in range(int(start[0]), int(end[0])))


def unresolved_sections(text: str) -> list[str]:
    """Citations of documents, and of their sections, that lead nowhere."""
    text = re.sub(r"\s*\n\s*(?:#\s*)?", " ", text)
    missing = [f"{name}.md" for name in sorted(set(_NAMED.findall(text))) if known(name) and page_of(name) is None]
    for found in _DOCUMENT.finditer(text):
        page = page_of(found[1])
        if page is not None:
            missing += [f"{found[1]}.md {mark}" for mark in expanded(found["marks"]) if mark not in anchors(page) and cited(mark)]
    return missing


@cache
def page_of(name: str) -> Path | None:
    """The page of that name in docs/ or docs/kinds/, if there is one."""
    return next((page for page in (DOCS / f"{name}.md", DOCS / "kinds" / f"{name}.md") if page.is_file()), None)


def known(name: str) -> bool:
    """Whether a name with .md behind it means a document: not a file of a test, or a page beside the code."""
    pages = ("formats", "recovery", "pitfalls", "contract", "architecture", "glossary", "performance", "versioning")
    return name in (*pages, "rocksdb", "timer", "dledger", "controller", "compaction", "config", "heal")


def cited(mark: str) -> bool:
    return mark not in _WIDTHS


def unresolved_labels(text: str) -> list[str]:
    """Labels of pitfalls and audits that there are none of."""
    there = anchors(DOCS / "pitfalls.md")
    labels = set(_LABEL.findall(text)) - _WIDTHS
    for kind, first, last in _LABELS.findall(text):
        labels |= {f"{kind}{number}" for number in range(int(first), int(last) + 1)}
    labels |= {letter for pair in _AUDIT.findall(text) for letter in pair if letter}
    return sorted(labels - there)


def unresolved_links(page: Path, text: str) -> list[str]:
    """Links to files that are not there, or to places that their page does not have."""
    missing = []
    for target in _LINK.findall(without_code(text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or place and file.suffix == ".md" and place not in anchors(file):
            missing.append(target)
    return missing


def said(path: Path) -> str:
    """Docstrings and comments of a module; comments that follow one another are one text."""
    there = said_in(path)
    return "\n".join([*there.docstrings, *(comment.lstrip("# ") for comment in there.comments)])


@pytest.mark.parametrize("package", PACKAGES)
def test_what_code_cites_is_there(package: str) -> None:
    paths = [path for path in CODE if path.relative_to(ROOT).parts[0] == package and path != HERE]
    assert paths
    missing: dict[str, list[str]] = {}
    for path in paths:
        text = path.read_text("utf-8")
        found = unresolved_sections(text)
        if unresolved_labels(text):  # few: what a person reads in a module takes long to find
            found += unresolved_labels(said(path))
        if found:
            missing[str(path.relative_to(ROOT))] = found
    assert missing == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_pages_cite_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    assert unresolved_sections(without_code(text)) == []
    assert unresolved_labels(without_code(text)) == []
    assert unresolved_links(page, text) == []


def test_citations_are_found_at_all() -> None:
    """The patterns match what the code really writes."""
    text = "\n".join(said(path) for path in CODE if path != HERE and _LABEL.search(path.read_text("utf-8")))
    joined = re.sub(r"\s*\n\s*", " ", text)
    sections = {(found[1], mark) for found in _DOCUMENT.finditer(joined) for mark in expanded(found["marks"])}
    assert len(sections) > 20 and {"recovery", "formats", "pitfalls"} <= {name for name, _ in sections}
    assert len(set(_LABEL.findall(text)) - _WIDTHS) > 10


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("(recovery.md 7.3)", []),
        ("recovery.md 5.1, 5.3b, 10; pitfalls D1 to D9", []),
        ("formats.md 1, 8, 10 to 15", []),
        ("recovery.md sections 2 and 6; contract.md's STATE", []),
        ("pitfalls.md, audits A to D.", []),
        ("recovery.md 7.9", ["recovery.md 7.9"]),
        ("recovery.md section 4, 5.8 and 6", ["recovery.md 5.8"]),
        ("formats.md 12 to 16", ["formats.md 16"]),
        ("rocksdb.md 9 and timer.md 10", ["timer.md 10"]),
        ("(recovery.md 3,\n    # 5.3c)", ["recovery.md 5.3c"]),
        ("pitfalls.md, P2 and P99", ["pitfalls.md P99"]),
        ("pitfalls.md, audit D to E", []),  # E is no audit: see the labels
    ],
)
def test_a_broken_section_is_found(text: str, missing: list[str]) -> None:
    assert unresolved_sections(text) == missing


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("(audit A; C13, P14)", []),
        ("audits A to D, C6 to C10, I6, I7; an int32 is I32, a letter %C3", []),
        ("pitfall P22", ["P22"]),
        ("I9 to I13", ["I12", "I13"]),
    ],
)
def test_a_broken_label_is_found(text: str, missing: list[str]) -> None:
    assert unresolved_labels(text) == missing


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("[a](docs/recovery.md#7.3), [b](LICENSE), [c](https://example.org/#x), `[d](nowhere)`", []),
        ("[a](docs/nothing.md)", ["docs/nothing.md"]),
        ("[a](docs/recovery.md#7.9)", ["docs/recovery.md#7.9"]),
    ],
)
def test_a_broken_link_is_found(text: str, missing: list[str]) -> None:
    assert unresolved_links(ROOT / "README.md", text) == missing


def test_every_java_class_of_the_recovery_rules_comes_with_a_method() -> None:
    text = (DOCS / "recovery.md").read_text("utf-8")
    named = re.findall(r"`((?:[A-Z][A-Za-z]*[a-z]\.)*[A-Z][A-Za-z]*[a-z])((?:\.[a-z]\w*)?)(?:\(\))?`", text)
    classes = {name for name, _ in named if not name.endswith(("Error", "Exception"))}
    assert len(classes) > 10
    assert sorted(classes - {name for name, method in named if method}) == []
    for line in re.findall(r"Source: (.+)", text):
        assert re.search(r"`[A-Z]\w+\.[a-z]\w+`", line), line


def test_numbered_headings_have_their_anchor() -> None:
    """So that "recovery.md 7.3" and a link to recovery.md#7.3 mean the same place."""
    for page in DOCS.rglob("*.md"):
        text = page.read_text("utf-8")
        for number in re.findall(rf"^#{{2,4}} ({NUMBER})\.? ", text, re.MULTILINE):
            assert number in _ID.findall(text), f"{page.name} {number}"
        found = _ID.findall(text)
        assert len(found) == len(set(found)), f"{page.name}: an anchor twice"
