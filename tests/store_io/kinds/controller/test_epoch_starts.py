"""Which epochs begin at no record."""

from __future__ import annotations

from pathlib import Path

from schemas.rows import MappedFile
from store_io.broker.releases import broker_rules
from store_io.kinds.controller.epoch_starts import EpochPlace, EpochStartsTask, look_up
from store_io.source.byte_source import StoreLocation
from tests.support.stores import builders
from tests.support.stores.replica import replica


def test_a_start_is_sought_as_a_record_or_a_filler(tmp_path: Path) -> None:
    store = replica(tmp_path / "store")
    first = MappedFile(f"commitlog/{0:020d}", 0, store.sizes.segment)
    own = [record for record in store.records if record.at < store.sizes.segment]
    filler = own[-1].at + own[-1].size
    starts = [own[3].at, own[3].at + 1, filler, filler + 1, own[-1].at]
    task = EpochStartsTask(
        0, StoreLocation(str(store.root)), broker_rules("5.3.3"), tuple(EpochPlace(start, first) for start in starts)
    )
    result = look_up(task)
    assert result.no_record == [own[3].at + 1, filler + 1] and not result.problem and result.bytes_read
    assert task.paths == (first.path,) and task.run() == result
    assert store.segment_of(own[0]).read_bytes()[filler + 4 : filler + 8] == builders.BLANK.to_bytes(4, "big")


def test_a_file_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    place = EpochPlace(5, MappedFile("commitlog/x", 0, 100))
    (tmp_path / "commitlog").mkdir()
    assert look_up(EpochStartsTask(0, StoreLocation(str(tmp_path)), broker_rules(), (place,))).problem
