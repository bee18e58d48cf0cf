"""Real brokers start on repaired stores with queues in RocksDB, serve all that was promised, give the next queue offsets, and
start again without a change."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker_truth.harness.damaged_copies import older, two_lives
from tests.broker_truth.harness.kinds import ROCKSDB
from tests.broker_truth.harness.real_broker import Broker, Jvm, Served, conf_of
from tests.broker_truth.harness.repairs import POLICIES, Key, expected, repair, valid_records
from tests.broker_truth.mended.test_repair import assert_serves, messages, put_more, segments, torn_tail
from tests.support.damage import invert_byte, overwrite, remove

pytestmark = pytest.mark.broker

SEGMENT = 16384
SETTINGS = ROCKSDB | {
    "mappedFileSizeCommitLog": SEGMENT,
    "maxHashSlotNum": 100,
    "maxIndexNum": 300,
    "maxMessageSize": 32768,
    "enableLmq": "true",
    "enableMultiDispatch": "true",
}
RELEASES = "5.3.3", "5.4.0", "5.5.0"
APART = {"useSeparateStorePathForRocksdbCQ": "true"}
Settings = dict[str, Any]


def settings_of(release: str) -> Settings:
    return dict(SETTINGS | (APART if release == "5.5.0" else {}))


# ---- what is written, and damaged --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, folder with a store `stopped`, one `killed` in its second life, and the `older` database of the first)."""
    release, folder = request.param, tmp_path_factory.mktemp("written")
    wanted = [put for put in messages(release, 300) if put.topic != "BatchTopic"]
    two_lives(jvm_of(release), folder, settings_of(release), (wanted[:150], wanted[150:]), database_of, killed=True)
    return release, folder


def database_of(store: Path) -> Path:
    """The folder with the database."""
    apart = store / "consumequeue_rocksdb"
    return apart if apart.exists() else store / "consumequeue"


def older_ends(store: Path) -> None:
    older(store, database_of(store).name)


def manifest_bit(store: Path) -> None:
    """A bit of the file that lists the tables: the database does not open."""
    path = next(database_of(store).glob("MANIFEST-*"))
    invert_byte(path, path.stat().st_size // 2, 1)


def zeroed(store: Path, part: float, count: int = 0) -> None:
    """Zeros from the middle of a message on, up to the middle of the `count`th after it; 0: one bit of its body."""
    found = valid_records(store)
    offsets = sorted(at for at, (record, _) in found.items() if len(record.body) > 40)
    start = offsets[int(len(offsets) * part)]
    path = store / "commitlog" / f"{start - start % SEGMENT:020d}"
    record, data = found[start][0], path.read_bytes()
    at = data.index(record.body, start % SEGMENT) + 20
    if not count:
        invert_byte(path, at, 4)
        return
    after = [other for other in sorted(found) if start < other < start - start % SEGMENT + SEGMENT]
    overwrite(path, at, bytes(after[min(count, len(after) - 1)] - start + 40 - 20))


def older_and_torn(store: Path) -> None:
    older_ends(store)
    torn_tail(store)


def retention(store: Path) -> None:
    """The first segments are gone, and the queues' ends are those of an older database; the log's end is torn."""
    for path in segments(store)[:2]:
        path.unlink()
    older_and_torn(store)


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "killed": ("killed", lambda store: None),
    "database gone": ("stopped", lambda store: remove(database_of(store))),
    "table gone": ("stopped", lambda store: next(database_of(store).glob("*.sst")).unlink()),
    "bit in the MANIFEST": ("stopped", manifest_bit),
    "older database, torn": ("stopped", older_and_torn),
    "bit in the log": ("killed", lambda store: zeroed(store, 0.6)),
    "messages zeroed": ("stopped", lambda store: zeroed(store, 0.4, 5)),
    "segment gone": ("killed", lambda store: segments(store)[1].unlink()),
    "retention": ("stopped", retention),
}


CASES = [  # each release has every other damage, each damage of two releases one policy and then the other
    (release, damage)
    for place, release in enumerate(RELEASES)
    for number, damage in enumerate(DAMAGES)
    if (place + number) % 2 == 0
]


# ---- the test ----------------------------------------------------------------------------------------------------------


def opened(broker: Broker, wanted: dict[Key, bytes]) -> Broker:
    """Loaded and started, with all queues in memory: a broker makes them when somebody asks."""
    broker.begin()
    time.sleep(0.1)
    light = [("%LMQ%all", 0), *((f"%LMQ%{n}", 0) for n in range(3))]
    for topic, queue_id in {(key[0], key[1]) for key in wanted} | set(light):
        broker.java.getConsumeQueue(topic, queue_id)
    return broker


@pytest.mark.parametrize(("written", "damage"), CASES, indirect=["written"])
def test_broker_serves_a_repaired_store(
    damage: str, written: tuple[str, Path], jvm_of: Callable[[str], Jvm], tmp_path: Path
) -> None:
    release, folder = written
    how, change = DAMAGES[damage]
    policy = POLICIES[(list(DAMAGES).index(damage) // 2 + RELEASES.index(release) // 2) % 2]
    settings, copy = settings_of(release), tmp_path / "copy"
    shutil.copytree(folder / how, copy)
    shutil.copytree(folder / "older", tmp_path / "older")
    change(copy)
    valid = valid_records(copy)
    wanted = expected(valid)
    repaired = repair(copy, release, conf_of(settings), policy, tmp_path / "new")
    assert repaired.root is not None, repaired.report.get("problems")
    assert repaired.report["database"]["entries"] >= len(wanted) or policy == "broker"
    if policy == "broker" and repaired.plan["broker"]["starts"]:
        wanted = {key: data for key, data in wanted.items() if key[3] < repaired.plan["broker"]["truncate_at"]}
    broker = opened(jvm_of(release).broker(repaired.root, settings), wanted)
    first = broker.serve()
    assert_serves(first, wanted, valid)
    more = put_more(broker, first)
    broker.shutdown()
    with jvm_of(release).broker(repaired.root, settings) as again:
        opened(again, wanted | more.messages)
        assert again.state()["maxPhyOffset"] == more.end
        second = again.serve()
        assert_serves(second, wanted | more.messages, valid)
        assert ends_of(second) == ends_of(more.served)


def ends_of(served: Served) -> dict[tuple[str, int], tuple[int, int]]:
    return {key: (queue.min_offset, queue.max_offset) for key, queue in served.queues.items()}
