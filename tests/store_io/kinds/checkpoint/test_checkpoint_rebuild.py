"""The checkpoint of a repaired store."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from store_io.broker.releases import broker_rules
from store_io.kinds.checkpoint.checkpoint_rebuild import NewCheckpoint, index_time, is_blamed, put, write_checkpoint
from tests.support.stores.small_repairs import copied, small_store


@pytest.mark.parametrize(("release", "last"), [("5.0.0", (0, 0)), ("5.1.1", (9, 0)), ("5.5.0", (9, 9))])
def test_fields_that_the_release_knows(release: str, last: tuple[int, int], tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, audit):
        assert not is_blamed(audit)
        work.rules = broker_rules(release)
        put(work, NewCheckpoint(5, 4, 3, 9), "why")
        data = work.source.read_small("checkpoint")
        assert len(data) == 4096 and struct.unpack_from(">6q", data) == (5, 5, 4, 3, *last)
        assert [(step.action, step.reason) for step in work.steps.done] == [("write_checkpoint", "why")]


@pytest.mark.parametrize(("stored", "expected"), [(-2, 0), (-1, -1), (100, 100), (101, 0)])
def test_the_master_s_offset_stays_where_the_log_holds_it(stored: int, expected: int, tmp_path: Path) -> None:
    root, conf = small_store(tmp_path)
    with copied(root, conf, tmp_path / "new") as (work, audit):
        write_checkpoint(work, audit, stored, 100)
        time, again, index, master = struct.unpack_from(">4q", work.source.read_small("checkpoint"))
        assert (time, again, master) == (audit.last_store_time, audit.last_store_time, expected)
        assert index == index_time(work, audit) > 0
