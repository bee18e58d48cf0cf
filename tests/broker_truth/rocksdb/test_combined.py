"""Stores that write their ConsumeQueues twice, in files and in RocksDB, damaged: the plan against what the real release does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.broker_truth.harness.damaged_copies import (
    PLAIN,
    damaged_twice,
    flip,
    numbers_of,
    one_queue_gone,
    planned,
    random_lives,
    remove_segments,
    unclean,
    written_by,
    zero,
)
from tests.broker_truth.harness.real_broker import Jvm, conf_of
from tests.support.answers import product
from tests.support.damage import remove

pytestmark = pytest.mark.broker

TWICE = PLAIN | {"rocksdbCQDoubleWriteEnable": "true", "combineCQUseRocksdbForLmq": "true"}
READS = {"combineCQPreferCQType": "defaultRocksDB"}
LIGHT = {"enableLmq": "true", "enableMultiDispatch": "true"}
LIGHT_IN_ROCKSDB = {"enableLmq": "true", "enableMultiDispatch": "false"}
FILES_ALONE = {"combineCQLoadingCQTypes": "default", "combineCQUseRocksdbForLmq": "false"}
NUMBERS = {"combineAssignOffsetCQType": "defaultRocksDB", "combineCQUseRocksdbForLmq": "false"}
WRITTEN = (("5.4.0", False), ("5.4.0", True), ("5.5.0", False), ("5.5.0", True))  # release, whether it was killed


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
    "light queues": LIGHT,
    "light queues, reads RocksDB": LIGHT | READS,
    "light queues in RocksDB": LIGHT_IN_ROCKSDB | READS,
    "files alone": FILES_ALONE,
    "RocksDB alone": READS | NUMBERS | {"combineCQLoadingCQTypes": "defaultRocksDB"},
    "dispatches again": {"recheckReputOffsetFromCq": "true"},
    "confirms": {"duplicationEnable": "true"},
}


written = written_by(WRITTEN, TWICE | LIGHT)


@pytest.mark.parametrize("what", DAMAGES)
def test_the_plan_is_what_the_release_does(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    release, store = written
    if what.endswith("unclean") and (store / "abort").exists():
        pytest.skip("a killed broker's store is unclean already")
    # A whole broker of 5.5.0 with other numbers ends after load(), the message store alone does not.
    able = [more for more in MORE.values() if release == "5.4.0" or "combineCQUseRocksdbForLmq" not in more]
    settings = TWICE | Random(request.node.name).choice(able)
    audited, started = damaged_twice(store, DAMAGES[what], tmp_path)
    audit = product.audit(audited, release, conf_of(settings))
    plan = audit.broker
    if (
        plan is None
        and len(audit.incomplete) == 1
        and "a race inside the broker decides whether it starts" in audit.incomplete[0]
    ):
        return
    assert plan is not None, audit.incomplete
    with jvm_of(release).broker(started, settings) as broker:
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
        after = plan["after_dispatch"]
        light = release >= "5.5" and settings.get("combineCQUseRocksdbForLmq") == "true"
        wrong = {}
        for kind in {"queues", "queues_files"} & after.keys():
            for (topic, queue_id), answers in planned(after[kind]).items():
                rocks = "combineCQPreferCQType" in settings or light and topic.startswith("%LMQ%")
                both = broker.java.getQueueStore()
                if "queues_files" in after:
                    in_rocksdb = rocks == (kind == "queues")
                    both = both.getRocksDBConsumeQueueStore() if in_rocksdb else both.getConsumeQueueStore()
                seen = numbers_of(both.findOrCreateConsumeQueue(topic, queue_id))
                if seen not in answers:
                    wrong[kind, topic, queue_id] = answers, seen
        listed = {key for kind in {"queues", "queues_files"} & after.keys() for key in planned(after[kind])}
        missing = {key for key, numbers in broker.queues().items() if numbers[1] and key not in listed}
    assert (state["maxPhyOffset"], state["minPhyOffset"]) == (plan["truncate_at"], plan["min_phy_offset"])
    assert not wrong and not missing


@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
@pytest.mark.parametrize("far", [{}, MORE["far"]], ids=["near", "far"])
def test_double_write_that_was_switched_on_later_is_no_alarm(
    release: str, far: Mapping[str, Any], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    """In the first life queues are in files alone. The index gets the last message before it once more."""
    lives = [*random_lives(release), [replace(put, uniq=f"again {put.uniq}") for put in random_lives(release)[0][:60]]]
    for life, wanted in enumerate(lives):
        settings = TWICE | far if life else PLAIN
        with jvm_of(release).broker(tmp_path / "store", settings) as broker:
            broker.begin()
            assert {answer.status for answer in broker.put(wanted)} == {"PUT_OK"}
            broker.catch_up()
            time.sleep(0.1)  # entries are put by a thread of its own
            broker.shutdown()
        audit = product.audit(tmp_path / "store", release, conf_of(settings))
        assert audit.broker is not None and not audit.above_note, (life, audit.above_note[:3])
        assert not life or "queue_twin_missing" in {f.code for f in audit.findings}
