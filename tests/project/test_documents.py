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
