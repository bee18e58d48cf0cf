"""What the steps of a repair know of an audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.base.errors import Unreadable
from store_io.repair.repair_audit import audit
from tests.support.answers.repaired import plan_of, repaired
from tests.support.failing_reads import failing_calls
from tests.support.stores.small_repairs import copied, small_store


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
