"""What the tasks on index and transactions in RocksDB gave, added up once."""

from __future__ import annotations

import numpy as np
import pytest

from store_io.base.fingerprints import Prints
from store_io.kinds.rocksdb_tables.half_messages import HALF_ROW
from store_io.kinds.rocksdb_tables.index_table import IndexTable
from store_io.kinds.rocksdb_tables.table_tasks import LogTable
from store_io.kinds.rocksdb_tables.table_view import TableResults


def test_many_segments_cost_a_few_times_their_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    copied, add = [], Prints.__add__
    monkeypatch.setattr(
        Prints, "__add__", lambda one, other: (copied.append(len(one.stretch) + len(other.stretch)), add(one, other))[1]
    )
    found = TableResults()
    for number in range(300):
        prints = Prints(np.array([number, number + 1]), np.ones(2, np.int64), np.ones(2, np.uint64))
        halves = np.zeros(1, HALF_ROW)
        halves["phy_offset"] = number
        found.add_log(LogTable(prints, halves, 1, 2))
        found.add_index(IndexTable(prints, first=300 - number, bytes_read=1))
    log, index = found.log, found.index
    assert log is not None and log is found.log and index is not None and sum(copied) < 2 * 600 * 10
    assert log.prints.stretch.tolist() == list(range(301)) and log.prints.count.tolist() == [1, *[2] * 299, 1]
    assert log.halves["phy_offset"].tolist() == list(range(300)) and (log.dropped, log.bytes_read) == (300, 600)
    assert (index.first, index.bytes_read) == (1, 300) and np.array_equal(index.prints.total, log.prints.total)


def test_nothing_was_added() -> None:
    assert (TableResults().log, TableResults().index, TableResults().read) == (None, None, False)
