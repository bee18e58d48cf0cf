"""What tests share that hold plans against real releases: a store of two lives of its broker, its damages, the plan's queues."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.broker_truth.harness.real_broker import BATCH, COMMIT, PREPARED, Broker, Jvm, Put
from tests.support.damage import invert_byte, remove
from tests.support.stores.builders import Record, walk

SEGMENT = 8192
SIZES: Mapping[str, Any] = {"mappedFileSizeCommitLog": SEGMENT, "maxHashSlotNum": 100, "maxIndexNum": 600}
PLAIN = SIZES | {"mappedFileSizeConsumeQueue": 2000}
Numbers = tuple[int, int, int]


# ---- what is written ----------------------------------------------------------------------------------------------------


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


def random_lives(release: str) -> list[list[Put]]:
    """What is put in two lives."""
    random = Random(release)
    return [list(puts(random, 1000 * life, count)) for life, count in enumerate((120, 330))]


def two_lives(
    jvm: Jvm,
    folder: Path,
    settings: Mapping[str, Any],
    lives: Sequence[Sequence[Put]],
    database_of: Callable[[Path], Path] = lambda store: store / "consumequeue",
    killed: bool = False,
    pause: float = 0.1,
) -> None:
    """In `folder`: the store `stopped` after its second life, and `older`, the store's database after its first.

    killed: with `killed`, a copy made while the broker runs.  pause: seconds, for threads that write what was put.
    """
    for life, wanted in enumerate(lives):
        broker = jvm.broker(folder / "live", settings)
        broker.begin()
        assert {answer.status for answer in broker.put(wanted)} == {"PUT_OK"}
        broker.catch_up()
        time.sleep(pause)
        if life and killed:
            shutil.copytree(folder / "live", folder / "killed")
        broker.shutdown()
        if not life:
            shutil.copytree(database_of(folder / "live"), folder / "older")
    (folder / "live").rename(folder / "stopped")


def written_by(releases: Sequence[tuple[str, bool]], settings: Mapping[str, Any]) -> Any:
    """A module's fixture: (release, store of two lives), for each release and whether it was killed: a copy while it runs."""

    @pytest.fixture(scope="module", params=releases, ids=lambda p: f"{p[0]}-{'killed' if p[1] else 'stopped'}")
    def written(
        request: pytest.FixtureRequest, jvm_of: Callable[[str], Jvm], tmp_path_factory: pytest.TempPathFactory
    ) -> tuple[str, Path]:
        release, killed = request.param
        folder = tmp_path_factory.mktemp("written")
        two_lives(jvm_of(release), folder, settings, random_lives(release), killed=killed)
        return release, folder / ("killed" if killed else "stopped")

    return written


# ---- damages ------------------------------------------------------------------------------------------------------------


def damaged_twice(store: Path, damage: Callable[[Path], object], target: Path) -> tuple[Path, Path]:
    """Two copies of a store of `two_lives` with the same damage: `audited` and `started`, and `older` beside them."""
    shutil.copytree(store.parent / "older", target / "older")
    copies = target / "audited", target / "started"
    for copy in copies:
        shutil.copytree(store, copy)
        damage(copy)
    return copies


def records(store: Path) -> list[Record]:
    """All messages of the CommitLog, in order."""
    return [record for path in sorted((store / "commitlog").iterdir()) for record in walk(path.read_bytes(), int(path.name))]


def zero_from(store: Path, end: int, segment: int = SEGMENT) -> None:
    """Zero the log from a physical offset on."""
    for file in (store / "commitlog").iterdir():
        kept = min(max(0, end - int(file.name)), segment)
        file.write_bytes(file.read_bytes()[:kept].ljust(segment, b"\0"))


def zero(store: Path, part: float, inside: int = 0) -> None:
    """Zero the log from a record on, or from inside of it."""
    all_records = records(store)
    zero_from(store, all_records[int(len(all_records) * part)].at + inside)


def flip(store: Path, part: float) -> None:
    """One bit of a record's body."""
    all_records = records(store)
    record = all_records[int(len(all_records) * part)]
    inside = record.at % SEGMENT
    invert_byte(store / "commitlog" / f"{record.at - inside:020d}", inside + record.size - 8, 1)


def remove_segments(store: Path, which: slice) -> None:
    for file in sorted((store / "commitlog").iterdir())[which]:
        file.unlink()


def one_queue_gone(store: Path) -> None:
    remove(next(iter(sorted((store / "consumequeue").glob("Topic*/*")))))


def older(store: Path, database: str = "consumequeue") -> None:
    remove(store / database)
    shutil.copytree(store.parent / "older", store / database)


def unclean(store: Path) -> None:
    (store / "abort").touch()


# ---- queues -------------------------------------------------------------------------------------------------------------


def planned(queues: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], list[Numbers]]:
    """The plan's numbers of each queue: one answer, or both where a race decides."""
    return {(queue["topic"], queue["queue_id"]): _answers(queue) for queue in queues}


def _answers(queue: Mapping[str, Any]) -> list[Numbers]:
    both = [queue, *([queue["or"]] if "or" in queue else [])]
    return [(one["min_offset"], one["max_offset"], one["max_phy_offset"]) for one in both]


def numbers_of(queue: Any) -> Numbers:
    """What a queue of a broker answers."""
    return queue.getMinOffsetInQueue(), queue.getMaxOffsetInQueue(), queue.getMaxPhysicOffset()


def seen_by(broker: Broker, queues: Mapping[tuple[str, int], Any]) -> dict[tuple[str, int], Numbers]:
    """What the broker answers for each of these queues, and for those that it has beside."""
    found = dict(broker.queues())
    for topic, queue_id in queues:
        found[topic, queue_id] = numbers_of(broker.java.getConsumeQueue(topic, queue_id))
    return {key: numbers for key, numbers in found.items() if key in queues or numbers[1]}
