"""Index files of a new store, whose raw entries are linked."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from store_io.kinds.index.index_rebuild import LinkTask
from store_io.log.entries.index_entries import entry_position
from store_io.repair.derived.kept_rows import RAW_DTYPE
from tests.support.stores.small_repairs import copied, small_store


def test_entries_of_one_slot_are_a_chain(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, _):
        path, rules = "index/20991114221320000", work.rules
        raw = np.zeros(3, RAW_DTYPE)
        raw["key_hash"] = [5, 6, 5]
        raw["phy_offset"], raw["store_time"] = [0, 200, 400], [10_000, 12_000, 15_500]
        work.writer.create(path, rules.index_file_bytes)
        work.writer.write(path, entry_position(rules.index_slots, 1), raw.tobytes())
        LinkTask(work.writer, rules, path, len(raw), previous_end_time=0).run()
        data = work.source.read_small(path)
        assert struct.unpack_from(">qqqqii", data) == (10_000, 15_500, 0, 400, 2, 4)
        assert list(
            struct.iter_unpack(">iqii", data[entry_position(rules.index_slots, 1) : entry_position(rules.index_slots, 4)])
        ) == [
            (5, 0, 0, 0),
            (6, 200, 2, 0),
            (5, 400, 5, 1),
        ]
        slots = np.frombuffer(data, ">i4", rules.index_slots, 40)
        assert {n: int(slots[n]) for n in np.flatnonzero(slots).tolist()} == {5: 3, 6: 2}
