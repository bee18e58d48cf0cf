"""The documents: short enough to be read, with an answer to each verdict, and a site without a warning.

That their links lead somewhere is in `test_citations`, that their commands print what they show in `test_readme`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.answer import Answer, StepName
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from schemas.sources import SOURCES
from schemas.tables import DATASETS, TABLES
from store_io.answer.answers import answer_of
from store_io.answer.headline import verdict_text
from tests import ROOT
from tests.support.handmade import samples

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LONGEST_LINE = 130  # but tables, code, and what the tool printed
MOST_WORDS = 3_000  # a page that a person reads at a sitting
REFERENCE = {"contract.md", "formats.md", "recovery.md", "performance.md", "CHANGELOG.md"}  # looked up, not read
README_BYTES = 12 * 1024
LOADED = re.compile(r"""(?:<link[^>]*rel="stylesheet"[^>]*href|<(?:script|img)[^>]*src)="(?:https?:)?//""")


def words_of(page: Path) -> int:
    return len(page.read_text("utf-8").split())


def lines_too_long(text: str) -> list[str]:
    prose = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in prose.splitlines() if len(line) > LONGEST_LINE and not line.startswith(("|", "    ", "!["))]


def test_long_lines_are_found_outside_of_tables_and_code() -> None:
    long = "word " * 30
    assert lines_too_long(f"{long}\n* {long}\n") == [long, f"* {long}"]
    assert lines_too_long(f"| {long} |\n\n```console\n{long}\n```\n\n    {long}\n") == []


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_a_page_can_be_read(page: Path) -> None:
    assert lines_too_long(page.read_text("utf-8")) == []
    assert page.name in REFERENCE or words_of(page) <= MOST_WORDS


def test_the_front_page_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


def test_the_readme_has_a_row_for_each_of_the_eight_answers_in_their_order() -> None:
    table = (ROOT / "README.md").read_text("utf-8").partition("| answer |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \| (.+) \|$", table, re.MULTILINE)
    assert [row[0] for row in rows] == list(Answer)
    codes = {answer: {int(code) for code in codes.split(",")} for answer, codes, _ in rows}
    for outcome in samples.every_kind():
        if outcome.replicas.copies:
            continue  # these samples lack the finding that gives such a copy its code
        assert outcome.exit_code in codes[answer_of(outcome)], verdict_text(outcome)


def test_the_page_for_results_has_a_row_for_each_step() -> None:
    table = (ROOT / "docs" / "results.md").read_text("utf-8").partition("| step |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(StepName)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {f"findings/{code}.html" for code in (*CATALOGUE, *STOP_REASONS)} <= pages
    assert {"index.html", "incident.html", "findings.html", "search.html"} <= pages
    for page in ("index.html", "findings/queue_entry_missing.html"):
        text = (tmp_path / "site" / page).read_text("utf-8")
        assert not LOADED.search(text), page
    listed = re.findall(r'<a id="(\w+)"></a><code>\1</code>', (tmp_path / "site" / "findings.html").read_text("utf-8"))
    assert sorted(listed) == sorted([*CATALOGUE, *STOP_REASONS])
    columns = re.findall(r"<td><code>(\w+)</code></td>", (tmp_path / "site" / "columns.html").read_text("utf-8"))
    declared = (*TABLES.values(), *DATASETS.values(), *SOURCES.values())
    assert columns == [column.name for table in declared for column in table]
    assert 'href="findings.html"' in (tmp_path / "site" / "contract.html").read_text("utf-8")  # in the checkout: to the catalogue
    assert 'href="contract.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")  # a link of README.md's to docs/


def test_the_table_of_summary_lines_in_the_page_for_results_names_what_an_audit_prints() -> None:
    """But for lines that need no word: where the results are, what was read."""
    code = (ROOT / "jobs" / "report" / "texts" / "summary_text.py").read_text()
    printed = set(re.findall(r'_rows?\("([A-Z][a-z ]+)"', code)) | set(re.findall(r'"([A-Z][a-z ]+)" if not ', code))
    table = (ROOT / "docs" / "results.md").read_text()
    named = {name for row in re.findall(r"^\| ([A-Z][A-Za-z, ]+) \|", table, re.MULTILINE) for name in row.split(", ")}
    assert {"Timers", "Closer", "Releases", "Replicas", "Incomplete", "Not read"} <= printed & named
    assert printed - named == {"Reads", "Copy", "Read", "Results", "Problem"}


def test_the_page_for_nights_shows_the_crontab_as_it_is() -> None:
    for name in ("crontab", "fleet.toml"):
        assert (ROOT / "examples" / "schedule" / name).read_text() in (ROOT / "docs" / "nightly.md").read_text()
