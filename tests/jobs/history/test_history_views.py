"""What report, diff and coverage make of rows, without Spark: literal rows in, literal answers out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import cli
from jobs.command_line import options
from jobs.command_line.options import Command
from jobs.history import coverage, difference, fleet, reading
from jobs.report.pages.fleet_html import fleet_html
from jobs.report.texts.history_text import coverage_text, difference_text, fleet_text
from jobs.report.texts.judgement import judge
from jobs.tables.delta_tables import run_rows
from store_io.base.errors import StoreError, UsageError
from tests.support import samples
from tests.support.samples import HOSTILE

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
DAY = 86_400_000_000
T0 = 1_795_000_000_000_000
Row = dict[str, Any]


# ---- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "x", "--tables", "t"],
        ["report", "--tables", "t", "--since", "soon"],
        ["diff", "a", "--tables", "t"],
        ["diff", "a", "b", "--tables", "t", "--format", "html"],
        ["coverage", "--tables", "t"],
        ["coverage", "--tables", "t", "--within", "0x"],
    ],
)
def test_faults_of_the_command_line_are_told_before_spark_starts(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.session.start", lambda *_: pytest.fail("Spark was started"))
    command = options.parse(words)
    module = {"report": fleet, "diff": difference, "coverage": coverage}[command.name]
    with pytest.raises(UsageError):
        module.run(command)


@contextmanager
def no_spark(*_: object) -> Iterator[Any]:
    yield SimpleNamespace(spark=None)


def test_what_the_commands_write(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("jobs.session.start", no_spark)
    for module in (difference, coverage):
        monkeypatch.setattr(module, "History", lambda spark, uri: uri)
    view = diff(A, B, [place(0, 1, None, 1, "rebuildable")])
    monkeypatch.setattr(difference, "read_difference", lambda *words: asked.append(words) or view)
    assert cli.main(["diff", "r1", "r2", "--tables", "/t", "--store", "s"]) == 10
    assert asked == [("/t", "r1", "r2", "s")] and capsys.readouterr().out == difference_text(view)
    assert cli.main(["diff", "r1", "r2", "--tables", "/t", "--out", f"{tmp_path}/d.json"]) == 10
    assert json.loads((tmp_path / "d.json").read_text())["exit_code"] == 10 and capsys.readouterr().out == ""
    monkeypatch.setattr(coverage, "read_coverage", lambda uri, now, since, store: asked.append(now - since) or covered({0: 2}))
    assert cli.main(["coverage", "--tables", "/t", "--within", "7d", "--format", "json"]) == 0
    assert asked[-1] == timedelta(days=7) and json.loads(capsys.readouterr().out)["bytes_verified"] == 100


def test_a_report_is_not_written_into_a_store(tmp_path: Any) -> None:
    (tmp_path / "store").mkdir()
    command = Command("report", options={"--out": f"{tmp_path}/store/r.html"})
    with pytest.raises(UsageError, match="lies inside the store"):
        reading.put(command, "text", [f"{tmp_path}/store", ""])
    outside = Command("report", options={"--out": f"{tmp_path}/r.html"})
    reading.put(outside, "text\ud800", [f"{tmp_path}/store"])
    assert (tmp_path / "r.html").read_text() == "text\\ud800"


# ---- report --------------------------------------------------------------------------------------------------------


def run_row(store: str, run: int, code: int = 0, **more: Any) -> Row:
    row = dict.fromkeys(fleet.COLUMNS)
    return {
        **row, "level": "full",
        "run_id": f"r{run}", "store": store, "started_at": T0 + run * DAY, "exit_code": code, "complete": code != 3,
        "verdict": f"verdict {code}", "starts": None if code == 3 else True, "lost_messages": 0, "lost_bytes": 0, "losses": 0,
        "rebuildable": 0, "notes": 0, "messages": 10, "segment_count": 2, "damaged_extents": 0, "bytes_read": 2048,
        "seconds": 1.5, "location": f"/copies/{store}", "release": "5.3.3", "tool_version": "1", "rules_version": "1", **more,
    }  # fmt: skip


def view_of(rows: list[Row], codes: list[Row] | None = None, ended: dict[str, int] | None = None, since: Any = None) -> Row:
    gone = [{"store": name, "started_at": at, "run_id": "r0"} for name, at in (ended or {}).items()]
    known = reading.one_per_run([*rows, *gone])
    return fleet.fleet_view(reading.one_per_run(rows), codes or [], known, "/t", NOW, since)


def test_the_unsafe_copies_come_first() -> None:
    rows = [
        run_row("calm", 2),
        run_row("lost-12", 2, 20, lost_messages=12, losses=1),
        run_row("lost-300", 2, 20, lost_messages=300, losses=1),
        run_row("unread", 2, 3),
        run_row("hurt", 2, 20, losses=900),  # a start loses nothing more
        run_row("stuck", 2, 10, starts=False, refusal="no file of 0 bytes"),
        run_row("behind", 2, 10, rebuildable=7),
        run_row("calm", 1, 20, lost_messages=5000),  # long repaired
        run_row("slave", 2, lacks_messages=30),
        run_row("split", 2, lacks_messages=5, diverged=True),
        run_row("wiped", 2, 20, messages=0, losses=1),
        run_row("new", 2, messages=0, notes=1),
    ]
    codes = [
        {"store": "lost-300", "run_id": "r2", "severity": s, "code": c, "count": n, "findings": 1, "file": "f"}
        for s, c, n in [
            ("note", "n", 900),
            ("rebuildable", "b", 40),
            ("loss", "a", 1),
            ("rebuildable", "c", 41),
            ("loss", "d", 2),
        ]
    ] + [
        {"store": store, "run_id": "r2", "severity": severity, "code": code, "count": 1, "findings": 1, "file": "commitlog"}
        for store, severity, code in (("wiped", "loss", "commitlog_emptied"), ("new", "note", "commitlog_empty"))
    ]
    view = view_of(rows, codes, {"old": T0 - DAY}, datetime(2026, 11, 18, tzinfo=UTC))
    assert [(s["store"], s["safety"]) for s in view["stores"]] == [
        ("lost-300", "stop"), ("lost-12", "stop"), ("wiped", "gone"), ("hurt", "care"), ("unread", "unknown"),
        ("stuck", "refuses"), ("behind", "rebuild"), ("split", "diverged"), ("slave", "lacks"), ("new", "empty"),
        ("calm", "safe"),
    ]  # fmt: skip
    assert view["stores"][0]["why"] == "d 2, a 1, c 41 and 1 more"
    assert view["stores"][5]["why"] == "no file of 0 bytes"
    assert view["totals"] == {
        "stores": 11, "stop": 2, "gone": 1, "unknown": 1, "refuses": 1, "diverged": 1, "lacks": 1, "care": 1, "rebuild": 1,
        "empty": 1, "safe": 1, "lost_messages": 312, "lost_bytes": 0,
    }  # fmt: skip
    assert [run["exit_code"] for run in view["stores"][-1]["trend"]] == [20, 0]
    assert (view["runs"], view["not_audited_since"]) == (2, [{"store": "old", "last": "2026-11-17T11:06:40Z"}])
    text = fleet_text(view)
    assert "\x1b" not in text and text.count("\n") == 11 + 4
    assert text.splitlines()[1].split()[:7] == ["20", "lost-300", "do", "not", "start", "300", "2026-11-20"]
    assert "not audited since then: old (last 2026-11-17 11:06:40 UTC)" in text
    assert "\x1b[31m" in fleet_text(view, colour=True)
    json.loads(reading.json_text(view))


def test_a_run_that_stands_twice_counts_once() -> None:
    """Two writers with one run id that met: the newer rows are the run."""
    older, newer = run_row("a", 1, 20), {**run_row("a", 1, 0), "started_at": T0 + DAY + 5}
    assert reading.one_per_run([newer, older]) == [newer]


def test_safety_is_what_the_reports_of_single_stores_say() -> None:
    """The same outcomes, judged from their rows of the tables and by the page of each store."""
    made = (
        samples.clean, samples.damaged, samples.not_audited, samples.refused, samples.empty, samples.emptied, samples.shrunk,
        samples.already_damaged,
    )  # fmt: skip
    outcomes = [make() for make in made] + [samples.behind(make(), parted) for make in made for parted in (False, True)]
    for outcome in outcomes:
        (row,) = run_rows(samples.RUN, [outcome])["runs"]
        codes = [{"code": finding.code, "severity": finding.severity} for finding in outcome.findings]
        assert fleet.safety_of(row, codes) == judge(outcome).kind, outcome.name
    assert len({judge(outcome).kind for outcome in outcomes}) > 7


# ---- diff: findings ------------------------------------------------------------------------------------------------


def place(start: int | None, end: int | None, a: int | None, b: int | None, severity: Any = "loss", **more: Any) -> Row:
    words = {"message": "m", "expected": None, "actual": None, "next": "n"}
    before, after = severity if isinstance(severity, tuple) else (severity, severity)
    return {
        "store": "s", "code": "c", "file": "f", "start": start, "end": end, "phy_offset": None, "topic": None, "queue_id": None,
        "queue_offset": None, "count_a": a, "count_b": b, "words_a": {"severity": before, **words} if a is not None else None,
        "words_b": {"severity": after, **words} if b is not None else None, **more,
    }  # fmt: skip


def matched(*rows: Row) -> tuple[list[Any], ...]:
    return tuple([(f["start"], f["end"], f["count"]) for f in found] for found in difference.match_findings(rows))


@pytest.mark.parametrize(
    ("rows", "new", "grown", "fixed", "still"),
    [
        ([place(0, 10, None, 1)], [(0, 10, 1)], [], [], []),
        ([place(0, 10, 1, None)], [], [], [(0, 10, 1)], []),
        ([place(0, 10, 1, None), place(10, 20, None, 1)], [(10, 20, 1)], [], [(0, 10, 1)], []),  # side by side is not the same
        ([place(0, 10, 1, None), place(0, 30, None, 3)], [], [(0, 30, 3)], [], []),
        ([place(0, 30, 3, None), place(0, 10, None, 1)], [], [], [], [(0, 10, 1)]),  # less of the same
        ([place(0, 30, 3, None), place(0, 10, None, 1), place(20, 30, None, 1)], [], [], [], [(0, 10, 1), (20, 30, 1)]),
        ([place(0, 10, 1, None), place(20, 30, 1, None), place(0, 30, None, 2)], [], [], [], [(0, 30, 2)]),  # folded otherwise
        ([place(0, 10, 2, 5)], [], [(0, 10, 5)], [], []),
        ([place(0, 10, 5, 5, ("note", "loss"))], [], [(0, 10, 5)], [], []),
        ([place(0, 10, 5, 5, ("loss", "note"))], [], [], [], [(0, 10, 5)]),
        ([place(None, None, 1, None), place(None, None, None, 1, phy_offset=4)], [], [], [], [(None, None, 1)]),
        ([place(0, 10, 1, None), place(5, 10, None, 1, topic="t")], [(5, 10, 1)], [], [(0, 10, 1)], []),  # another queue's
        ([place(0, 10, 1, None, file="a", phy_offset=7), place(40, 50, None, 1, file="b", phy_offset=7)],
         [], [], [], [(40, 50, 1)]),
        ([place(0, 10, 1, None, file="a", phy_offset=7), place(40, 50, None, 1, file="b", phy_offset=8)],
         [(40, 50, 1)], [], [(0, 10, 1)], []),
        ([place(5, 5, 1, None), place(5, 5, None, 2)], [], [(5, 5, 2)], [], []),  # an empty range is a place too
    ],
)  # fmt: skip
def test_findings_are_matched(rows: list[Row], new: list[Any], grown: list[Any], fixed: list[Any], still: list[Any]) -> None:
    assert matched(*rows) == (new, grown, fixed, still)
    assert matched(*reversed(rows)) == (new, grown, fixed, still)


def test_what_a_finding_was_is_told() -> None:
    _, (grown,), _, _ = difference.match_findings([place(0, 10, 2, None, "note"), place(5, 30, None, 3)])
    assert grown["was"] == {"start": 0, "end": 10, "count": 2, "severity": "note"}
    assert (grown["severity"], grown["start"], grown["end"]) == ("loss", 5, 30)


# ---- diff: files ---------------------------------------------------------------------------------------------------


def segment(number: int, digest: str | None = "d", wrote: int | None = 100, size: int = 100, **more: Any) -> Row:
    file = f"commitlog/{number * 100:020}"
    return {
        "store": "s",
        "file": file,
        "base_offset": number * 100,
        "size_bytes": size,
        "digest": digest,
        "wrote": wrote,
        "known": True,
        "modified_ns": 1,
        "problem": None,
        **more,
    }


BEFORE = [segment(0), segment(1), segment(2), segment(3, wrote=50), segment(4, wrote=None)]


def test_a_log_that_only_grew() -> None:
    after = [segment(1), segment(2), segment(3, "e"), segment(4, "e", 30), segment(5, wrote=None)]
    found = difference.compare_log(BEFORE, after)
    assert (found["changed"], found["missing"], found["appeared"], found["shrank"]) == ([], [], [], False)
    assert (found["retired"], found["same"], found["added"]) == (
        {"files": 1, "bytes": 100}, {"files": 2, "bytes": 200}, {"files": 1, "bytes": 100},
    )  # fmt: skip
    assert (found["end"], found["last"]["wrote"]) == ([350, 430], [50, 100])


@pytest.mark.parametrize(
    ("after", "key", "value"),
    [
        ([segment(0), segment(1, "e"), *BEFORE[2:]], "changed", [("commitlog/00000000000000000100", False)]),
        ([segment(0), segment(1, "e", modified_ns=2), *BEFORE[2:]], "changed", [("commitlog/00000000000000000100", True)]),
        ([segment(0), segment(1, None, size=90), *BEFORE[2:]], "changed", [("commitlog/00000000000000000100", False)]),
        ([segment(0), segment(1, None), *BEFORE[2:]], "not_compared", {"files": 1, "bytes": 100}),
        ([*BEFORE[:3], segment(3, "e", 50), BEFORE[4]], "changed", []),  # the one that was written last
        ([segment(0), *BEFORE[2:]], "missing", ["commitlog/00000000000000000100"]),
        (BEFORE[:2], "missing", ["commitlog/00000000000000000200", "commitlog/00000000000000000300"]),
        ([], "missing", [row["file"] for row in BEFORE[:4]]),
        ([*BEFORE[:3], segment(3, "e", 40)], "shrank", True),
        ([*BEFORE, segment(1, file="commitlog[2]/00000000000000000100")], "appeared", ["commitlog[2]/00000000000000000100"]),
    ],
)
def test_a_log_in_which_a_broker_did_not_write(after: list[Row], key: str, value: Any) -> None:
    found = difference.compare_log(BEFORE, after)[key]
    assert ([(row["file"], row["modified"]) for row in found] if key == "changed" else found) == value


def test_a_segment_that_was_left_out_says_nothing_of_the_logs_end() -> None:
    left_out = segment(3, None, None, known=False)
    found = difference.compare_log(BEFORE, [*BEFORE[:3], left_out])
    assert (found["end"], found["shrank"], found["changed"]) == ([350, 300], False, [])
    assert difference.compare_log(BEFORE, BEFORE[:3])["shrank"] is True


def test_what_was_not_read_again_is_not_fixed() -> None:
    after = [segment(0, None, None, known=False), *BEFORE[1:]]
    damage = place(0, 10, 1, None, file=BEFORE[0]["file"])
    (store,) = diff(A, B, [damage], after=after)["stores"]
    assert (store["fixed"], len(store["not_read"]), store["code"]) == ([], 1, 0)
    assert "1 finding of run A in files that run B did not read" in difference_text(diff(A, B, [damage], after=after))
    (store,) = diff(A, B, [damage])["stores"]
    assert (len(store["fixed"]), store["not_read"]) == (1, [])
    of_a_queue = place(0, 10, 1, None, file="consumequeue/t/0/0")
    (store,) = diff(A, {**B, "level": "quick"}, [damage, of_a_queue])["stores"]
    assert ([f["file"] for f in store["fixed"]], len(store["not_read"])) == ([BEFORE[0]["file"]], 1)


def test_a_copy_that_could_not_be_listed_has_lost_nothing() -> None:
    """As on the night when its disk was not mounted. A copy that was listed, and is empty, has."""
    damage = place(0, 10, 1, None, file=BEFORE[0]["file"])
    a = {**A, "settings": [{"key": "maxIndexNum", "value": "7", "from": "default"}]}
    unlisted = diff(a, {**B, "complete": False, "exit_code": 3, "verdict": "Could not be audited"}, [damage], after=[])
    (store,) = unlisted["stores"]
    assert store["other_settings"] == []
    assert (store["code"], store["commitlog"], store["fixed"], len(store["not_read"])) == (3, None, [], 1)
    text = difference_text(unlisted)
    assert "s: code 0 -> 3; it could be read in run A, and not in run B" in text and store["unreadable_now"] is True
    assert "no new finding" not in text
    assert "run B is incomplete: Could not be audited" in text and "missing  " not in text and "moved back" not in text
    emptied = diff(a, B, [damage], after=[])
    (store,) = emptied["stores"]
    assert (store["code"], len(store["commitlog"]["missing"]), store["other_settings"]) == (20, 4, [])
    assert (store["fixed"], len(store["not_read"])) == ([], 1)  # gone, not mended
    text = difference_text(emptied)
    assert "all segments of the CommitLog, 4 of them with messages" in text and "older segments are still there" not in text


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (0, 300, "  lacks           300 messages that other copies of its group hold (0 in run A)"),
        (None, 1, "  lacks           1 message that other copies of its group hold (copies were not compared in run A)"),
        (300, 301, "  lacks           301 messages that other copies of its group hold (300 in run A)"),
        (300, 0, "  lacks           no message of its group any more (300 in run A)"),
        (300, 300, ""),
        (300, None, ""),
        (None, 0, ""),
    ],
)
def test_what_a_copy_lacks_of_its_group_since_then(before: int | None, now: int | None, told: str) -> None:
    view = diff({**A, "lacks_messages": before}, {**B, "lacks_messages": now}, [])
    assert (view["exit_code"], view["stores"][0]["lacks_messages"]) == (0, [before, now])
    assert ("lacks  " in difference_text(view)) == bool(told) and told in [*difference_text(view).splitlines(), ""]
    parted = difference_text(diff({**A, "diverged": False}, {**B, "diverged": True}, []))
    assert "  diverged        another copy of its group holds other messages" in parted
    assert "diverged  " not in difference_text(diff({**A, "diverged": True}, {**B, "diverged": True}, []))


def test_a_copy_of_which_not_all_can_be_read_any_more_is_told() -> None:
    text = difference_text(diff(A, {**B, "complete": False, "exit_code": 3}, [place(0, 1, None, 1, "note")]))
    assert "s: code 0 -> 3; it could be read in run A, and only in part in run B, 1 new finding" in text
    still = difference_text(diff({**A, "complete": False, "exit_code": 3}, {**B, "complete": False, "exit_code": 3}, []))
    assert "s: code 3 -> 3; no new finding" in still


def test_derived_files() -> None:
    def file(name: str, digest: str | None = "d", size: int = 60) -> Row:
        return {"store": "s", "file": name, "size_bytes": size, "digest": digest}

    before = [file("q/0/0"), file("q/0/1"), file("q/0/2"), file("q/1/0"), file("q/2/0", None), file("q/2/1")]
    after = [file("q/0/1", "e"), file("q/0/2", "e"), file("q/0/3"), file("q/1/0", "e"), file("q/2/0"), file("q/2/1")]
    found = difference.compare_derived(before, after, one_series=False)
    assert [row["file"] for row in found["changed"]] == ["q/0/1"]  # of each queue the newest file may change
    assert (found["gone"]["files"], found["added"]["files"], found["not_compared"]["files"]) == (1, 1, 1)
    one = difference.compare_derived(before, after, one_series=True)
    assert [row["file"] for row in one["changed"]] == ["q/0/1", "q/0/2", "q/1/0"]


# ---- diff: the whole -----------------------------------------------------------------------------------------------


def diff(a: Row | None, b: Row | None, moved: list[Row], before: list[Row] = BEFORE, after: list[Row] = BEFORE) -> Row:
    def files(segments: list[Row]) -> dict[str, list[Row]]:
        return {"segments": segments, "index": [], "queues": []}

    sides = [{"s": {"settings": [], **row}} if row else {} for row in (a, b)]
    return difference.difference_view(*sides, moved, [], files(before), files(after))


A, B = run_row("s", 1), run_row("s", 2)


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (diff(A, B, []), 0),
        (diff(A, B, [place(0, 1, None, 1, "note")]), 0),
        (diff(A, B, [place(0, 1, None, 1, "rebuildable")]), 10),
        (diff(A, B, [place(0, 1, None, 1)]), 20),
        (diff(A, B, [place(0, 1, 1, None)]), 0),
        (diff(A, B, [place(0, 1, 1, 2, "rebuildable")]), 10),
        (diff(A, B, [], after=[segment(0, "e"), *BEFORE[1:]]), 20),
        (diff(A, B, [], after=[segment(0), *BEFORE[2:]]), 20),
        (diff(A, {**B, "complete": False}, []), 3),
        (diff({**A, "complete": False}, B, [place(0, 1, None, 1)]), 20),
        (diff(A, {**B, "complete": False}, [place(0, 1, None, 1, "rebuildable")]), 3),
        (diff(A, None, []), 3),
        (diff(None, B, []), 0),
        (diff(None, B, [place(0, 1, None, 1, "rebuildable")]), 10),
    ],
)
def test_the_exit_code_of_a_difference(view: Row, code: int) -> None:
    assert view["exit_code"] == code
    assert f"exit code {code} (" in difference_text(view)
    json.loads(reading.json_text(view))


def test_other_rules_are_told_and_bytes_that_stayed_the_same() -> None:
    b = {**B, "rules_version": "2", "release": "5.4.0", "settings": [{"key": "maxIndexNum", "value": "7", "from": "default"}]}
    view = diff(A, b, [place(0, 1, None, 1, file="commitlog/" + "0" * 20), place(0, 1, None, 1, file=HOSTILE)])
    assert view["other_rules"] == ["rules 1 -> 2"]
    assert view["stores"][0]["other_settings"] == ["release 5.3.3 -> 5.4.0", "maxIndexNum unset -> 7"]
    assert [f["bytes_changed"] for f in view["stores"][0]["new"]] == [None, False]
    text = difference_text(view)
    assert "other rules: rules 1 -> 2; they may judge the same bytes differently" in text
    assert "(this file's bytes are the same in both runs)" in text
    assert "\x1b" not in text and "\u202e" not in text and "<script>" in text


@pytest.mark.parametrize("severity", ["critical", "", "\x1b[31m"])
def test_a_severity_that_this_version_does_not_know_counts_as_the_gravest(severity: str) -> None:
    found = place(0, 1, None, 1)
    found["words_b"]["severity"] = severity
    later = diff(A, B, [found])
    assert later["exit_code"] == 20
    assert "\x1b" not in difference_text(later)
    codes = [
        {"run_id": "r0", "store": "s", "severity": word, "code": f"a_{word}", "count": 1, "findings": 1, "file": "f"}
        for word in ("note", severity, "loss")
    ]
    view = view_of([run_row("s", 0, 20)], codes)
    assert [code["severity"] for code in view["stores"][0]["latest"]["codes"]][-1] == "note"
    assert "\x1b" not in fleet_text(view) + "".join(fleet_html(view))


@pytest.mark.parametrize("micros", [1 << 62, -(1 << 62), 253_402_300_800_000_000])
def test_a_time_beyond_all_years_is_told(micros: int) -> None:
    told = reading.time_of(micros)
    assert told in ("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z")
    assert str(told)[:4] in fleet_text(view_of([run_row("s", 0, started_at=micros)]))


# ---- coverage ------------------------------------------------------------------------------------------------------


def covered(verified: dict[int, int], segments: list[Row] = BEFORE) -> Row:
    """verified: segment number -> days since T0."""
    keys = {reading_key(segments[number]): T0 + days * DAY for number, days in verified.items()}
    runs = [run_row("s", n) for n in range(4)]
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=T0 + 2 * DAY)
    return coverage.coverage_view(coverage.Listed(segments, keys, {"s": runs[-1]}), runs, "/t", NOW, since)


def reading_key(row: Row) -> tuple[object, ...]:
    return row["store"], row["file"], row["size_bytes"], row["modified_ns"]


def test_coverage_is_the_union_of_what_runs_read() -> None:
    view = covered({0: 2, 1: 3, 2: 1, 3: 0})
    (store,) = view["stores"]
    assert (store["segments"], store["segments_verified"], store["runs_within"]) == (5, 2, 2)
    assert (view["bytes"], view["bytes_verified"], view["fraction"], store["fraction"]) == (500, 200, 0.4, 0.4)
    assert [(s["file"][-3:], s["verified"]) for s in store["least_recently"]] == [
        ("400", None), ("300", "2026-11-18T11:06:40Z"), ("200", "2026-11-19T11:06:40Z"),
    ]  # fmt: skip
    text = coverage_text(view)
    assert text.splitlines()[1].split() == ["40.0", "%", "s", "500", "B", "2", "of", "5", "2", "2026-11-21", "11:06:40"]
    assert "  commitlog/00000000000000000400  100 B, not within 100 runs before that" in text


def test_coverage_is_not_rounded_up_and_no_bytes_are_no_fraction() -> None:
    many = [segment(n) for n in range(3000)]
    text = coverage_text(covered(dict.fromkeys(range(2999), 3), many))
    assert " 99.9 %  s" in text and "100.0 %" not in text
    assert "100.0 %  s" in coverage_text(covered(dict.fromkeys(range(3000), 3), many))
    empty = covered({}, [])
    assert empty["stores"][0]["fraction"] is None and coverage_text(empty).splitlines()[1].startswith("       -  s")
    assert coverage_text(empty).splitlines()[-1] == "not in this figure: 1 store of which no run could list a segment"
    assert "not in this figure" not in text


@pytest.mark.parametrize(("code", "complete"), [(3, False), (20, True)])
def test_a_store_without_a_segment_any_more_is_not_covered(code: int, complete: bool) -> None:
    """As where its disk was not mounted in the newest run, or all was deleted: what runs before have read is not there."""
    keys = {reading_key(row): T0 + 2 * DAY for row in BEFORE}
    gone = run_row("s", 3, code, segment_count=0, complete=complete, verdict=f"gone{HOSTILE}")
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=T0 + DAY)
    runs = [run_row("s", 2), gone]
    view = coverage.coverage_view(coverage.Listed(BEFORE, keys, {"s": runs[0]}), runs, "/t", NOW, since)
    (store,) = view["stores"]
    assert (view["fraction"], store["fraction"], store["segments_verified"]) == (0, 0, 0)
    assert (store["gone"]["run_id"], store["gone"]["exit_code"], store["listed"]["run_id"]) == ("r3", code, "r2")
    text = coverage_text(view)
    found = "could not read it" if code == 3 else "found no CommitLog segment any more"
    assert "100.0 %" not in text and f"s: run r3 {found}, so nothing counts as verified (gone" in text
    assert "\x1b" not in text


def test_a_segment_that_cannot_be_read_any_more_is_not_covered() -> None:
    view = covered(dict.fromkeys(range(5), 3), [{**BEFORE[0], "problem": "cannot be read"}, *BEFORE[1:]])
    (store,) = view["stores"]
    assert (store["segments_verified"], store["fraction"], store["gone"]) == (4, 0.8, None)
    assert [row["file"] for row in store["least_recently"]] == [BEFORE[0]["file"]]


def test_an_unknown_store_is_told_with_the_nearest_name() -> None:
    with pytest.raises(StoreError, match=r"^--store 'brker-a': not in /t \(did you mean broker-a\?\)$"):
        reading.chosen_store({"broker-a": 1, "x": 2}, "brker-a", "/t")
