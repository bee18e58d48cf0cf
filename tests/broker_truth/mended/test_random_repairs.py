"""Random damaged stores, repaired: real brokers serve each valid message of the copy, but for those in the list to be sent again.

Each message is compared byte for byte with the copy's, which is read without the product.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from schemas.layouts.store_names import RESEND_SUFFIX
from tests.broker_truth.harness.kinds import ROCKSDB_RELEASES
from tests.broker_truth.harness.real_broker import RELEASES, Jvm, batch_topics
from tests.broker_truth.harness.repairs import POLICIES, expected, repair, served, valid_records
from tests.support.stores.random_stores import random_keyed, random_settings, random_store

pytestmark = pytest.mark.broker

JvmOf = Callable[[str], Jvm]
NUMBERS = range(7000, 7040)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", NUMBERS)
def test_each_message_is_served_or_listed(number: int, policy: str, jvm_of: JvmOf, tmp_path: Path) -> None:
    made = random_store(tmp_path / "store", Random(number))
    hold(made.store.root, RELEASES[number % len(RELEASES)], made.broker_conf, policy, jvm_of, made.describe())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("number", NUMBERS)
def test_so_it_is_with_queues_in_rocksdb(number: int, policy: str, jvm_of: JvmOf, tmp_path: Path) -> None:
    random, release = Random(number), ROCKSDB_RELEASES[number % len(ROCKSDB_RELEASES)]
    made, done = random_keyed(tmp_path / "store", random, release)
    conf = random_settings(random, made.plain) + "storeType=defaultRocksDB\n"
    hold(made.write().root, release, conf, policy, jvm_of, done)


def hold(root: Path, release: str, conf: str, policy: str, jvm_of: JvmOf, done: str) -> None:
    """Repair the store; fail if the release serves another set of messages. done: what was done to the store."""
    new, keyed, told = root.with_name("new"), "RocksDB" in conf, f"{done}; {release}, {' '.join(conf.split())}"
    repaired = repair(root, release, conf, policy, new)
    if repaired.exit_code == 3:  # refused: nothing to repair from, or a kind that no repair is written for
        assert not new.exists(), told
        return
    assert repaired.root is not None, told
    listed = places(new.with_name(f"new{RESEND_SUFFIX}"))
    wanted = {key: data for key, data in expected(valid_records(root)).items() if key[3] not in listed}
    with jvm_of(release).broker(new, conf, batch_topics(new) if release >= "5" else ()) as broker:
        assert broker.load(), told
        assert broker.state()["maxPhyOffset"] == repaired.report["log_end"], told
        broker.start()
        if keyed:  # entries are put by a thread of its own, and a broker makes a queue when somebody asks for it
            time.sleep(0.1)
            for topic, queue_id in {key[:2] for key in wanted}:
                broker.java.getConsumeQueue(topic, queue_id)
        found = served(broker.serve(keys=False))
    bridges = {bridge["phy_offset"] for bridge in repaired.report["bridges"]}
    assert {key: data for key, data in found.items() if key[3] not in bridges} == wanted, told


def places(path: Path) -> set[int]:
    """The physical offsets of the messages in the list; of a list that is not there none."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {json.loads(line)["phy_offset"] for line in lines}
