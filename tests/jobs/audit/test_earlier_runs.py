"""What other runs have found since segments were verified, out of real tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobs.audit.earlier_runs import earlier_runs
from jobs.cli.stores import StoreArgument
from jobs.runtime.session import Session
from jobs.tables.delta_log import DeltaLog
from jobs.tables.delta_query import BySpark
from jobs.tables.delta_tables import Tables
from jobs.tables.past_runs import History
from schemas.outcome import Outcome
from schemas.rows import EarlierRun, Finding
from tests.support.handmade import samples
from tests.support.handmade.outcome_fields import varied

pytestmark = pytest.mark.spark
PATHS = [f"commitlog/{number * 1024:020}" for number in range(3)]


def segment(number: int, **facts: Any) -> dict[str, Any]:
    return {
        "file": PATHS[number], "base_offset": number * 1024, "size_bytes": 1024, "modified_ns": 7, "digest": "d",
        "edge_digest": "e", "damaged_bytes": 0, "findings": 0, **facts,
    }  # fmt: skip


def outcome(name: str, findings: list[Finding] | None = None, loss: int = 0, **more: Any) -> Outcome:
    facts: dict[str, Any] = {"segments": [segment(number) for number in range(3)], "level": "full", **more}
    counts = {"rebuildable": sum(found.severity == "rebuildable" for found in findings or ()), "loss": loss}
    return varied(samples.clean(), name=name, findings=findings or [], counts=counts, segment_count=3, **facts)


def damaged(name: str, number: int, **more: Any) -> Outcome:
    rows = [segment(at, damaged_bytes=9 * (at == number), findings=int(at == number)) for at in range(3)]
    return outcome(name, segments=rows, loss=1, **more)


def entry(phy_offset: int | None, count: int = 1, severity: str = "rebuildable", file: str = "index/1") -> Finding:
    return Finding("index_entry_dangling", file, 0, 20, severity, phy_offset=phy_offset, count=count, message="m")


def taken_over(*read: int) -> list[dict[str, Any]]:
    """Rows as of a run that read these segments alone, and says of the others that the first run has verified them."""
    first = {"verified_run": "n1", "verified_at": began(1)}
    return [segment(number, **({} if number in read else first)) for number in range(3)]


def began(night: int) -> datetime:
    return samples.RUN.started_at + timedelta(days=night)


def earlier(tables: Tables, since: str | None) -> dict[str, EarlierRun]:
    stores = [StoreArgument(name, f"/copies/{name}", "5.3.3", named=True) for name in FIRST]
    return earlier_runs(tables, stores, since, "now", samples.RUN.rules_version)


def doubted(found: dict[str, EarlierRun]) -> dict[str, list[int]]:
    """Store -> the numbers of its segments that count as damaged, without stores that have none."""
    numbers = {name: [PATHS.index(path) for path, known in run.segments.items() if known.damaged] for name, run in found.items()}
    return {name: of_it for name, of_it in numbers.items() if of_it}


UNREAD = {"digest": None, "damaged_bytes": None}
FIRST = ("damaged", "mended", "quick", "old", "unread", "broken", "sound", "derived")  # all of them sound on the first night
SECOND = [
    damaged("damaged", 1),
    damaged("mended", 1),
    damaged("quick", 2, level="quick", incomplete=["why"]),
    outcome("old", loss=1, segments=[segment(0, findings=None), segment(1, damaged_bytes=None), segment(2)]),
    outcome("unread", segments=[segment(0), segment(1, **UNREAD), segment(2)], incomplete=["why"]),
    outcome("broken", segments=[segment(0), segment(1, **UNREAD, problem="unreadable"), segment(2)], incomplete=["why"]),
    outcome("sound"),
    outcome("derived", [
        entry(1030), entry(5000, 2), entry(None, file="consumequeue/T/0/0"), entry(7, severity="note"), entry(9, file="config/x"),
    ]),
]  # fmt: skip
THIRD = [
    outcome("damaged", segments=taken_over()),  # as versions did that knew only the run that was named
    outcome("mended"),
    outcome("derived", segments=taken_over(1)),
]


@pytest.fixture(scope="module")
def tables(spark_session: Session, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Three runs n1, n2 and n3, a day apart."""
    tables = Tables(spark_session, str(tmp_path_factory.mktemp("tables")))
    for night, outcomes in enumerate(([outcome(name) for name in FIRST], SECOND, THIRD), 1):
        tables.write_run(replace(samples.RUN, run_id=f"n{night}", started_at=began(night)), outcomes)
    return tables


@pytest.mark.parametrize("by", ["delta-rs", "Spark"])
def test_what_other_runs_found_since_a_segment_was_verified_counts(
    tables: Tables, by: str, spark_session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "Spark":
        monkeypatch.setattr(DeltaLog, "by_spark", lambda log: BySpark(spark_session.spark))
    first = earlier(tables, "n1")
    told = [("consumequeue/T/0/0", None, 1), ("index/1", 1030, 1), ("index/1", 5000, 2)]
    assert sorted(first["derived"].derived, key=str) == told
    assert {name for name, run in first.items() if run.derived} == {"derived"}
    assert doubted(first) == {
        "damaged": [1], "quick": [2], "old": [0, 1], "broken": [1],
        "mended": [1],  # that run does not know of the reading since
    }  # fmt: skip
    last = earlier(tables, "last")
    assert doubted(last) == {"damaged": [1], "quick": [2], "broken": [1]}
    assert sorted(last["derived"].derived, key=str) == [told[0], told[2]]  # the second is about a segment that was read since
    only_order = earlier(tables, None)
    assert doubted(only_order) == doubted(last) and only_order["derived"].derived == []  # nothing is left out


def test_runs_that_found_nothing_cost_no_query(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []
    rows = History.rows

    def noted(history: History, statement: str, run_ids: Any = None, stores: Any = None) -> Any:
        if "GROUP BY" in statement:
            asked.append((statement.split("FROM ")[1].split()[0], run_ids))
        return rows(history, statement, run_ids, stores)

    monkeypatch.setattr(History, "rows", noted)
    store = StoreArgument("sound", "/copies/sound", "5.3.3", named=True)
    assert doubted(earlier_runs(tables, [store], "n1", "now", samples.RUN.rules_version)) == {} and asked == []
    store = StoreArgument("damaged", "/copies/damaged", "5.3.3", named=True)
    assert doubted(earlier_runs(tables, [store], "n1", "now", samples.RUN.rules_version)) == {"damaged": [1]}
    assert asked == [("segments", ["n2"]), ("findings", ["n2"])]
