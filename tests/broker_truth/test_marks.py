"""Stores with an index in RocksDB: where the real release begins its recovery, and what it dispatches, against the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.broker_truth.damaged_copies import (
    PLAIN,
    damaged_twice,
    older,
    one_queue_gone,
    planned,
    random_lives,
    seen_by,
    two_lives,
    unclean,
    zero,
)
from tests.broker_truth.real_broker import Jvm, conf_of
from tests.support import product
from tests.support.damage import remove

pytestmark = pytest.mark.broker

SETTINGS = PLAIN | {"indexRocksDBEnable": "true"}


older_index = partial(older, database="rocksdbstore")


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "none": lambda s: None,
    "no database": lambda s: remove(s / "rocksdbstore"),
    "no database, a queue's files gone, unclean": lambda s: (remove(s / "rocksdbstore"), one_queue_gone(s), unclean(s)),
    "older database, a queue's files gone": lambda s: (older_index(s), one_queue_gone(s)),
    "older database, unclean": lambda s: (older_index(s), unclean(s)),
    "log zeroed": lambda s: zero(s, 0.8),
}


@pytest.fixture(scope="module", params=["5.4.0", "5.5.0"])
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, store of two lives)."""
    folder, lives = tmp_path_factory.mktemp("written"), random_lives(request.param)
    # The index is written by a thread of its own.
    two_lives(jvm_of(request.param), folder, SETTINGS, lives, lambda store: store / "rocksdbstore", pause=0.5)
    return request.param, folder / "stopped"


@pytest.mark.parametrize("what", DAMAGES)
def test_the_plan_is_what_the_release_does(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, store = written
    audited, started = damaged_twice(store, DAMAGES[what], tmp_path)
    audit = product.audit(audited, release, conf_of(SETTINGS))
    plan = audit.broker
    assert plan is not None and plan["starts"], audit.incomplete
    with jvm_of(release).broker(started, SETTINGS) as broker:
        assert broker.load()
        broker.start()
        queues = planned(plan["after_dispatch"]["queues"])
        found = seen_by(broker, queues)
        assert {key: [numbers] for key, numbers in found.items()} == queues
        assert broker.state()["maxPhyOffset"] == plan["truncate_at"]
