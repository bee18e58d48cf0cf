"""runs, and `diff last`: which runs are listed and which are compared; and the links from the history to the pages of runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs import entry
from jobs.commands.past import difference, fleet
from jobs.commands.past.run_list import read_runs
from jobs.report.pages.fleet_html import fleet_html
from jobs.report.past_views import DifferenceView, RunCompared, StoreDifference, TrendRun
from jobs.report.texts.history_text import last_text, runs_text
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_tables import arrow_table
from jobs.tables.past_runs import History, Pages, link_to
from schemas.rows import Row
from schemas.tables import TABLES
from store_io.base.errors import StoreError
from tests.support.handmade import samples
from tests.support.handmade.history_rows import of_run, value

NO_SESSION: Any = None
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def write(place: Path, run_id: str, days: int, *stores: Row) -> None:
    """Rows of `runs` of so many days ago."""
    began = NOW - timedelta(days=days)
    of_all = {"started_at": began, "complete": True, "starts": True, "lost_messages": 0, "bytes_read": 2048, "tool_version": "1"}
    log = DeltaLog(NO_SESSION, f"file:{place}/runs", TABLES["runs"])
    rows = [{**of_all, **store} for store in stores]
    log.replace_run(run_id, [log.write_file(run_id, arrow_table(rows, TABLES["runs"]))])


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    place = tmp_path / "out/tables"
    out = {"out": str(tmp_path / "out")}
    write(place, "first", 3, {"store": "a", "exit_code": 0, **out}, {"store": "b", "exit_code": 0, **out})
    write(place, "second", 2, {"store": "a", "exit_code": 20, "lost_messages": 1234, "losses": 2, **out})
    write(place, "third", 1, {"store": "b", "exit_code": 10, **out}, {"store": "c", "exit_code": 3, "starts": None, **out})
    (tmp_path / "out/b%20").mkdir()
    (tmp_path / "out/b").mkdir()
    (tmp_path / "out/b/report.html").write_text("")
    (tmp_path / "out/index.html").write_text("")
    (tmp_path / "out/result.json").write_text(json.dumps({"run_id": "third", "tables": str(place)}))
    return place


def test_the_newest_runs_come_first(tables: Path) -> None:
    view = read_runs(History(str(tables)))
    assert [(run.run_id, run.exit_code, run.stores, run.lost_messages) for run in view.runs] == [
        ("third", 3, 2, 0), ("second", 20, 1, 1234), ("first", 0, 2, 0),
    ]  # fmt: skip
    assert [run.page for run in view.runs] == [f"{tables.parent}/index.html", None, None]
    text = runs_text(view).splitlines()
    assert text[0].split() == "started (UTC) code stores lost messages losses rebuildable read run".split()
    assert text[2].split() == ["2026-11-19", "08:00:00", "20", "1", "1,234", "2", "0", "2.05", "KB", "second"]
    assert "0 + ?" in text[1] and text[4] == f"3 runs in {tables}" and text[5].startswith("?: it is not known")
    few = read_runs(History(str(tables)), limit=1)
    assert runs_text(few).splitlines()[2] == f"3 runs in {tables}; listed: the newest 1 (--limit)"
    only = read_runs(History(str(tables)), NOW - timedelta(days=2, hours=1), "a")
    assert [run.run_id for run in only.runs] == ["second"] and only.runs_in_all == 1
    with pytest.raises(StoreError, match="did you mean a"):
        read_runs(History(str(tables)), store="aa")


def test_a_run_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    """Two writers with one run id that met: the newer rows are the run."""
    log = DeltaLog(NO_SESSION, f"file:{tmp_path}/runs", TABLES["runs"])
    row = {"store": "a", "complete": True}
    rows = [{**row, "started_at": NOW - timedelta(hours=hours), "exit_code": code} for hours, code in ((1, 20), (0, 10), (2, 3))]
    log.replace_run("r", [log.write_file("r", arrow_table([one], TABLES["runs"])) for one in rows])
    (run,) = read_runs(History(str(tmp_path))).runs
    assert (run.stores, run.exit_code, run.stores_by_code) == (1, 10, {"10": 1})


def test_the_command_takes_a_folder_or_tables(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for words in ([str(tables.parent)], ["--tables", str(tables)]):
        assert entry.main(["runs", *words, "--limit", "2", "--format", "json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1] and len(said[0]["runs"]) == 2
    moved = tables.rename(tables.parent.parent / "elsewhere")
    (tables.parent / "result.json").write_text(json.dumps({"run_id": "third", "tables": str(moved)}))
    assert entry.main(["runs", str(tables.parent)]) == 0
    (tables.parent / "result.json").write_text("[")
    for words, word in (
        ([str(tables.parent)], "cannot read which tables"),
        (["a", "b"], "takes either DIR"),
        ([], "needs --tables"),
        ([str(tables.parent.parent / "none")], "no audit's tables"),
        ([str(tables.parent), "--limit", "0"], "from 1"),
    ):
        assert entry.main(["runs", *words]) in (2, 3)
        assert word in capsys.readouterr().err


def test_diff_last_compares_the_two_newest_runs_of_each_store(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def compared(_: History, run_a: str, run_b: str, *, stores: frozenset[str]) -> DifferenceView:
        asked.append((run_a, run_b, stores))
        found = [value(StoreDifference, store=name, code=10 if name == "b" else 20) for name in sorted(stores)]
        return DifferenceView(RunCompared(run_a), RunCompared(run_b), max(one.code for one in found), [], found)

    monkeypatch.setattr(difference, "read_difference", compared)
    view = difference.read_last(History(str(tables)))
    assert asked == [("first", "third", {"b"}), ("first", "second", {"a"})]
    assert [[store.store for store in one.stores] for one in view.comparisons] == [["b"], ["a"]]
    assert [one.exit_code for one in view.comparisons] == [10, 20]
    assert view.exit_code == 20 and view.one_run_only == ["c"]
    asked.clear()
    assert difference.read_last(History(str(tables)), "a").exit_code == 20 and asked == [("first", "second", {"a"})]
    with pytest.raises(StoreError, match="store 'c' does not have two runs"):
        difference.read_last(History(str(tables)), "c")
    monkeypatch.setattr("jobs.report.texts.history_text.difference_text", lambda one, _: f"{one.run_b.run_id}\n")
    text = last_text(view).splitlines()
    assert text[0] == "third" and text[2] == "second" and text[4].startswith("all 2 pairs of runs: exit code 20")
    assert text[-1] == "only one run, so nothing was compared: c"


def test_the_page_of_a_report_links_to_pages_that_still_exist(tables: Path) -> None:
    view = fleet.read_fleet(History(str(tables)), NOW)
    pages = {(store.store, run.run_id): run.page for store in view.stores for run in store.trend}
    assert {key: page for key, page in pages.items() if page} == {("b", "third"): f"{tables.parent}/b/report.html"}
    for out, link in ((str(tables.parent / "fleet.html"), "b/report.html"), (None, f"file://{tables.parent}/b/report.html")):
        html = "".join(fleet_html(view, fleet.links_from(out)))
        assert html.count(f'<a href="{link}">') == 2 and html.count("/report.html") == html.count('report.html"') == 2
    assert "report.html" not in "".join(fleet_html(view, fleet.links_from("s3://bucket/fleet.html")))


def test_no_name_of_a_folder_is_more_than_a_path(tmp_path: Path) -> None:
    for name in [*(n for n in samples.HOSTILE_NAMES if "\0" not in n and "\ud800" not in n and len(n) < 200), "a b#?%"]:
        link = link_to(f"/out/{name}/report.html", "/out/fleet.html")
        assert not set(link) & set("<>\"'&#? \n:") and link.endswith("/report.html")
    for out in ("s3://bucket/out", str(tmp_path)):
        assert Pages().page_of(of_run(TrendRun, "s", 1, out=out)) is None
    (tmp_path / "result.json").mkdir()
    assert Pages().index_of("r", str(tmp_path)) is None
