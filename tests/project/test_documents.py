"""The documents: short enough to be read, with an answer to each verdict, and a site without a warning.

That their links lead somewhere is in `test_citations`, that their commands print what they show in `test_readme`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.report.texts import safety_text
from jobs.report.texts.safety_text import judge
from schemas.finding_codes import CATALOGUE, STOP_REASONS
from schemas.sources import SOURCES
from schemas.tables import DATASETS, TABLES
from store_io.audit.outcome.safety import Start, decide
from tests import ROOT
from tests.support.handmade import samples
from tests.support.texts.own_code import said_in

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


def answers() -> list[str]:
    """The first words of each row of README's table of verdicts, as a pattern: "…" is whatever the verdict names there."""
    table = (ROOT / "README.md").read_text("utf-8").partition("| it says |")[2].partition("\n\n")[0]
    return re.findall(r"^\| ([A-Z…].+?) \|", table, re.MULTILINE)


def answers_to(headline: str) -> list[str]:
    found = [row for row in answers() if re.match(".+".join(map(re.escape, row.split("…"))), headline)]
    return [row for row in found if not any(other != row and other.startswith(row) for other in found)]


def test_the_readme_says_what_to_do_about_each_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    headlines = {judge(outcome).headline for outcome in samples.every_kind()}
    for start in Start:
        decision = replace(decide(samples.damaged()), start=start, alone=None, lacking=None)
        monkeypatch.setattr(safety_text, "decide", lambda _, decision=decision: decision)
        headlines.add(judge(samples.damaged()).headline)
    assert len(headlines) > len(Start)
    assert {headline: len(answers_to(headline)) for headline in headlines} == dict.fromkeys(headlines, 1)


def test_the_readme_names_no_verdict_that_there_is_not() -> None:
    modules = ("jobs/report/texts/safety_text.py", "store_io/audit/outcome/safety.py", "store_io/wording/not_whole.py")
    said = [text for module in modules for _, text in said_in(ROOT / module).literals] + [CATALOGUE["commitlog_empty"].meaning]
    pieces = [(row, piece.strip()) for row in answers() for piece in row.split("…")]
    assert len(pieces) > 20
    assert [row for row, piece in pieces if not any(piece in text for text in said)] == []


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
    assert printed - named == {"Verdict", "Reads", "Copy", "Read", "Results", "Problem"}


def test_the_page_for_nights_shows_the_crontab_as_it_is() -> None:
    for name in ("crontab", "fleet.toml"):
        assert (ROOT / "examples" / "schedule" / name).read_text() in (ROOT / "docs" / "nightly.md").read_text()
