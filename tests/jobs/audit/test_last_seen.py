"""What the last run says of each store's segments: one run's rows are read for each store, whatever the tables hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from jobs.audit.earlier_runs import Furthest
from jobs.cli.stores import StoreArgument
from jobs.report.values_as_rows import columns_of, micros_of, values
from jobs.tables.delta_tables import Tables
from store_io.checks.changed_bytes import FirstRead
from tests.support.handmade import samples

START = samples.RUN.started_at - timedelta(days=30)
Rows = list[dict[str, Any]]
T = TypeVar("T")


class _Tables:
    """Tables by name. asked: the runs whose segments were read."""

    def __init__(self, runs: Rows, segments: Rows):
        self._rows, self.asked = {"runs": runs, "segments": segments}, list[str]()

    def history(self) -> _Tables:
        return self

    def query(self, shape: type[T], statement: str, run_ids: Sequence[str] | None, stores: Sequence[str] | None) -> list[T]:
        name = statement.rpartition(" ")[2]
        if name == "segments":
            assert run_ids is not None and stores is not None
            self.asked += run_ids
        found = [row for row in self._rows[name] if run_ids is None or row["run_id"] in run_ids]
        wanted = [row for row in found if stores is None or row["store"] in stores]
        return values(shape, ({column: row.get(column) for column in columns_of(shape)} for row in wanted))


def run(store: str, night: int, messages: int = 9) -> dict[str, Any]:
    at: datetime = START + timedelta(days=night)
    return {
        "run_id": f"n{night}", "store": store, "store_from": "name", "location": f"/{store}",
        "started_at": micros_of(at), "level": "full", "messages": messages, "log_end": 30,
    }  # fmt: skip


def segment(store: str, night: int, number: int, **more: Any) -> dict[str, Any]:
    return {
        "run_id": f"n{night}", "store": store, "file": f"commitlog/{number}", "base_offset": number, "modified_ns": 7,
        "digest": f"d{night}", "messages": 3, **more,
    }  # fmt: skip


def seen(tables: _Tables, *names: str, run_id: str = "now") -> Furthest:
    stores = [StoreArgument(name, f"/{name}", "5.3.3", named=True) for name in names]
    return Furthest(lambda: cast(Tables, tables), run_id, stores).read()


def store(name: str) -> StoreArgument:
    return StoreArgument(name, f"/{name}", "5.3.3", named=True)


def test_only_the_last_run_with_messages_of_each_store_is_read() -> None:
    runs = [run("a", night) for night in range(20)] + [run("a", 20, messages=0), run("b", 3), run("other", 21)]
    segments = [segment("a", 19, number) for number in range(3)] + [segment("b", 3, 0), segment("a", 3, 0)]
    tables = _Tables(runs, segments)
    found = seen(tables, "a", "b", "new")
    assert sorted(tables.asked) == ["n19", "n3"]
    assert sorted(found.seen(store("a"))) == ["commitlog/0", "commitlog/1", "commitlog/2"]
    assert list(found.seen(store("b"))) == ["commitlog/0"] and found.seen(store("new")) == {} == found.seen(store("other"))


def test_a_repeated_run_counts_neither_its_own_rows_nor_later_ones() -> None:
    tables = _Tables([run("a", night) for night in range(1, 5)], [segment("a", 2, 0)])
    assert list(seen(tables, "a", run_id="n3").seen(store("a"))) == ["commitlog/0"] and tables.asked == ["n2"]


def test_the_first_reading_is_carried_or_begins_with_a_sound_closed_segment() -> None:
    segments = [
        segment("a", 1, 0, first_run="n0", first_digest="d0"),
        segment("a", 1, 1),
        segment("a", 1, 2, verified_run="n0"),
        segment("a", 1, 3, findings=1),
        segment("a", 1, 4, digest=None),
        segment("a", 1, 5, problem="not read"),
        segment("a", 1, 6),  # the last one with messages
        segment("a", 1, 7, messages=0),
    ]
    found = seen(_Tables([run("a", 1)], segments), "a").seen(store("a"))
    first = [FirstRead("n0", "d0"), FirstRead("n1", "d1"), FirstRead("n0", "d1"), None, None, None, None, None]
    assert [one.first for one in found.values()] == first
