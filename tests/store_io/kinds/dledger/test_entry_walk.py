"""Data files walked by their headers: stretches, units, and any bytes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.rows import MappedFile
from store_io.kinds.dledger.entry_walk import DataTask, walk_data
from store_io.kinds.dledger.ledger_walks import CHAIN, FILLER, HEADER, UNWRITTEN, DataWalk
from store_io.source.byte_source import StoreLocation
from store_io.wording.gaps import gap_text
from tests.store_io.log.scan.test_segment_scan import MemorySource
from tests.support.damage import overwrite
from tests.support.stores.dledger_stores import FOLDER, SIZES, LedgerStore, build, header, unit

LOCATION = StoreLocation("memory")


def walked(store: LedgerStore, number: int = 0, wanted: int = -1, window_bytes: int = 4 << 20) -> DataWalk:
    path = store.data(number)
    file = MappedFile(f"{FOLDER}/data/{path.name}", int(path.name), SIZES.segment)
    index = MappedFile(f"{FOLDER}/index/{0:020d}", 0, store.index.stat().st_size)
    return DataTask(0, StoreLocation(str(store.root)), file, (index,), wanted, window_bytes).run()


@pytest.fixture
def store(tmp_path: Path) -> LedgerStore:
    return build(tmp_path)


@pytest.mark.parametrize("window_bytes", [4 << 20, 200])
def test_a_whole_file_is_one_stretch(store: LedgerStore, window_bytes: int) -> None:
    own = [e for e in store.entries if e.at < SIZES.segment]
    walk = walked(store, 0, own[3].index, window_bytes)
    (stretch,) = walk.stretches
    assert (stretch.first_index, stretch.last_index, stretch.last_start) == (0, own[-1].index, own[-1].at)
    assert (stretch.end, stretch.ended_by, stretch.unequal) == (own[-1].at + own[-1].size, FILLER, None)
    assert walk.sound_start and walk.wanted is not None and walk.wanted.end == own[3].at + own[3].size
    last = walked(store, -1, window_bytes=window_bytes)
    assert last.stretches[0].ended_by == UNWRITTEN and last.stretches[0].end == store.end % SIZES.segment


@pytest.mark.parametrize("window_bytes", [4 << 20, 200])
def test_a_broken_header_ends_a_stretch_and_the_next_header_is_found(store: LedgerStore, window_bytes: int) -> None:
    broken = store.entries[2]
    store.flip(store.data(0), broken.at + 25)  # its position
    first, second = walked(store, 0, window_bytes=window_bytes).stretches
    assert (first.last_index, first.ended_by, first.end) == (1, HEADER, broken.at)
    assert (second.first_index, second.start) == (3, store.entries[3].at)


def test_an_index_that_jumps_begins_a_stretch(store: LedgerStore) -> None:
    store.flip(store.data(0), store.entries[2].at + 15)
    first, odd, rest = walked(store).stretches
    assert (first.ended_by, odd.ended_by) == (CHAIN, CHAIN) and odd.start == odd.last_start == store.entries[2].at
    assert rest.first_index == 3


def test_units_that_differ_are_counted_by_range(store: LedgerStore) -> None:
    overwrite(store.index, 32 * 2, bytes(64))
    walk = walked(store)
    assert (
        [(u.first_index, u.count) for u in walk.unequal_units] == [(2, 2)] and walk.stretches[0].unequal == 2 and walk.sound_start
    )
    store.index.unlink()
    lost = DataTask(0, StoreLocation(str(store.root)), MappedFile(f"{FOLDER}/data/{0:020d}", 0, SIZES.segment), ()).run()
    assert lost.unequal_units[0].first_index == 0 and not lost.sound_start


def test_a_file_that_changed_is_a_problem(store: LedgerStore) -> None:
    file = MappedFile(f"{FOLDER}/data/{0:020d}", 0, 7)
    assert "bytes" in gap_text(DataTask(0, StoreLocation(str(store.root)), file, ()).run().problem)


PIECE = st.one_of(
    st.binary(max_size=60),
    st.builds(header, st.integers(-60, 200), st.integers(-3, 9), st.integers(-2, 3), st.integers(0, 400)),
    st.builds(unit, st.integers(-1, 400), st.integers(-1, 200), st.integers(-2, 9), st.integers(-1, 3)),
    st.just(b"\xff\xff\xff\xff\x00\x00\x00\x40"),
)


@given(st.lists(PIECE, max_size=9).map(b"".join), st.binary(max_size=200), st.integers(-3, 9))
def test_any_bytes_give_stretches_in_order(data: bytes, units: bytes, wanted: int) -> None:
    data = data.ljust(64, b"\0")
    source = MemorySource({"dledger-n0/data/0": data, "dledger-n0/index/0": units})
    index = (MappedFile("dledger-n0/index/0", 0, len(units)),)
    task = DataTask(0, LOCATION, MappedFile("dledger-n0/data/0", 0, len(data)), index, wanted, 200)
    walk = walk_data(task, source)  # type: ignore[arg-type]
    assert not walk.problem
    ends = [(s.start, s.end) for s in walk.stretches]
    assert all(start < end <= len(data) for start, end in ends) and ends == sorted(ends)
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
