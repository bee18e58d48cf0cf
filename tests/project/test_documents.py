"""The documents as a site: built without a warning, with every page in its navigation and nothing loaded from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from schemas.finding_codes import CATALOGUE, STOP_REASONS
from tests import ROOT

LOADED = re.compile(r"""(?:<link[^>]*rel="stylesheet"[^>]*href|<(?:script|img)[^>]*src)="(?:https?:)?//""")


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {f"findings/{code}.html" for code in (*CATALOGUE, *STOP_REASONS)} <= pages
    assert {"index.html", "INCIDENT.html", "findings.html"} <= pages
    for page in ("index.html", "findings/queue_entry_missing.html"):
        text = (tmp_path / "site" / page).read_text("utf-8")
        assert not LOADED.search(text), page
    assert 'href="contract.html"' in (tmp_path / "site" / "index.html").read_text("utf-8")  # a link of README.md's to docs/


def test_the_table_of_summary_lines_in_the_page_for_incidents_names_what_an_audit_prints() -> None:
    """But for lines that need no word: where the results are, what was read."""
    code = (ROOT / "jobs" / "report" / "texts" / "summary_text.py").read_text()
    printed = set(re.findall(r'_rows?\("([A-Z][a-z ]+)"', code)) | set(re.findall(r'"([A-Z][a-z ]+)" if not ', code))
    table = (ROOT / "INCIDENT.md").read_text()
    named = {name for row in re.findall(r"^\| ([A-Z][A-Za-z, ]+) \|", table, re.MULTILINE) for name in row.split(", ")}
    assert {"Timers", "Closer", "Releases", "Replicas", "Incomplete", "Not read"} <= printed & named
    assert printed - named == {"Verdict", "Reads", "Copy", "Read", "Results", "Problem"}
