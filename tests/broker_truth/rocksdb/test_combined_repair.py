"""Stores that write their ConsumeQueues twice, damaged and repaired: the real release starts on them, serves the same from both
kinds, gives the next queue offsets, and a second start changes nothing (rocksdb.md 9)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.broker_truth.harness.damaged_copies import (
    numbers_of,
    one_queue_gone,
    random_lives,
    two_lives,
    unclean,
    written_by,
    zero,
)
from tests.broker_truth.harness.real_broker import Broker, Jvm, Put, Served, conf_of
from tests.broker_truth.harness.repairs import POLICIES, Key, expected, repair, served, valid_records
from tests.broker_truth.rocksdb.test_combined import DAMAGES, LIGHT, NUMBERS, READS, TWICE
from tests.support.answers import product
from tests.support.damage import invert_byte
from tests.support.stores.builders import Record, decode

pytestmark = pytest.mark.broker


def database_bit(store: Path) -> None:
    path = max((store / "consumequeue").glob("*.sst"), key=lambda p: p.stat().st_size)
    invert_byte(path, path.stat().st_size // 3, 1)


def entries_zeroed(store: Path) -> None:
    """Some of one queue's entries in files."""
    path = max((store / "consumequeue").glob("Topic0/*/*"))
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes(60) + data[100:])


MORE_DAMAGES: Mapping[str, Callable[[Path], object]] = DAMAGES | {
    "database bit": database_bit,
    "entries zeroed": entries_zeroed,
    "queue gone, log torn": lambda s: (one_queue_gone(s), zero(s, 0.7, 20)),
    "database bit, unclean": lambda s: (database_bit(s), unclean(s)),
}
LOOKS: Mapping[str, Any] = {"recheckReputOffsetFromCq": "true"}
WRITTEN = (("5.4.0", False), ("5.5.0", True))  # release, whether it was killed
SETTINGS: Mapping[str, list[Mapping[str, Any]]] = {
    "5.4.0": [{}, READS, READS | NUMBERS, NUMBERS, LOOKS],
    "5.5.0": [{}, READS, LOOKS],  # a whole broker of 5.5.0 with other numbers ends after load()
}


written = written_by(WRITTEN, TWICE)


def opened(broker: Broker, wanted: dict[Key, bytes]) -> Broker:
    """Loaded and started, with all queues in memory: those in RocksDB are made when somebody asks."""
    broker.begin()
    time.sleep(0.1)
    for topic, queue_id in {(key[0], key[1]) for key in wanted}:
        broker.java.getConsumeQueue(topic, queue_id)
    return broker


def both(broker: Broker, keys: set[tuple[str, int]]) -> dict[tuple[str, int], list[int]]:
    """Each queue's maximum, in files and in RocksDB."""
    store = broker.java.getQueueStore()
    kinds = store.getConsumeQueueStore(), store.getRocksDBConsumeQueueStore()
    return {key: [numbers_of(kind.findOrCreateConsumeQueue(*key))[1] for kind in kinds] for key in sorted(keys)}


def assert_same(found: Served, wanted: dict[Key, bytes]) -> None:
    """Every message that is wanted, byte for byte, at its place, by each of its keys, and no other."""
    got = served(found)
    assert {key: data for key, data in wanted.items() if got.get(key) != data} == {}
    assert got.keys() - wanted.keys() == set()
    assert found.key_misses == ()
    at = {(m.topic, m.queue_id, m.queue_offset): m.phy_offset for m in found.messages}
    assert all(at[key[:3]] == key[3] for key in wanted)


LIGHT_DAMAGES = ("no database", "no files", "older database", "log torn, unclean", "database bit", "queue gone, log torn")


