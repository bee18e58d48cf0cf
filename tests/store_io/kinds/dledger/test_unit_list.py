"""The list of index files while recovery cuts and rewrites it."""

from __future__ import annotations

from schemas.layouts.dledger_layout import INDEX_FILE_BYTES as SIZE
from schemas.rows import MappedFile
from store_io.kinds.dledger.ledger_recovery import UnitList


def three() -> UnitList:
    return UnitList([MappedFile(f"i/{n}", n * SIZE, SIZE) for n in range(3)])


def shown(units: UnitList) -> list[tuple[int, int]]:
    return [(f.start // SIZE, f.wrote) for f in units.files]


def test_truncate_deletes_later_files_and_keeps_one_that_begins_there() -> None:
    units = three()
    units.truncate(SIZE)
    assert shown(units) == [(0, SIZE), (1, 0)] and units.deleted == ["i/2"]


def test_writing_anew_needs_the_list_to_end_there() -> None:
    units = three()
    units.cut_for_writing(SIZE + 64)
    assert shown(units) == [(0, SIZE), (1, 64)]
    beyond = three()
    beyond.cut_for_writing(9 * SIZE + 32)
    assert shown(beyond) == [(9, 32)] and beyond.files[0].path is None and len(beyond.deleted) == 3
    none = UnitList([])
    none.cut_for_writing(0)
    none.write_up_to(SIZE + 32)
    assert shown(none) == [(0, SIZE), (1, 32)] and not none.on_disk(0) and none.holds(SIZE)


def test_what_ends_before_the_first_entry_goes() -> None:
    units = three()
    units.forget_before(2 * SIZE + 96)
    assert [(f.start // SIZE, f.begin) for f in units.files] == [(2, 96)]
