"""The index in RocksDB: what is read of any bytes, whole and in ranges of keys."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.base.fingerprints import Stretches
from store_io.kinds.rocksdb_tables.index_table import IndexTable, IndexTableTask, decoded, entries_leading_into
from store_io.rocksdb.database import NO_DATABASE, Batch, StoredDatabase, find_database
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.rocksdb_stores import write_database

HOUR = 3_600_000


def key(hour: int, phy_offset: int, text: str = "@Topic@U@unique@") -> bytes:
    return struct.pack(">q", hour * HOUR) + text.encode() + struct.pack(">q", phy_offset)


def written(root: Path, pairs: dict[bytes, bytes]) -> StoredDatabase:
    write_database(root / "rocksdbstore", {"default": pairs.items()})
    return find_database(open_source(StoreLocation(str(root))).list_tree("rocksdbstore"), "rocksdbstore")


def read(root: Path, database: StoredDatabase, first: bytes = b"", end: bytes | None = None) -> IndexTable:
    return IndexTableTask(0, StoreLocation(str(root)), database, Stretches(100, 300, 100), first, end).run()


def test_entries_by_where_they_lead(tmp_path: Path) -> None:
    time = bytes(8)
    offsets = {(5, 50), (5, 100), (5, 199), (6, 200), (7, 300), (7, 400)}
    pairs = {key(hour, offset): time for hour, offset in offsets}
    pairs |= {b"lastOffsetPy": struct.pack(">q", 200), b"lastStoreTimeStamp": time, b"odd": b"", key(6, 200, "@" * 13): b"x"}
    database = written(tmp_path, pairs)
    found = read(tmp_path, database)
    assert (found.first, found.mark, found.beyond, found.first_beyond, found.odd) == (100, 200, 2, 300, 2)
    assert found.prints.stretch.tolist() == [0, 1] and found.prints.count.tolist() == [2, 1] and found.damaged is None
    half = struct.pack(">q", 6 * HOUR)
    parts = read(tmp_path, database, b"", half) + read(tmp_path, database, half)
    assert parts.hours is not None and found.hours is not None
    assert parts.hours.tolist() == found.hours.tolist() == [5 * HOUR, 6 * HOUR]
    for name, numbers in vars(found.prints).items():
        assert getattr(parts.prints, name).tolist() == numbers.tolist()
    assert {**vars(parts), "prints": 0, "hours": 0} == {**vars(found), "prints": 0, "hours": 0}
    source = open_source(StoreLocation(str(tmp_path)))
    led = entries_leading_into(source, database, Stretches(100, 300, 100), np.array([1]))
    assert list(led) == [(key(6, 200), time, 200)]
    assert read(tmp_path, NO_DATABASE).first == -1


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.binary(max_size=40) | st.just(key(1, 1)), st.binary(max_size=10) | st.just(bytes(8))), max_size=9))
def test_any_bytes_are_entries_or_odd(pairs: list[tuple[bytes, bytes]]) -> None:
    key_ends, value_ends = (np.cumsum([len(pair[i]) for pair in pairs], dtype=np.int64) for i in (0, 1))
    keys, values = (np.frombuffer(b"".join(pair[i] for pair in pairs), np.uint8) for i in (0, 1))
    phy, hours, _, good = decoded(Batch(key_ends, value_ends, keys, values))
    for (name, value), offset, hour, taken in zip(pairs, phy.tolist(), hours.tolist(), good.tolist(), strict=True):
        shaped = len(name) >= 21 and len(value) == 8 and name[8:9] == b"@" == name[-9:-8]
        assert taken is (shaped and int.from_bytes(name[-8:], "big", signed=True) >= 0)
        assert not taken or offset == int.from_bytes(name[-8:], "big")
        assert not taken or hour == int.from_bytes(name[:8], "big", signed=True)
