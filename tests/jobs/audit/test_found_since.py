"""What other runs have found since segments were verified, out of real tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobs.audit.earlier_runs import earlier_runs
from jobs.command_line.stores import StoreArgument
from jobs.session import Session
from jobs.tables.delta_tables import Tables
from schemas.rows import AuditOutcome, EarlierRun, Finding
from tests.support.handmade import samples

pytestmark = pytest.mark.spark
STORES = (StoreArgument("a", "/copies/a", "5.3.3"), StoreArgument("b", "/copies/b", "5.3.3"))
PATHS = [f"commitlog/{number * 1024:020}" for number in range(3)]


def segment(number: int, **facts: Any) -> dict[str, Any]:
    return {
        "file": PATHS[number], "base_offset": number * 1024, "size_bytes": 1024, "modified_ns": 7, "digest": "d",
        "edge_digest": "e", "damaged_bytes": 0, "findings": 0, **facts,
    }  # fmt: skip


def outcome(name: str, findings: list[Finding] | None = None, loss: int = 0, **more: Any) -> AuditOutcome:
    facts: dict[str, Any] = {"segments": [segment(number) for number in range(3)], "level": "full", "complete": True, **more}
    counts = {"rebuildable": sum(found.severity == "rebuildable" for found in findings or ()), "loss": loss}
    return replace(samples.clean(), name=name, findings=findings or [], counts=counts, segment_count=3, **facts)


def damaged(name: str, number: int, **more: Any) -> AuditOutcome:
    rows = [segment(at, damaged_bytes=9 * (at == number), findings=int(at == number)) for at in range(3)]
    return outcome(name, segments=rows, loss=1, **more)


def entry(phy_offset: int | None, count: int = 1, severity: str = "rebuildable", file: str = "index/1") -> Finding:
    return Finding("index_entry_dangling", file, 0, 20, severity, phy_offset=phy_offset, count=count, message="m")


class Nights:
    """Runs n1, n2 ... a day apart in one set of tables."""

    def __init__(self, tables: Tables):
        self.tables, self.count = tables, 0

    def add(self, *outcomes: AuditOutcome) -> None:
        self.count += 1
        began = samples.RUN.started_at + timedelta(days=self.count)
        self.tables.write_run(replace(samples.RUN, run_id=f"n{self.count}", started_at=began), outcomes)

    def taken_over(self) -> list[dict[str, Any]]:
        """Rows as of a run that read nothing and says that the first one has."""
        began = samples.RUN.started_at + timedelta(days=1)
        return [segment(number, verified_run="n1", verified_at=began) for number in range(3)]

    def since(self, run_id: str | None) -> dict[str, EarlierRun]:
        return earlier_runs(self.tables, STORES, run_id, "now", samples.RUN.rules_version)

    def doubted(self, run_id: str | None, store: str = "a") -> list[int]:
        return [PATHS.index(path) for path, known in self.since(run_id)[store].segments.items() if known.damaged]


@pytest.fixture
def nights(spark_session: Session, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    return Nights(Tables(spark_session, str(tmp_path_factory.mktemp("tables"))))


def test_a_later_runs_damage_counts_until_the_segment_is_read_again(nights: Nights) -> None:
    nights.add(outcome("a"), outcome("b"))
    nights.add(damaged("a", 1), outcome("b"))
    nights.add(outcome("a", segments=nights.taken_over()), outcome("b"))  # as versions did that knew only the run that was named
    assert [nights.doubted(run_id) for run_id in ("n1", "n2", "n3", "last", None)] == [[1]] * 5
    assert nights.doubted("n1", "b") == []
    nights.add(outcome("a"), outcome("b"))
    assert nights.doubted("last") == [] and nights.doubted("n1") == [1]  # that run does not know of the reading since
    nights.add(outcome("a", segments=[segment(0), segment(1, problem="unreadable", digest=None), segment(2)], complete=False))
    assert nights.doubted("n4") == [1]


@pytest.mark.parametrize(
    ("later", "doubted"),
    [
        (lambda: outcome("a"), []),
        (lambda: damaged("a", 2, level="quick", complete=False), [2]),
        (lambda: outcome("a", segments=[segment(0, findings=None), segment(1, damaged_bytes=None), segment(2)], loss=1), [0, 1]),
        (lambda: outcome("a", segments=[segment(1, digest=None, damaged_bytes=None)], complete=False), []),  # not read
        (lambda: outcome("b", segments=[segment(0, findings=1)], loss=1), []),
    ],
)
def test_what_later_rows_say(later: Callable[[], AuditOutcome], doubted: list[int], nights: Nights) -> None:
    nights.add(outcome("a"))
    nights.add(later())
    assert nights.doubted("n1") == doubted


def test_findings_on_derived_files_count_as_those_of_the_named_run(nights: Nights) -> None:
    nights.add(outcome("a"))
    of_a_queue, others = entry(None, file="consumequeue/T/0/0"), [entry(7, severity="note"), entry(9, file="config/x")]
    nights.add(outcome("a", [entry(1030), entry(5000, 2), of_a_queue, *others]))
    told = [("consumequeue/T/0/0", None, 1), ("index/1", 1030, 1), ("index/1", 5000, 2)]
    assert sorted(nights.since("n1")["a"].derived, key=str) == told
    assert nights.since(None)["a"].derived == []  # nothing is left out
    began = samples.RUN.started_at + timedelta(days=1)
    nights.add(outcome("a", segments=[segment(0, verified_run="n1", verified_at=began), segment(1), segment(2)]))
    assert sorted(nights.since("n3")["a"].derived, key=str) == [told[0], told[2]]  # segment 1 was read since
    nights.add(outcome("a"))
    assert nights.since("last")["a"].derived == []


def test_runs_that_found_nothing_cost_no_query(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.add(damaged("a", 0))
    for _ in range(3):
        nights.add(outcome("a"), outcome("b"))
    asked: list[str] = []
    rows_of = nights.tables.rows_of

    def noted(name: str, *more: Any) -> Any:
        asked.append(name)
        return rows_of(name, *more)

    monkeypatch.setattr(nights.tables, "rows_of", noted)
    assert nights.doubted("n2") == [] and asked == ["runs"]
    nights.add(damaged("a", 2), damaged("b", 0))
    asked.clear()
    assert nights.doubted("n2") == [2] and asked == ["runs", "segments", "findings"]
