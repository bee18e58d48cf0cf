"""What the steps of a repair know of an audit."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from store_io.base.errors import StoreError, Unreadable
from store_io.repair.copy_under_way import CopyUnderWay
from store_io.repair.repair_audit import audit, audit_changed, audit_copy
from store_io.source.byte_source import StoreLocation
from tests.support.answers.repaired import plan_of, repaired
from tests.support.failing_reads import failing_calls
from tests.support.stores.small_repairs import SIZES, copied, small_store


class Copied:
    """Stands for a copy that is whole."""

    def __init__(self, location: StoreLocation):
        self.location, self.run_here = location, None

    def finish(self) -> None:
        pass


def test_an_audit_of_the_copy(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, audit):
        assert audit.complete and audit.starts and audit.serious == []
        assert len(audit.holding) == len(audit.segments) > 1
        last = audit.segments[-1]
        assert last.base_offset <= audit.last_message < last.base_offset + SIZES.segment
        assert audit.last_store_time == last.last_store_time
        scan = audit.scan_of(last)
        assert scan.path == last.path and not scan.probe and not scan.queue_files and scan.index is None
        assert audit_changed(work, "the copy").serious == []  # by the settings that the first audit settled
        work.writer.zero(audit.segments[0].path, 0, 300)
        assert any(f.file == audit.segments[0].path for f in audit_changed(work, "the copy").serious)
        with pytest.raises(StoreError, match="the store is not the one that the plan was made from: commitlog/"):
            audit_copy(work, cast(CopyUnderWay, Copied(work.location)))


def test_a_repair_knows_that_the_broker_has_no_timers(tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    (root / "timerwheel").write_bytes(bytes(100))  # no timer wheel's length
    plan = plan_of(root, "5.3.3", conf + "timerWheelEnable=false\n")
    assert plan.settings["timerWheelEnable"] is False
    assert repaired(root, tmp_path / "new", plan).exit_code == 0


def test_an_audit_that_has_not_read_all_decides_nothing(tmp_path: Path) -> None:
    """Also where its result is used whether it is complete or not: the queues to rebuild follow from it."""
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, _):
        for fail_at in (0, 9, 30):
            with failing_calls([Path(work.location.root)], ("preadv",), fail_at) as calls:
                with pytest.raises(Unreadable, match="Input/output error"):
                    audit(work, work.conf, "the repaired log")
            assert calls.failed[0]
