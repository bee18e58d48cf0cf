"""Stores with ConsumeQueues in RocksDB, damaged: what the plan says against what the real release does on another copy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.broker_truth.harness.damaged_copies import (
    SIZES,
    damaged_twice,
    flip,
    older,
    planned,
    remove_segments,
    seen_by,
    unclean,
    written_by,
    zero,
)
from tests.broker_truth.harness.kinds import ROCKSDB
from tests.broker_truth.harness.real_broker import Jvm, conf_of
from tests.support.answers import product
from tests.support.damage import invert_byte, remove

pytestmark = pytest.mark.broker

WRITTEN = (("5.3.3", False), ("5.3.3", True), ("5.4.0", True), ("5.5.0", False))  # release, whether it was killed
SETTINGS = ROCKSDB | SIZES | {"enableLmq": "true", "enableMultiDispatch": "true"}


def flip_ends(store: Path) -> None:
    """One bit of each table with ends of queues."""
    for table in (store / "consumequeue").glob("*.sst"):
        if b"CHECKPOINT_TOPIC" in table.read_bytes():
            invert_byte(table, 20, 1)


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "none": lambda s: None,
    "database gone": lambda s: remove(s / "consumequeue"),
    "CURRENT gone": lambda s: remove(s / "consumequeue" / "CURRENT"),
    "older database": older,
    "older database, unclean": lambda s: (older(s), unclean(s)),
    "log zeroed": lambda s: zero(s, 0.9),
    "log torn, unclean": lambda s: (zero(s, 0.8, 20), unclean(s)),
    "bit": lambda s: flip(s, 0.95),
    "bit, unclean": lambda s: (flip(s, 0.6), unclean(s)),
    "bit among the ends": flip_ends,
    "retention, no checkpoint": lambda s: (remove_segments(s, slice(3)), remove(s / "checkpoint")),
    "last segments gone, unclean": lambda s: (remove_segments(s, slice(-2, None)), unclean(s)),
}


written = written_by(WRITTEN, SETTINGS)


@pytest.mark.parametrize("what", DAMAGES)
def test_the_plan_is_what_the_release_does(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, store = written
    audited, started = damaged_twice(store, DAMAGES[what], tmp_path)
    audit = product.audit(audited, release, conf_of(SETTINGS))
    plan = audit.broker
    assert plan is not None, audit.incomplete
    with jvm_of(release).broker(started, SETTINGS) as broker:
        assert broker.load() is plan["starts"]
        if not plan["starts"]:
            return
        broker.start()
        time.sleep(0.1)  # entries are put by a thread of its own
        state = broker.state()
        queues = planned(plan["after_dispatch"]["queues"])
        found = seen_by(broker, queues)
    assert (state["maxPhyOffset"], state["minPhyOffset"]) == (plan["truncate_at"], plan["min_phy_offset"])
    wrong = {key: (queues.get(key), numbers) for key, numbers in found.items() if numbers not in queues.get(key, [])}
    assert not wrong
    files = [(file["file"], file["wrote"]) for file in plan["after_dispatch"]["commitlog"]]
    assert files == [(file["name"], file["wrotePosition"]) for file in state["commitLogFiles"]]
