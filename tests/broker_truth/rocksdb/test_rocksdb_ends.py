"""Bad bytes among the ends of queues in RocksDB, beside the end mark: the plan against what the releases do (rocksdb.md 3)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker_truth.harness.damaged_copies import numbers_of, planned, records, zero_from
from tests.broker_truth.harness.kinds import ROCKSDB
from tests.broker_truth.harness.real_broker import Jvm, Put, conf_of
from tests.support.answers import product
from tests.support.damage import invert_byte

pytestmark = pytest.mark.broker

SEGMENT = 1 << 17
QUEUES = 2400  # their ends take three blocks of a table; the mark is in the last one
SETTINGS = ROCKSDB | {"mappedFileSizeCommitLog": SEGMENT, "maxHashSlotNum": 100, "maxIndexNum": 600}
FIRST, MIDDLE = 20, 40_000  # bytes of the table with the ends


@pytest.fixture(scope="module", params=["5.3.3", "5.4.0", "5.5.0"])
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, folder): `store` after one life; `longer` after a second one, with the database of the first."""
    release = request.param
    folder = tmp_path_factory.mktemp("written")
    lives = [[f"Topic{n % QUEUES:04d}" for n in range(2 * QUEUES)], [f"Topic{n:04d}" for n in range(0, QUEUES, 10)]]
    for topics, copy in zip(lives, ("store", "longer"), strict=True):
        broker = jvm_of(release).broker(folder / "live", SETTINGS)
        broker.begin()
        broker.put([Put(topic, b"x" * 20) for topic in topics])
        broker.catch_up()
        time.sleep(0.3)  # entries are put by a thread of its own
        broker.shutdown()
        shutil.copytree(folder / "live", folder / copy)
    for path in (folder / "longer" / "consumequeue").iterdir():
        if path.is_file():
            path.unlink()
    for path in (folder / "store" / "consumequeue").iterdir():
        if path.is_file():
            shutil.copy(path, folder / "longer" / "consumequeue" / path.name)
    return release, folder


def damage(store: Path, at: int) -> None:
    (table,) = (path for path in (store / "consumequeue").glob("*.sst") if b"CHECKPOINT_TOPIC" in path.read_bytes())
    invert_byte(table, at, 1)


@pytest.mark.parametrize(
    ("name", "at", "zeroed"),
    [("store", FIRST, True), ("store", MIDDLE, False), ("store", MIDDLE, True), ("longer", MIDDLE, False)],
)
def test_the_plan_is_what_the_release_does(
    name: str, at: int, zeroed: bool, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, folder = written
    store = tmp_path / "s"
    shutil.copytree(folder / name, store)
    damage(store, at)
    if zeroed:
        found = records(store)
        zero_from(store, found[QUEUES + QUEUES // 2].at, SEGMENT)  # among the second messages of the topics
    audit = product.audit(store, release, conf_of(SETTINGS))
    plan = audit.broker
    assert plan is not None and plan["starts"], audit.incomplete
    assert "queue_database_damaged" in {f.code for f in audit.findings}
    with jvm_of(release).broker(store, SETTINGS) as broker:
        broker.begin()
        time.sleep(0.3)
        expected = planned(plan["after_dispatch"]["queues"])
        seen = {key: numbers_of(broker.java.getConsumeQueue(*key)) for key in expected}
        assert not {key: (seen[key], answers) for key, answers in expected.items() if seen[key] not in answers}
        hidden = [key for key, answers in expected.items() if answers == [(-1, 0, -1)]]
        assert len(expected) == QUEUES and 0 < len(hidden) < QUEUES
        assert broker.put([Put(hidden[0][0], b"new")])[0].status == "UNKNOWN_ERROR"
