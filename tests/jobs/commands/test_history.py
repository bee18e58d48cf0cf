"""report, diff and coverage out of real Delta tables: only whole runs, each once, and only the runs that are asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from jobs import entry
from jobs.commands.past import difference
from jobs.commands.past.coverage import read_coverage
from jobs.commands.past.difference import read_difference
from jobs.commands.past.fleet import read_fleet
from jobs.report.values_as_rows import time_of
from jobs.runtime import session
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_tables import Tables
from jobs.tables.past_runs import History
from schemas.advice import Advice, Step
from schemas.outcome import Outcome
from schemas.rows import Finding
from schemas.tables import TABLES
from store_io.base.errors import StoreError
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import handmade

pytestmark = pytest.mark.spark
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def outcome(name: str, code: int = 0, findings: list[Finding] | None = None, **changed: Any) -> Outcome:
    """A store of three segments, the last half written. changed: segment number -> its digest; "" is not wholly read."""
    segments = []
    for number in range(3):
        extents = [{"kind": "message", "start": 0, "end": 600, "message_count": 3, "plausible": False, "reason": ""}]
        rest = "filler" if number < 2 else "unwritten"
        extents.append({"kind": rest, "start": 600, "end": 1024, "message_count": 0, "plausible": False, "reason": ""})
        segments.append(
            {"file": f"commitlog/{number * 1024:020}", "base_offset": number * 1024, "size_bytes": 1024, "modified_ns": 7,
             "digest": changed.get(f"s{number}", "d"), "extents": extents}
        )  # fmt: skip
    found = findings or []
    return handmade(
        name, f"/copies/{name}", "5.3.3", code, incomplete=["why"] if code == 3 else [],
        effect=samples.clean().effect, findings=found,
        counts={"loss": sum(f.severity == "loss" for f in found)}, segments=segments,
        queues=[{"topic": "t", "queue_id": 0, "files": [{"file": f"consumequeue/t/0/{n}", "size_bytes": 60, "digest":
                 changed.get("q", "d") if n == 0 else "d"} for n in range(2)]}],
        index_files=[{"file": "index/1", "size_bytes": 40, "digest": "d"}], segment_count=3,
    )  # fmt: skip


def damage(start: int, end: int, count: int = 1) -> Finding:
    return Finding(
        "commitlog_damaged",
        "commitlog/" + "0" * 20,
        start,
        end,
        "loss",
        message="damaged",
        next=Advice(Step.OTHER_COPY),
        count=count,
    )


@pytest.fixture(scope="module")
def tables(spark_session: session.Session, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four runs, a day apart; the second was repeated under its id, and a fifth was killed before its `runs` rows."""
    place = str(tmp_path_factory.mktemp("history"))
    written = Tables(spark_session, place)

    def write(run_id: str, days_ago: int, *outcomes: Outcome) -> None:
        info = replace(samples.RUN, run_id=run_id, started_at=NOW - timedelta(days=days_ago))
        written.write_run(info, outcomes)

    write("r1", 30, outcome("a"), outcome("old"))
    write("r2", 3, outcome("a", 20, [damage(0, 1024)]))
    write("r2", 3, outcome("a", s0=""), outcome("b", 10, [damage(0, 9)]))
    write(
        "r3",
        2,
        outcome("a", s1="x", q="x", findings=[damage(0, 9, 2), damage(50, 60)], code=20),
        outcome("b", 10, [damage(0, 9)]),
    )
    write("r4", 1, outcome("a", 3), outcome("b"))
    with pytest.MonkeyPatch.context() as dying:
        real = DeltaLog.replace_run

        def replace_run(log: DeltaLog, run_id: str, files: Any) -> None:
            if log.uri.endswith("/runs") and files:
                raise KeyboardInterrupt
            real(log, run_id, files)

        dying.setattr(DeltaLog, "replace_run", replace_run)
        with pytest.raises(KeyboardInterrupt):
            write("r5", 0, outcome("a", 20, [damage(0, 1024)]), outcome("c", 20))
    return place


