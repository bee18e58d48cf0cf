"""How far the tables of rocksdbstore/ reach."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from store_io.kinds.rocksdb_tables.stored_marks import StoredMarks, read_marks
from store_io.kinds.timers.timer_table import read_timer_table
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.rocksdb_stores import write_database


@pytest.mark.parametrize(("family", "mark"), [("timer", 700), ("later", None)])
def test_a_database_with_a_family_that_no_broker_opens_has_no_marks(family: str, mark: int | None, tmp_path: Path) -> None:
    """RocksDB refuses to open it without that family: no segment passes then, and a repair makes it anew."""
    write_database(tmp_path / "rocksdbstore", {"default": [(b"lastOffsetPy", struct.pack(">q", 700))], "trans": [], family: []})
    source = open_source(StoreLocation(str(tmp_path)))
    files = source.list_tree("rocksdbstore")
    assert read_marks(source, files, ["default"]) == StoredMarks((mark,))
    damaged = read_timer_table(source, files).damaged
    assert damaged == (None if mark else ("rocksdbstore", "Column families not opened: later"))
