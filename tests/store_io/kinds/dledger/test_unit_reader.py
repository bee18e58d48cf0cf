"""Index units by number, and a whole index file as runs."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from schemas.rows import MappedFile
from store_io.kinds.dledger.ledger_walks import UnitWalk
from store_io.kinds.dledger.unit_reader import UnitReader, UnitTask
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.damage import overwrite
from tests.support.stores.dledger_stores import FOLDER, SIZES, LedgerStore, build, unit

PATH = f"{FOLDER}/index/{0:020d}"


def walked(store: LedgerStore) -> UnitWalk:
    file = MappedFile(PATH, 0, store.index.stat().st_size)
    return UnitTask(0, StoreLocation(str(store.root)), file, SIZES.segment).run()


def test_units_of_a_healthy_log_are_one_run(tmp_path: Path) -> None:
    store = build(tmp_path)
    walk = walked(store)
    (run,) = walk.runs
    assert (run.first_index, run.last_index, run.start, run.end) == (0, 39, 0, store.end)
    assert walk.bytes_read < store.index.stat().st_size // 10  # a hole is not read


def test_a_unit_that_is_not_of_its_place_parts_the_runs(tmp_path: Path) -> None:
    store = build(tmp_path)
    overwrite(store.index, 32 * 5, unit(store.entries[5].at, store.entries[5].size, 6, 0))
    digest = walked(build(tmp_path / "other")).digest
    assert [(r.first_index, r.last_index) for r in walked(store).runs] == [(0, 4), (6, 39)] and walked(store).digest != digest


def test_units_are_read_by_number_and_zeros_where_no_file_is(tmp_path: Path) -> None:
    store = build(tmp_path)
    reader = UnitReader(open_source(StoreLocation(str(store.root))), (MappedFile(PATH, 0, 32 * 10),))
    rows = reader.read(8, 4)
    assert rows["index"].tolist() == [8, 9, 0, 0] and rows["pos"].tolist()[:2] == [store.entries[8].at, store.entries[9].at]
    reader.close()


@given(st.binary(max_size=400))
def test_any_bytes_give_runs(tmp_path_factory: object, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("units")  # type: ignore[attr-defined]
    (folder / "0").write_bytes(data)
    walk = UnitTask(0, StoreLocation(str(folder)), MappedFile("0", 0, len(data)), SIZES.segment).run()
    assert not walk.problem and all(r.first_index <= r.last_index for r in walk.runs)
