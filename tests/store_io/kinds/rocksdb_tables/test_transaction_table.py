"""Transactions in RocksDB: entries, and what no broker writes."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from store_io.kinds.rocksdb_tables.transaction_table import TransactionTable, TransactionTableTask
from store_io.rocksdb.database import NO_DATABASE, find_database
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.rocksdb_stores import write_database


def test_entries_and_mark(tmp_path: Path) -> None:
    good = {struct.pack(">q", n) + b"@pay@unique": struct.pack(">ii", 0, 90 + n) for n in (5, 7)}
    odd = {b"k": bytes(8), struct.pack(">q", 9) + b"@pay": bytes(8), struct.pack(">q", 8) + b"@p@u": struct.pack(">ii", -1, 9)}
    pairs = {**good, **odd, b"lastOffsetPy": struct.pack(">q", 7)}
    write_database(tmp_path / "rocksdbstore", {"default": (), "trans": pairs.items()})
    location = StoreLocation(str(tmp_path))
    database = find_database(open_source(location).list_tree("rocksdbstore"), "rocksdbstore")
    found = TransactionTableTask(0, location, database, 10).run()
    assert found.rows is not None and found.rows[["phy_offset", "size"]].tolist() == [(5, 95), (7, 97)]
    assert (found.mark, found.odd, found.damaged) == (7, 3, None) and found.rows["key"][0] == found.rows["key"][1]
    assert TransactionTableTask(0, location, database, 1).run().rows is None
    assert TransactionTableTask(0, location, NO_DATABASE, 1).run().mark == 0


@given(st.binary(max_size=30), st.binary(max_size=12))
def test_any_bytes_are_an_entry_or_odd(key: bytes, value: bytes) -> None:
    found, rows = TransactionTable(), list[tuple[int, int, int]]()
    TransactionTableTask(0, StoreLocation("/"), NO_DATABASE, 10)._take(key, value, found, rows)
    assert len(rows) + found.odd == (key != b"lastOffsetPy")
