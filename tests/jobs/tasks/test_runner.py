"""How tasks are spread over partitions, and what a worker does before it works."""

from __future__ import annotations

import gc
import os
import pickle
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.tasks import runner
from jobs.tasks.runner import PARTITION_BYTES, PARTITIONS_PER_CORE, Runner, partition, spare_the_collector
from store_io.base.packed import PackedValue, opened
from store_io.base.tasks import Task
from store_io.broker.releases import broker_rules
from store_io.log.scan.segment_scan import SegmentTask
from store_io.rocksdb.database import Database
from store_io.rocksdb.private_folder import PrivateFolder
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.rocksdb_stores import write_database


def segments(*sizes: int) -> list[Task]:
    rules = broker_rules()
    return [SegmentTask(0, f"commitlog/{i:020d}", i << 30, size, StoreLocation("/x"), rules) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("sizes", [[5], [1 << 30] * 3, [1 << 30, *[1000] * 500], [0] * 1000, list(range(100))])
def test_each_task_is_in_one_partition(sizes: list[int]) -> None:
    bins = partition(segments(*sizes), 2)
    assert sorted(i for bin_ in bins for i in bin_) == list(range(len(sizes)))
    assert all(bins) and len(bins) <= max(2 * PARTITIONS_PER_CORE, sum(sizes) // PARTITION_BYTES)


def test_a_large_segment_shares_its_partition_with_nothing() -> None:
    bins = partition(segments(1 << 30, 1 << 30, *[1 << 20] * 200), 2)
    assert [0] in bins and [1] in bins


def test_the_segment_with_most_messages_begins_first() -> None:
    sizes = [1 << 30] * 4
    tasks = segments(*sizes)
    counts = [-1, 60_000, 4_000_000, 900_000]  # the first: not known
    counted = [replace(task, messages=count) for task, count in zip(tasks, counts, strict=True)]  # type: ignore[type-var]
    assert partition(counted, 4)[:4] == [[2], [0], [3], [1]]


def test_the_collector_is_spared_what_is_there_but_not_garbage() -> None:
    class Node:
        pass

    kept, garbage = Node(), Node()
    kept.me, garbage.me = kept, garbage  # type: ignore[attr-defined]
    seen, gone = weakref.ref(kept), weakref.ref(garbage)
    del garbage
    try:
        spare_the_collector()
        assert gone() is None and seen() is kept
        assert gc.get_freeze_count() > 0 and not any(found is kept for found in gc.get_objects())
    finally:
        gc.unfreeze()


class Answered:
    """A Spark context that runs nothing: each task's answer is its pickled result."""

    defaultParallelism = 2

    def broadcast(self, value: object) -> Answered:
        return self

    def unpersist(self) -> None:
        pass

    def setJobDescription(self, text: str | None) -> None:
        pass


def test_only_an_audit_gets_results_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair uses results as they are: such as what was found at two damaged places of one segment."""
    results = [["first place", "second place"], ["one place"]]
    monkeypatch.setattr(Runner, "_answers", lambda *_: iter([(i, 0.0, 0, pickle.dumps(r)) for i, r in enumerate(results)]))
    runner, tasks = Runner(Answered(), lambda *_: None), segments(5, 5)  # type: ignore[arg-type]
    assert runner.run(tasks, "healing") == results
    packed, single = runner.answers(tasks, "audit")
    assert isinstance(packed, PackedValue) and [opened(packed), single] == results


@dataclass(frozen=True)
class Counted:
    """Counts the keys of a database."""

    folder: str
    store: int = 0
    not_after: float = 0
    bytes_to_read: int = 1
    paths: tuple[str, ...] = ()

    def run(self) -> int:
        source = open_source(StoreLocation(self.folder))
        with Database(source, "a", source.list_tree("a")) as database:
            return sum(1 for batch in database.scan("default") for _ in batch.pairs())


def test_the_tasks_of_a_partition_fetch_a_database_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rocksdict")
    write_database(tmp_path / "a", {"default": [(b"%d" % i, b"v") for i in range(9)]})
    monkeypatch.setattr(runner, "spare_the_collector", lambda: None)
    made: list[str] = []
    enter = PrivateFolder.__init__

    def noted(self: PrivateFolder, *words: Any) -> None:
        enter(self, *words)
        made.append(self.path)

    monkeypatch.setattr(PrivateFolder, "__init__", noted)
    tasks = [Counted(str(tmp_path))] * 4
    work = runner._worker(SimpleNamespace(value=runner.pack(tasks, [[0, 1, 2], [3]])), lambda *_: None, None, ())
    assert [pickle.loads(answer) for *_, answer in work([0])] == [9, 9, 9] and len(made) == 1
    assert [pickle.loads(answer) for *_, answer in work([1])] == [9] and len(made) == 2
    assert not any(os.path.exists(path) for path in made)
