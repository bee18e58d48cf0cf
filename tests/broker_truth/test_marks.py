"""Stores with an index in RocksDB: where the real release begins its recovery, and what it dispatches, against the plan."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest

from tests.broker_truth.real_broker import Jvm, conf_of
from tests.broker_truth.test_combined import PLAIN, one_queue_gone
from tests.broker_truth.test_rocksdb import answers, puts, seen_by, unclean, zero
from tests.support import product
from tests.support.damage import remove

pytestmark = pytest.mark.broker

SETTINGS = PLAIN | {"indexRocksDBEnable": "true"}


def older(store: Path) -> None:
    remove(store / "rocksdbstore")
    shutil.copytree(store.parent / "older", store / "rocksdbstore")


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "none": lambda s: None,
    "no database": lambda s: remove(s / "rocksdbstore"),
    "no database, a queue's files gone, unclean": lambda s: (remove(s / "rocksdbstore"), one_queue_gone(s), unclean(s)),
    "older database, a queue's files gone": lambda s: (older(s), one_queue_gone(s)),
    "older database, unclean": lambda s: (older(s), unclean(s)),
    "log zeroed": lambda s: zero(s, 0.8),
}


@pytest.fixture(scope="module", params=["5.4.0", "5.5.0"])
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    folder, random = tmp_path_factory.mktemp("written"), Random(request.param)
    for life, count in enumerate((120, 330)):
        broker = jvm_of(request.param).broker(folder / "store", SETTINGS)
        assert broker.load()
        broker.start()
        broker.put(list(puts(random, 1000 * life, count)))
        broker.catch_up()
        time.sleep(0.5)  # the index is written by a thread of its own
        broker.shutdown()
        if not life:
            shutil.copytree(folder / "store" / "rocksdbstore", folder / "older")
    return request.param, folder


@pytest.mark.parametrize("what", DAMAGES)
def test_the_plan_is_what_the_release_does(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, folder = written
    for copy in ("audited", "started"):
        shutil.copytree(folder / "store", tmp_path / copy)
        shutil.copytree(folder / "older", tmp_path / "older", dirs_exist_ok=True)
        DAMAGES[what](tmp_path / copy)
    audit = product.audit(tmp_path / "audited", release, conf_of(SETTINGS))
    plan = audit.broker
    assert plan is not None and plan["starts"], audit.incomplete
    with jvm_of(release).broker(tmp_path / "started", SETTINGS) as broker:
        assert broker.load()
        broker.start()
        queues = {(q["topic"], q["queue_id"]): answers(q) for q in plan["after_dispatch"]["queues"]}
        found = seen_by(broker, queues)
        assert {key: [numbers] for key, numbers in found.items()} == queues
        assert broker.state()["maxPhyOffset"] == plan["truncate_at"]
