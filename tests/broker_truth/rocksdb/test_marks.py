"""Stores with an index in RocksDB: where the real release begins its recovery, and what it dispatches, against the plan.

And stores of releases that make rocksdbstore/ and use none of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.broker_truth.harness.damaged_copies import (
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
from tests.broker_truth.harness.real_broker import Jvm, Put, conf_of
from tests.support.answers import product
from tests.support.damage import remove
from tests.support.stores.corpus_tools import cases

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


def in_all(pattern: str, data: bytes) -> Callable[[Path], object]:
    return lambda s: [path.write_bytes(data) for path in (s / "rocksdbstore").glob(pattern)]


UNUSED: Mapping[str, Callable[[Path], object]] = {
    "none": DAMAGES["no database"],
    "a file": lambda s: (remove(s / "rocksdbstore"), (s / "rocksdbstore").write_bytes(b"x")),
    "current": in_all("CURRENT", b"garbage\n"),
    "manifest": in_all("MANIFEST-*", bytes(range(200))),
    "options": in_all("OPTIONS-*", bytes(range(200))),
    "log": in_all("*.log", bytes(range(250)) * 20),
    "identity": in_all("IDENTITY", b""),
}


@pytest.mark.parametrize("name", ["g68-540-no-crc", "g49-550-stray-checked"])
def test_a_start_comes_out_the_same_whatever_lies_in_a_database_that_it_does_not_use(
    name: str, jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    (case,) = cases(name)

    def started(what: str, damage: Callable[[Path], object]) -> object:
        case.unpack(tmp_path / what)
        store = tmp_path / what / "store"
        damage(store)
        with jvm_of(case.release).broker(store, case.broker_conf) as broker:
            broker.begin()
            (put,) = broker.put([Put("Topic0", b"new", keys="k", uniq="u")])
            return broker.queues(), put.status, put.queue_offset

    usual = started("usual", lambda s: None)
    assert {what: started(what, damage) for what, damage in UNUSED.items()} == dict.fromkeys(UNUSED, usual)


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
        broker.begin()
        queues = planned(plan["after_dispatch"]["queues"])
        found = seen_by(broker, queues)
        assert {key: [numbers] for key, numbers in found.items()} == queues
        assert broker.state()["maxPhyOffset"] == plan["truncate_at"]
