"""Replicas in controller mode that write their ConsumeQueues twice, damaged and repaired: the real release starts on them, fenced
and as master, serves all that was kept from both kinds, gives the next queue offsets, and a second start changes nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.broker_truth.harness import own_network
from tests.broker_truth.harness.kinds import CONTROLLER
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, class_path, conf_of
from tests.broker_truth.harness.repairs import POLICIES, Key, expected, repair, served, valid_records
from tests.broker_truth.rocksdb.test_combined import READS, TWICE
from tests.broker_truth.rocksdb.test_combined_repair import both, database_bit, entries_zeroed
from tests.broker_truth.rocksdb.test_controlled_rocksdb import DAMAGES, ONE_KIND, write
from tests.support.answers import product

pytestmark = pytest.mark.broker

SETTINGS = {**TWICE, **CONTROLLER}
MORE: Mapping[str, Sequence[Callable[[Path], object]]] = {"database bit": [database_bit], "entries zeroed": [entries_zeroed]}


@dataclass(frozen=True)
class Store:
    """A repaired store. settings: those of who serves it.  end: of its log.  epoch: of its next election."""

    root: Path
    settings: Mapping[str, Any]
    wanted: Mapping[Key, bytes]
    end: int
    epoch: int

    @property
    def keys(self) -> set[tuple[str, int]]:
        return {(key[0], key[1]) for key in self.wanted}


@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
def test_both_kinds_of_a_repaired_replica_are_served(release: str, tmp_path: Path) -> None:
    own_network.needed()
    own_network.run(write, release, class_path(release), tmp_path, SETTINGS)
    stores = {}
    for number, (what, damages) in enumerate((DAMAGES | ONE_KIND | MORE).items()):
        copy = tmp_path / str(number) / "store"
        shutil.copytree(tmp_path / "store", copy)
        shutil.copytree(tmp_path / "older", copy.parent / "older")
        for damage in damages:
            damage(copy)
        made = _repaired(copy, release, what)
        if made is not None:
            stores[what] = made
    assert len(stores) > len(DAMAGES | ONE_KIND)
    wrong = own_network.run(_served, release, class_path(release), list(stores.values()))
    assert {what: found for what, found in zip(stores, wrong, strict=True) if found} == {}


def _repaired(copy: Path, release: str, what: str) -> Store | None:
    """None where the audit is incomplete: bad bytes that a start may compact, or a race that decides whether it starts."""
    random = Random(f"{release} {what}")
    settings = SETTINGS | random.choice([{}, READS])
    valid, conf = valid_records(copy), conf_of(settings)
    repaired = repair(copy, release, conf, random.choice(POLICIES), copy.parent / "new")
    if not repaired.plan["complete"]:
        assert repaired.exit_code == 3
        return None
    assert repaired.root is not None, (what, repaired.report.get("problems"))
    audit = product.audit(repaired.root, release, conf)
    assert audit.above_note == [] and audit.broker is not None and not audit.incomplete
    end = int(repaired.report["log_end"])
    wanted = {key: data for key, data in expected(valid).items() if key[3] < end}
    return Store(repaired.root, settings, wanted, end, audit.broker["controller"]["election"]["epoch"])


def _served(release: str, jars: Sequence[Path], stores: Sequence[Store]) -> list[list[str]]:
    """What is not as it should be, of each store."""
    with Jvm(release, jars) as jvm:
        return [_wrong(jvm, store) for store in stores]


def _wrong(jvm: Jvm, store: Store) -> list[str]:
    broker = _elected(jvm, store, store.epoch)
    found = [] if broker.state()["maxPhyOffset"] == store.end else [f"the log ends at {broker.state()['maxPhyOffset']}"]
    found += _differences(broker, store, 0)
    ends = {key: numbers[0] for key, numbers in both(broker, store.keys).items()}
    answers = broker.put([Put(topic, b"new", queue_id) for topic, queue_id in sorted(store.keys)])
    if [(answer.status, answer.queue_offset) for answer in answers] != [("PUT_OK", ends[key]) for key in sorted(store.keys)]:
        found.append(f"answers: {answers}, ends before: {ends}")
    broker.catch_up()
    time.sleep(0.2)
    end, after = broker.state()["maxPhyOffset"], both(broker, store.keys)
    broker.shutdown()
    again = _elected(jvm, store, store.epoch + 1)
    with again:
        if (again.state()["maxPhyOffset"], both(again, store.keys)) != (end, after):
            found.append(f"a second start changes: {after} to {both(again, store.keys)}")
        return found + _differences(again, store, len(answers))


def _elected(jvm: Jvm, store: Store, epoch: int) -> Broker:
    broker = jvm.broker(store.root, store.settings)
    broker.fence()
    assert broker.load(), store.root
    broker.start()
    assert broker.elect(epoch)
    time.sleep(0.1)
    for key in store.keys:  # those in RocksDB are made when somebody asks
        broker.java.getConsumeQueue(*key)
    return broker


def _differences(broker: Broker, store: Store, new: int) -> list[str]:
    """new: so many messages are served that nobody wanted before."""
    got = served(broker.serve(keys=False))
    missing = sorted(key for key, data in store.wanted.items() if got.get(key) != data)
    further = sorted(got.keys() - store.wanted.keys())
    found = [f"not served: {missing[:5]} of {len(missing)}"] if missing else []
    found += [f"served, too: {further[:5]} of {len(further)}"] if len(further) != new else []
    ends = {key: numbers for key, numbers in both(broker, store.keys).items() if numbers[0] != numbers[1]}
    return found + ([f"files and RocksDB end apart: {ends}"] if ends else [])