@pytest.fixture(scope="module", params=["5.4.0", "5.5.0"])
def written_light(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, store of two lives with light queues): in both kinds in 5.4.0, in RocksDB alone in 5.5.0."""
    folder = tmp_path_factory.mktemp("light")
    two_lives(jvm_of(request.param), folder, of_light(request.param), random_lives(request.param))
    return request.param, folder / "stopped"


def of_light(release: str) -> dict[str, Any]:
    return {**TWICE, **LIGHT, "combineCQUseRocksdbForLmq": str(release == "5.5.0").lower()}


def in_light_queues(kept: dict[int, tuple[Record, bytes]], end: int) -> dict[tuple[str, int], int]:
    """Name and queue offset -> the physical offset of the message there."""
    found = {}
    for at, (record, _) in kept.items():
        names, numbers = (record.properties.get(f"INNER_MULTI_{key}", "") for key in ("DISPATCH", "QUEUE_OFFSET"))
        if at < end and names and numbers:
            found |= {(name, int(number)): at for name, number in zip(names.split(","), numbers.split(","), strict=True)}
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", LIGHT_DAMAGES)
def test_light_queues_are_served_from_a_repaired_store(
    what: str, policy: str, written_light: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, store = written_light
    copy = shutil.copytree(store, tmp_path / "copy")
    shutil.copytree(store.parent / "older", tmp_path / "older")
    MORE_DAMAGES[what](copy)
    valid, settings = valid_records(copy), of_light(release)
    repaired = repair(copy, release, conf_of(settings), policy, tmp_path / "new")
    if not repaired.plan["complete"]:
        assert what == "database bit" and repaired.exit_code == 3
        return
    assert repaired.root is not None, repaired.report.get("problems")
    audit = product.audit(repaired.root, release, conf_of(settings))
    assert audit.above_note == [] and not audit.incomplete
    end = repaired.report["log_end"]
    wanted = {key: data for key, data in expected(valid).items() if key[3] < end}
    light = in_light_queues(valid, end)
    with jvm_of(release).broker(repaired.root, settings) as broker:
        opened(broker, wanted)
        assert_same(broker.serve(), wanted)
        for name in ("%LMQ%a", "%LMQ%b"):
            least, end_of_queue, _ = numbers_of(broker.java.getConsumeQueue(name, 0))
            got = [decode(data, 0).phy_offset for data in broker.pull(name, 0, ends=(least, end_of_queue))]
            assert got and dict(zip(range(least, end_of_queue), got, strict=True)) == {
                number: at for (of, number), at in light.items() if of == name
            }
        puts = [Put("Topic0", b"new", lmq=["%LMQ%a"])]
        assert [answer.status for answer in broker.put(puts)] == ["PUT_OK"]
        broker.catch_up()
        time.sleep(0.2)
        assert numbers_of(broker.java.getConsumeQueue("%LMQ%a", 0))[1] == max(n for name, n in light if name == "%LMQ%a") + 2


@pytest.mark.parametrize("what", MORE_DAMAGES)
def test_both_kinds_serve_a_repaired_store(
    what: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, store = written
    if what.endswith("unclean") and (store / "abort").exists():
        pytest.skip("a killed broker's store is unclean already")
    number = list(MORE_DAMAGES).index(what)
    settings = TWICE | SETTINGS[release][number % len(SETTINGS[release])]
    policy = POLICIES[Random(f"{release} {what}").randrange(2)]
    copy = tmp_path / "copy"
    shutil.copytree(store.parent / "older", tmp_path / "older")
    shutil.copytree(store, copy)
    MORE_DAMAGES[what](copy)
    wanted = expected(valid_records(copy))
    repaired = repair(copy, release, conf_of(settings), policy, tmp_path / "new")
    if not repaired.plan["complete"]:
        assert "database bit" in what and repaired.exit_code == 3
        return
    assert repaired.root is not None, repaired.report.get("problems")
    audit = product.audit(repaired.root, release, conf_of(settings))
    assert audit.above_note == [] and not audit.incomplete
    if policy == "broker" and repaired.plan["broker"] and repaired.plan["broker"]["starts"]:
        wanted = {key: data for key, data in wanted.items() if key[3] < repaired.plan["broker"]["truncate_at"]}
    keys = {(key[0], key[1]) for key in wanted}
    for place, other in enumerate(SETTINGS[release]):  # each kind is served, whoever gives the numbers
        shutil.copytree(repaired.root, tmp_path / f"other{place}")
        with jvm_of(release).broker(tmp_path / f"other{place}", TWICE | other) as broker:
            opened(broker, wanted)
            assert broker.state()["maxPhyOffset"] == repaired.report["log_end"]
            assert_same(broker.serve(), wanted)
            numbers = both(broker, keys)
            assert all(one == another for one, another in numbers.values()), numbers
    broker = opened(jvm_of(release).broker(repaired.root, settings), wanted)
    ends = {key: queue.max_offset for key, queue in broker.serve(keys=False).queues.items() if key in keys}
    puts = [Put(topic, b"new", queue_id, tags="new", keys=f"new-{queue_id}") for topic, queue_id in sorted(keys)]
    answers = broker.put(puts)
    assert [(a.status, a.queue_offset) for a in answers] == [("PUT_OK", ends[key]) for key in sorted(keys)]
    broker.catch_up()
    time.sleep(0.2)
    end, after = broker.state()["maxPhyOffset"], both(broker, keys)
    broker.shutdown()
    with jvm_of(release).broker(repaired.root, settings) as again:
        opened(again, wanted)
        assert again.state()["maxPhyOffset"] == end and both(again, keys) == after
        assert len(served(again.serve())) == len(wanted) + len(puts)
