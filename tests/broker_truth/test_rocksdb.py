"""Stores with ConsumeQueues in RocksDB, damaged: what the plan says against what the real release does on another copy."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.broker_truth.kinds import ROCKSDB
from tests.broker_truth.real_broker import BATCH, COMMIT, PREPARED, Broker, Jvm, Put, conf_of
from tests.support import product
from tests.support.builders import Record, walk
from tests.support.damage import invert_byte, remove

pytestmark = pytest.mark.broker

SEGMENT = 8192
WRITTEN = (("5.3.3", False), ("5.3.3", True), ("5.4.0", True), ("5.5.0", False))  # release, whether it was killed
SETTINGS = ROCKSDB | {
    "mappedFileSizeCommitLog": SEGMENT,
    "maxHashSlotNum": 100,
    "maxIndexNum": 600,
    "enableLmq": "true",
    "enableMultiDispatch": "true",
}
Numbers = tuple[int, int, int]


def puts(random: Random, first: int, count: int) -> Iterator[Put]:
    """Messages of three topics and one with a long name: delayed, of transactions, in batches, to light queues."""
    for number in range(first, first + count):
        topic = random.choice(["Topic0", "Topic1", "Topic2", "L" * 127])
        more: Mapping[str, Any] = random.choice(
            [
                *[{}] * 12,
                {"delay": 3},
                {"transaction": PREPARED},
                {"transaction": COMMIT},
                {"lmq": ["%LMQ%a", "%LMQ%b"]},
                {"kind": BATCH, "parts": [({"TAGS": "t"}, b"part"), ({}, b"another")], "uniq": None},
            ]
        )
        body = b"" if "kind" in more else b"x" * random.randrange(10, 300)
        yield Put(**({"topic": topic, "body": body, "queue_id": number % 2, "tags": "tag", "uniq": f"U{number}"} | more))


# ---- damages ------------------------------------------------------------------------------------------------------------


def records(store: Path) -> list[Record]:
    """All messages of the CommitLog, in order."""
    return [record for path in sorted((store / "commitlog").iterdir()) for record in walk(path.read_bytes(), int(path.name))]


def zero(store: Path, part: float, inside: int = 0) -> None:
    """Zero the log from a record on, or from inside of it."""
    all_records = records(store)
    end = all_records[int(len(all_records) * part)].at + inside
    for file in (store / "commitlog").iterdir():
        kept = min(max(0, end - int(file.name)), SEGMENT)
        file.write_bytes(file.read_bytes()[:kept].ljust(SEGMENT, b"\0"))


def flip(store: Path, part: float) -> None:
    """One bit of a record's body."""
    all_records = records(store)
    record = all_records[int(len(all_records) * part)]
    inside = record.at % SEGMENT
    invert_byte(store / "commitlog" / f"{record.at - inside:020d}", inside + record.size - 8, 1)


def flip_ends(store: Path) -> None:
    """One bit of each table with ends of queues."""
    for table in (store / "consumequeue").glob("*.sst"):
        data = bytearray(table.read_bytes())
        if b"CHECKPOINT_TOPIC" in data:
            data[20] ^= 1
            table.write_bytes(data)


def remove_segments(store: Path, which: slice) -> None:
    for file in sorted((store / "commitlog").iterdir())[which]:
        file.unlink()


def older(store: Path) -> None:
    remove(store / "consumequeue")
    shutil.copytree(store.parent / "older", store / "consumequeue")


def unclean(store: Path) -> None:
    (store / "abort").touch()


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "none": lambda s: None,
    "database gone": lambda s: remove(s / "consumequeue"),
    "CURRENT gone": lambda s: remove(s / "consumequeue" / "CURRENT"),
    "older database": older,
    "older database, unclean": lambda s: (older(s), unclean(s)),
    "log zeroed": lambda s: zero(s, 0.9),
    "log torn, unclean": lambda s: (zero(s, 0.8, 20), unclean(s)),
    "bit": lambda s: flip(s, 0.95),
    "bit, unclean": lambda s: (flip(s, 0.6), unclean(s)),
    "bit among the ends": flip_ends,
    "retention, no checkpoint": lambda s: (remove_segments(s, slice(3)), remove(s / "checkpoint")),
    "last segments gone, unclean": lambda s: (remove_segments(s, slice(-2, None)), unclean(s)),
}


# ---- the comparison -----------------------------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=WRITTEN,
    ids=lambda p: f"{p[0]}-{'killed' if p[1] else 'stopped'}",
)
def written(
    request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """(release, folder with the `store` of two lives and the `older` database of the first). Killed: a copy while it runs."""
    release, killed = request.param
    folder, random = tmp_path_factory.mktemp("written"), Random(release)
    for life, count in enumerate((120, 330)):
        broker = jvm_of(release).broker(folder / "live", SETTINGS)
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


def seen_by(broker: Broker, planned: Mapping[tuple[str, int], Any]) -> dict[tuple[str, int], Numbers]:
    """What the broker answers for each queue of the plan, and for those that it has beside."""
    found = dict(broker.queues())
    for topic, queue_id in planned:
        queue = broker.java.getConsumeQueue(topic, queue_id)
        found[topic, queue_id] = queue.getMinOffsetInQueue(), queue.getMaxOffsetInQueue(), queue.getMaxPhysicOffset()
    return {key: numbers for key, numbers in found.items() if key in planned or numbers[1]}


def answers(queue: Mapping[str, Any]) -> list[Numbers]:
    """The plan's numbers of a queue: one answer, or both where a race decides."""
    both = [queue, *([queue["or"]] if "or" in queue else [])]
    return [(one["min_offset"], one["max_offset"], one["max_phy_offset"]) for one in both]


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
    assert plan is not None, audit.incomplete
    with jvm_of(release).broker(tmp_path / "started", SETTINGS) as broker:
        assert broker.load() is plan["starts"]
        if not plan["starts"]:
            return
        broker.start()
        time.sleep(0.1)  # entries are put by a thread of its own
        state = broker.state()
        queues = {(q["topic"], q["queue_id"]): answers(q) for q in plan["after_dispatch"]["queues"]}
        found = seen_by(broker, queues)
    assert (state["maxPhyOffset"], state["minPhyOffset"]) == (plan["truncate_at"], plan["min_phy_offset"])
    wrong = {key: (queues.get(key), numbers) for key, numbers in found.items() if numbers not in queues.get(key, [])}
    assert not wrong
    files = [(file["file"], file["wrote"]) for file in plan["after_dispatch"]["commitlog"]]
    assert files == [(file["name"], file["wrotePosition"]) for file in state["commitLogFiles"]]
