"""Entries of timers: what is read of any bytes, and what is said where they cannot be read."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.kinds.timers import timer_table
from store_io.kinds.timers.timer_table import TimerEntries, TimerEntriesTask, read_timer_table, timer_entries
from store_io.rocksdb.database import Batch
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.damage import invert_byte
from tests.support.stores.keyed_timers import timer_key, timer_value
from tests.support.stores.rocksdb_stores import write_database


def written(root: Path, pairs: Sequence[tuple[bytes, bytes]]) -> Path:
    write_database(root / "rocksdbstore", {"timer": pairs, "trans": ()})
    return root


def read(root: Path, most: int = 100) -> TimerEntries:
    location = StoreLocation(str(root))
    source = open_source(location)
    table = read_timer_table(source, source.list_tree("rocksdbstore"))
    return TimerEntriesTask(0, location, table.database, most).run()


def test_entries_and_checkpoints(tmp_path: Path) -> None:
    pairs = [(timer_key(5000, "A"), timer_value(90, 7)), (timer_key(4000, "A"), timer_value(91, 1 << 40))]
    stored = [(b"sys_topic_scan_offset_checkpoint", struct.pack(">q", 12)), (b"timeline_checkpoint", struct.pack(">q", 4500))]
    root = written(tmp_path, [*pairs, *stored])
    source = open_source(StoreLocation(str(root)))
    table = read_timer_table(source, source.list_tree("rocksdbstore"))
    assert (table.queue_offset, table.read_time, table.damaged, table.unread) == (12, 4500, None, None)
    found = read(root)
    assert found.rows is not None and (found.count, found.odd) == (2, 0)
    assert found.rows[["time", "phy_offset", "size"]].tolist() == [(4000, 1 << 40, 91), (5000, 7, 90)]
    assert found.rows["unique"][0] == found.rows["unique"][1]
    assert read(root, 1).rows is None and read(root, 1).count == 2


def test_without_a_database_nothing_is_stored(tmp_path: Path) -> None:
    source = open_source(StoreLocation(str(tmp_path)))
    table = read_timer_table(source, [])
    assert table.database.absent and (table.queue_offset, table.read_time) == (0, None)
    assert list(timer_entries(source, table.database, TimerEntries())) == []


@pytest.mark.parametrize("name", ["MANIFEST-*", "*.sst"])
def test_bad_bytes_are_said(name: str, tmp_path: Path) -> None:
    root = written(tmp_path, [(timer_key(n, "A" * 30), timer_value(1, n)) for n in range(1, 400)])
    file = max((root / "rocksdbstore").glob(name), key=lambda path: path.stat().st_size)
    invert_byte(file, 40, 1)
    source = open_source(StoreLocation(str(root)))
    table = read_timer_table(source, source.list_tree("rocksdbstore"))
    damaged = table.damaged or read(root).damaged
    assert damaged is not None and damaged[0].startswith("rocksdbstore")


PAIRS = st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=20)), max_size=20)


@settings(deadline=None)  # the first call compiles
@given(PAIRS)
def test_any_bytes_are_entries_or_odd(pairs: list[tuple[bytes, bytes]]) -> None:
    key_ends, value_ends = (np.cumsum([len(pair[i]) for pair in pairs], dtype=np.int64) for i in (0, 1))
    keys, values = (np.frombuffer(b"".join(pair[i] for pair in pairs), np.uint8) for i in (0, 1))
    found = TimerEntries()
    rows = timer_table._rows(Batch(key_ends, value_ends, keys, values), found)
    assert rows[["time", "phy_offset", "size"]].tolist() == list(_expected(pairs))
    stored = [key for key, value in pairs if key.endswith(b"_checkpoint") and len(value) == 8]
    assert len(rows) + found.odd == len(pairs) - len(stored) and bool(found.first_odd) is bool(found.odd)


def _expected(pairs: list[tuple[bytes, bytes]]) -> Iterator[tuple[int, int, int]]:
    for key, value in pairs:
        if len(key) > 8 and len(value) == 12:
            (time,), (size, phy_offset) = struct.unpack(">q", key[:8]), struct.unpack(">iq", value)
            if time >= 0 and phy_offset >= 0 and size > 0:
                yield time, phy_offset, size