@pytest.fixture
def history(tables: str) -> History:
    return History(tables)


def test_the_latest_run_of_each_store_counts(history: History) -> None:
    view = read_fleet(history, NOW)
    assert [(s.store, s.latest.run_id, s.safety, s.runs) for s in view.stores] == [
        ("a", "r4", "unknown", 4), ("b", "r4", "safe", 3), ("old", "r1", "safe", 1),
    ]  # fmt: skip
    assert [(run.run_id, run.exit_code) for run in view.stores[0].trend] == [("r1", 0), ("r2", 0), ("r3", 20), ("r4", 3)]
    assert [store.latest.codes for store in view.stores] == [[], [], []]
    assert view.stores[0].age_seconds == 86_400 and view.runs == 4
    view = read_fleet(history, NOW, store="a", trend_runs=2)
    assert [(s.runs, [run.run_id for run in s.trend]) for s in view.stores] == [(4, ["r3", "r4"])]
    view = read_fleet(history, NOW, NOW - timedelta(days=7))
    assert [s.store for s in view.stores] == ["a", "b"]
    assert [(gone.store, time_of(gone.last)) for gone in view.not_audited_since] == [("old", "2026-10-22T08:00:00Z")]
    with pytest.raises(StoreError, match=r"^no run since 2026-11-21T07:59:00Z in "):
        read_fleet(history, NOW, NOW - timedelta(minutes=1))


def test_the_difference_of_two_runs(history: History) -> None:
    view = read_difference(history, "r2", "r3")
    assert view.exit_code == 20 and [s.store for s in view.stores] == ["a", "b"]
    a, b = view.stores
    assert [(f.start, f.count, f.message, f.bytes_changed) for f in a.new] == [
        (0, 2, "damaged", None), (50, 1, "damaged", None),
    ]  # fmt: skip
    assert a.commitlog and a.queues
    assert ([row.file for row in a.commitlog.compared.changed], a.commitlog.compared.not_compared.files) == (
        [f"commitlog/{1024:020}"],
        1,
    )
    assert [row.file for row in a.queues.compared.changed] == ["consumequeue/t/0/0"]
    assert (b.code, b.new, b.grown, b.fixed) == (0, [], [], [])
    assert [(one.severity, one.code, one.findings, one.count) for one in b.persisting] == [("loss", "commitlog_damaged", 1, 1)]


def test_a_severity_of_a_later_version_counts_as_the_most_severe(spark_session: session.Session, tmp_path: Path) -> None:
    written = Tables(spark_session, str(tmp_path))
    for number, findings in enumerate(([replace(damage(0, 9), severity="note")], [replace(damage(0, 9), severity="critical")])):
        info = replace(samples.RUN, run_id=f"r{number}", started_at=NOW - timedelta(days=2 - number))
        written.write_run(info, [outcome("a", 20, findings)])
    view = read_difference(History(str(tmp_path)), "r0", "r1")
    assert view.exit_code == 20 and [f.severity for f in view.stores[0].grown] == ["critical"]


def test_a_difference_of_one_store_and_of_runs_that_are_not_there(history: History) -> None:
    (b,) = read_difference(history, "r3", "r4", "b").stores
    assert (b.code, len(b.fixed), b.persisting) == (0, 1, [])
    with pytest.raises(StoreError, match=r"^run 'r5': no such run in .*, or it was stopped before it was whole"):
        read_difference(history, "r1", "r5")


def test_coverage_over_runs(history: History) -> None:
    view = read_coverage(history, NOW, NOW - timedelta(days=3, hours=1), "a")
    assert (view.stores[0].runs_within, view.fraction) == (3, 1.0)
    view = read_coverage(history, NOW, NOW - timedelta(hours=1))
    assert (view.fraction, [time_of(s.least_recently[0].verified) for s in view.stores]) == (
        0.0, ["2026-11-20T08:00:00Z", "2026-11-20T08:00:00Z", "2026-10-22T08:00:00Z"],
    )  # fmt: skip


