"""Tasks on index and transactions in RocksDB: how many half messages of a store are held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schemas.rows import RUN_DTYPE, WALK_AUDIT, WALK_BROKER, SegmentSummary
from store_io.audit.rounds.task_making import TaskMaker
from store_io.kinds.rocksdb_tables import table_kind
from store_io.kinds.rocksdb_tables.table_kind import TABLES, TableFiles
from store_io.kinds.rocksdb_tables.table_tasks import LogTableTask
from store_io.kinds.rocksdb_tables.table_view import TablesInUse
from store_io.rocksdb.database import NO_DATABASE
from tests.support.answers import product
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, request_of
from tests.support.stores.rocksdb_tables import DONE, HALF, table_store


def with_halves(number: int, halves: int, done: int) -> SegmentSummary:
    """A segment with so many, and with messages of another topic and of another walk."""
    found = SegmentSummary(log_path(number * SEGMENT), number * SEGMENT, SEGMENT)
    found.queues = [("T", 0), (HALF, 0), (DONE, 0)]
    found.runs = np.zeros(4, RUN_DTYPE)
    found.runs["walk"] = WALK_AUDIT, WALK_AUDIT, WALK_AUDIT, WALK_BROKER
    found.runs["queue"], found.runs["records"] = (0, 1, 2, 1), (900, halves, done, 900)
    return found


@pytest.mark.parametrize(("most", "each"), [(9, 9), (8, 0)])
def test_the_bound_is_of_the_whole_store(most: int, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them may lie in one of many segments."""
    monkeypatch.setattr(table_kind, "MOST_HALVES", most)
    segments = [with_halves(0, 0, 0), with_halves(1, 5, 3), with_halves(2, 1, 0)]
    files = TableFiles(TablesInUse(NO_DATABASE, False, True))
    copy = copy_of({s.path: SEGMENT for s in segments}, of_kinds={TABLES: files})
    tasks = TABLES.tasks_after_prediction(evidence_of(copy, segments=segments), TaskMaker(request_of(), copy).base)
    assert [task.most_halves for task in tasks if isinstance(task, LogTableTask)] == [each] * 3


def test_half_messages_of_a_broker_without_that_table_do_not_matter(tmp_path: Path) -> None:
    made = table_store(tmp_path / "store")
    made.halves, made.half_mark = {}, None
    made.write()
    audit = product.audit(made.root, "5.5.0", made.conf.replace("transRocksDBEnable=true\n", ""))
    assert "rocksdbstore" not in audit.outcome.covered.not_judged and audit.above_note == []
