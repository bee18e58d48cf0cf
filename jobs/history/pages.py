"""Finds the pages of earlier runs, if they still exist: a later run into the same --out replaces them."""

from __future__ import annotations

import json
import os
from urllib.parse import quote

from jobs.output import INDEX, RESULT
from schemas.rows import Row
from store_io.base.errors import parsed

_LONGEST = 64 << 20  # of a result.json, bytes: some hundred thousand stores


class Pages:
    """Pages of runs on this machine. Each --out is looked at once."""

    def __init__(self) -> None:
        self._runs: dict[str, str | None] = {}  # --out -> the run whose results are there

    def index_of(self, run: Row) -> str | None:
        """Return the path of the run's index.html; None if it does not exist any more, or not on this machine."""
        return self._page(run, INDEX)

    def page_of(self, run: Row) -> str | None:
        """The path of the page of a store in a run. run: its row of `runs`, with run_id, store, folder and out."""
        return self._page(run, f"{run.get('folder') or run['store']}/report.html")

    def _page(self, run: Row, name: str) -> str | None:
        out = run.get("out")
        if not out or not out.startswith("/") or run["run_id"] != self._run_in(out):
            return None
        path = f"{out}/{name}"
        return path if os.path.isfile(path) else None

    def _run_in(self, out: str) -> str | None:
        if out not in self._runs:
            self._runs[out] = _run_of(f"{out}/{RESULT}")
        return self._runs[out]


def _run_of(result: str) -> str | None:
    try:
        if not os.path.isfile(result) or os.path.getsize(result) > _LONGEST:
            return None
        with open(result, encoding="utf-8") as file:
            found = parsed(json.loads, file.read())
    except (OSError, ValueError):
        return None
    run_id = found.get("run_id") if isinstance(found, dict) else None
    return run_id if isinstance(run_id, str) else None


def link_to(path: str, page: str | None) -> str:
    """Return a link to a local file in a page.

    page: the future place of that page on this machine; None: nobody knows, or elsewhere.
    """
    if page is None:
        return f"file://{quote(path, errors='surrogateescape')}"
    return quote(os.path.relpath(path, os.path.dirname(page)), errors="surrogateescape")