def test_a_difference_compares_few_findings_at_once(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_difference(history, "r2", "r3")
    asked: list[list[str]] = []
    real = difference._compared
    monkeypatch.setattr(difference, "_compared", lambda *words: asked.append(words[3]) or real(*words))
    monkeypatch.setattr(difference, "FINDINGS_AT_ONCE", 3)
    assert read_difference(history, "r2", "r3") == whole
    assert asked == [["a"], ["b"]]  # a has 2 findings, b 2
    of_b = read_difference(history, "r2", "r3", stores={"b"}).stores
    assert of_b == [store for store in whole.stores if store.store == "b"] and asked[2:] == [["b"]]


@pytest.mark.parametrize("name", ("runs", "findings", "segments", "index_files", "queues"))
def test_a_table_without_todays_columns(history: History, tables: str, tmp_path: Path, name: str) -> None:
    """Tables of an earlier version, to which the present one has not written yet: each command makes an answer of the rest."""
    every = "run_id store store_from month started_at file code severity count size_bytes base_offset digest".split()
    whole = DeltaTable(f"{tables}/{name}")
    kept = [f'"{field.name}"' for field in whole.schema().fields if field.name in every]
    write_deltalake(f"{tmp_path}/{name}", QueryBuilder().register("t", whole).execute(f"SELECT {', '.join(kept)} FROM t"))
    for other in TABLES:
        if other != name and (Path(tables) / other).exists():
            (tmp_path / other).symlink_to(Path(tables) / other)
    younger = [column.name for column in TABLES[name] if column.name not in every]
    older = History(str(tmp_path))
    listed = ", ".join(f'"{column}"' for column in younger)
    rows = older.query(make_dataclass("Younger", younger), f"SELECT {listed} FROM {name}", ["r3"])
    counted = history.query(make_dataclass("Counted", ["n"]), f"SELECT count(*) AS n FROM {name}", ["r3"])
    assert len(rows) == counted[0].n and all(getattr(row, column) is None for row in rows for column in younger)
    assert [store.store for store in read_difference(older, "r2", "r3").stores] == ["a", "b"]
    assert len(read_coverage(older, NOW, NOW - timedelta(days=7)).stores) == 3


@contextmanager
def _started(started: session.Session) -> Iterator[session.Session]:
    yield started


def test_the_commands(
    spark_session: session.Session,
    tables: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(session, "start", lambda *_, **__: _started(spark_session))
    assert entry.main(["report", "--tables", tables, "--out", f"{tmp_path}/fleet.html"]) == 0
    assert "For 1 of 3 stores it is not known whether a start is safe" in (tmp_path / "fleet.html").read_text()
    assert entry.main(["diff", "r3", "r4", "--tables", tables, "--store", "c"]) == 3
    assert capsys.readouterr().err == "spark-submit.sh: --store 'c': not in run r3 or r4\n"
    (tmp_path / "not delta" / "runs").mkdir(parents=True)
    (tmp_path / "torn" / "runs" / "_delta_log").mkdir(parents=True)
    (tmp_path / "torn" / "runs" / "_delta_log" / f"{0:020}.json").write_text("{no json")
    for place in ("none", "not delta", "torn"):
        assert entry.main(["report", "--tables", f"{tmp_path}/{place}"]) == 3
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and f"{tmp_path}/{place}" in said.err, said.err
    assert not (tmp_path / "none").exists()
    shutil.copytree(tables, tmp_path / "copy")
    for file in (tmp_path / "copy" / "runs").glob("month=*/*.parquet"):
        file.write_bytes(b"no parquet")
    assert entry.main(["report", "--tables", f"{tmp_path}/copy"]) == 3
    assert capsys.readouterr().err.count("\n") == 1
