"""Stores that write their ConsumeQueues twice, in files and in RocksDB, damaged: the plan against what the real release does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.broker_truth.real_broker import Jvm, conf_of
from tests.broker_truth.test_rocksdb import SEGMENT, answers, flip, puts, remove_segments, unclean, zero
from tests.support import product
from tests.support.damage import remove

pytestmark = pytest.mark.broker

PLAIN = {"mappedFileSizeCommitLog": SEGMENT, "maxHashSlotNum": 100, "maxIndexNum": 600, "mappedFileSizeConsumeQueue": 2000}
TWICE = PLAIN | {"rocksdbCQDoubleWriteEnable": "true", "combineCQUseRocksdbForLmq": "true"}
READS = {"combineCQPreferCQType": "defaultRocksDB"}
NUMBERS = {"combineAssignOffsetCQType": "defaultRocksDB", "combineCQUseRocksdbForLmq": "false"}
WRITTEN = (("5.4.0", False), ("5.4.0", True), ("5.5.0", False), ("5.5.0", True))  # release, whether it was killed


def files_of(store: Path) -> list[Path]:
    return sorted((store / "consumequeue").glob("*/*/*"))


def no_files(store: Path) -> None:
    for folder in (store / "consumequeue").iterdir():
        if folder.is_dir():
            remove(folder)


def no_database(store: Path) -> None:
    for file in (store / "consumequeue").iterdir():
        if file.is_file():
            file.unlink()


def older_database(store: Path) -> None:
    no_database(store)
    for file in (store.parent / "older").iterdir():
        if file.is_file():
            shutil.copy(file, store / "consumequeue" / file.name)


def older_files(store: Path) -> None:
    no_files(store)
    for folder in (store.parent / "older").iterdir():
        if folder.is_dir():
            shutil.copytree(folder, store / "consumequeue" / folder.name)


def one_queue_gone(store: Path) -> None:
    remove(next(iter(sorted((store / "consumequeue").glob("Topic*/*")))))


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "none": lambda s: None,
    "no database": no_database,
    "no database, unclean": lambda s: (no_database(s), unclean(s)),
    "no files": no_files,
    "no files, unclean": lambda s: (no_files(s), unclean(s)),
    "a queue's files gone": one_queue_gone,
    "older database": older_database,
    "older database, unclean": lambda s: (older_database(s), unclean(s)),
    "older files": older_files,
    "older files, unclean": lambda s: (older_files(s), unclean(s)),
    "log zeroed": lambda s: zero(s, 0.9),
    "log torn, unclean": lambda s: (zero(s, 0.8, 20), unclean(s)),
    "bit": lambda s: flip(s, 0.95),
    "bit, unclean": lambda s: (flip(s, 0.6), unclean(s)),
    "retention, no checkpoint": lambda s: (remove_segments(s, slice(3)), remove(s / "checkpoint")),
}
MORE: Mapping[str, Mapping[str, Any]] = {
    "files": {},
    "reads RocksDB": READS,
    "RocksDB": READS | NUMBERS,
    "RocksDB gives the numbers": NUMBERS,
    "far": {"combineCQMaxExtraSearchCommitLogFiles": 100, "commitLogRecoverMaxNum": 100},
}


@pytest.fixture(scope="module", params=WRITTEN, ids=lambda p: f"{p[0]}-{'killed' if p[1] else 'stopped'}")
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, folder with the `store` of two lives and the `older` queues of the first). Killed: a copy while it runs."""
    release, killed = request.param
    folder, random = tmp_path_factory.mktemp("written"), Random(release)
    for life, count in enumerate((120, 330)):
        broker = jvm_of(release).broker(folder / "live", TWICE)
        assert broker.load()
        broker.start()
        assert {answer.status for answer in broker.put(list(puts(random, 1000 * life, count)))} == {"PUT_OK"}
        broker.catch_up()
        time.sleep(0.1)
        if life and killed:
            shutil.copytree(folder / "live", folder / "store")
        broker.shutdown()
        if not life:
            shutil.copytree(folder / "live" / "consumequeue", folder / "older")
    if not killed:
        shutil.copytree(folder / "live", folder / "store")
    return release, folder


def seen_by(store: Any, planned: list[Mapping[str, Any]]) -> dict[tuple[str, int], tuple[int, int, int]]:
    found = {}
    for row in planned:
        queue = store.findOrCreateConsumeQueue(row["topic"], row["queue_id"])
        numbers = queue.getMinOffsetInQueue(), queue.getMaxOffsetInQueue(), queue.getMaxPhysicOffset()
        found[row["topic"], row["queue_id"]] = numbers
    return found


@pytest.mark.parametrize("what", DAMAGES)
def test_the_plan_is_what_the_release_does(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release, folder = written
    if what.endswith("unclean") and (folder / "store" / "abort").exists():
        pytest.skip("a killed broker's store is unclean already")
    # A whole broker of 5.5.0 with other numbers ends after load(), the message store alone does not.
    able = [more for more in MORE.values() if release == "5.4.0" or "combineCQUseRocksdbForLmq" not in more]
    settings = TWICE | Random(request.node.name).choice(able)
    for copy in ("audited", "started"):
        shutil.copytree(folder / "store", tmp_path / copy)
        shutil.copytree(folder / "older", tmp_path / "older", dirs_exist_ok=True)
        DAMAGES[what](tmp_path / copy)
    audit = product.audit(tmp_path / "audited", release, conf_of(settings))
    plan = audit.broker
    if (
        plan is None
        and len(audit.incomplete) == 1
        and "a race inside the broker decides whether it starts" in audit.incomplete[0]
    ):
        return
    assert plan is not None, audit.incomplete
    with jvm_of(release).broker(tmp_path / "started", settings) as broker:
        loaded = broker.load()
        if not plan["starts"] and not loaded:
            return
        try:
            broker.start()
        except RuntimeError as why:
            assert not plan["starts"], why
            return
        assert plan["starts"], plan["refusal"]
        time.sleep(0.1)  # entries are put by a thread of its own
        state = broker.state()
        both = broker.java.getQueueStore()
        stores = both.getConsumeQueueStore(), both.getRocksDBConsumeQueueStore()
        reads = "RocksDB" in str(settings.get("combineCQPreferCQType", ""))
        read, other = reversed(stores) if reads else stores
        wrong = {}
        for key, store in (("queues", read), ("queues_files", other)):
            rows = plan["after_dispatch"][key]
            seen = seen_by(store, rows)
            for row in rows:
                if seen[row["topic"], row["queue_id"]] not in answers(row):
                    wrong[key, row["topic"], row["queue_id"]] = answers(row), seen[row["topic"], row["queue_id"]]
        missing = {key for key, numbers in broker.queues().items() if numbers[1]} - {
            (row["topic"], row["queue_id"]) for row in plan["after_dispatch"]["queues"]
        }
    assert (state["maxPhyOffset"], state["minPhyOffset"]) == (plan["truncate_at"], plan["min_phy_offset"])
    assert not wrong and not missing
