"""A copy's log and a donor's, compared."""

from __future__ import annotations

import shutil
from pathlib import Path

from store_io.repair.log.edits import message_extents
from store_io.repair.log.two_logs import TwoLogs
from store_io.source.byte_source import StoreLocation
from tests.support.stores.small_repairs import SIZES, copied, small_store


def test_where_two_copies_have_the_same_messages(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    shutil.copytree(root, tmp_path / "donor")
    with copied(root, conf, tmp_path / "new") as (work, audit):
        logs = TwoLogs(work.source, audit.segments, StoreLocation(str(tmp_path / "donor")), work.rules)
        compared, same = logs.recognise()
        assert compared == same > 0 and not logs.donor_continues()
        base = logs.held[1]
        end = message_extents(logs.own[base])[-1].end
        assert logs.parted_around(base) == ""
        with logs.donor.open(logs.files[base].path) as donor:
            assert logs.parted_beside(donor, base, (end, SIZES.segment), []) == ""
        work.writer.write(logs.own[base].path, end - 1, b"\xff")
        with logs.donor.open(logs.files[base].path) as donor:
            why = logs.parted_beside(donor, base, (end, SIZES.segment), [])
        assert why.startswith("the copies have other bytes beside it") and str(base + end) in why


def test_a_donor_that_goes_on_after_the_copy_s_last_message(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    shutil.copytree(root, tmp_path / "donor")
    last = max((root / "commitlog").iterdir())
    data = last.read_bytes()
    last.write_bytes(data[:200] + bytes(len(data) - 200))
    with copied(root, conf, tmp_path / "new") as (work, audit):
        assert TwoLogs(work.source, audit.segments, StoreLocation(str(tmp_path / "donor")), work.rules).donor_continues()
