"""Real brokers start on repaired stores, serve what was promised, take new messages, and start again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.broker_truth.harness.real_broker import (
    BATCH,
    COMMIT,
    INNER_BATCH,
    PREPARED,
    RELEASES,
    ROLLBACK,
    Broker,
    Jvm,
    Put,
    Served,
)
from tests.broker_truth.harness.repairs import POLICIES, Key, expected, in_a_queue, measure, repair, served, valid_records
from tests.support.stores import corpus_tools
from tests.support.stores.builders import Record
from tests.support.stores.corpus_tools import Case

pytestmark = pytest.mark.broker

JvmOf = Callable[[str], Jvm]
SEGMENT, PAGE = 65536, 4096
WITH_EXT = ("4.9.8", "5.1.4", "5.5.0")
HALF, OPERATIONS = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"


# ---- what is written -----------------------------------------------------------------------------------------------


def settings(release: str) -> str:
    lines = [f"mappedFileSizeCommitLog={SEGMENT}", "mappedFileSizeConsumeQueue=600", "mapperFileSizeBatchConsumeQueue=460"]
    lines += ["maxHashSlotNum=100", "maxIndexNum=300", "maxMessageSize=32768", "mappedFileSizeConsumeQueueExt=4096"]
    lines += [f"enableConsumeQueueExt={str(release in WITH_EXT).lower()}"]
    lines += ["enableLmq=true", "enableMultiDispatch=true"] if release >= "4.9" else []
    return "\n".join(lines) + "\n"


def batch_topics(release: str) -> list[str]:
    return ["BatchTopic"] if release >= "5" else []


def messages(release: str, count: int = 420) -> list[Put]:
    """Several topics and queues; tags, keys, delays, transactions of every outcome, batches, light queues, long names."""
    found = []
    for n in range(count):
        body = f"message {n} 正文 ".encode() * (1 + n % 7 + (n % 97 == 0) * 200)
        plain = Put(f"Topic{n % 3}", body, n // 3 % 2, f"tag{n % 4}" if n % 5 else None, f"key{n} common{n % 9}", f"U{n:05d}")
        found.append(plain)
        if n % 20 == 3:
            found.append(Put("Topic0", body, delay=1 + n % 18, uniq=f"D{n:05d}"))
        if n % 20 == 7:
            found.append(Put(HALF, body, transaction=PREPARED, uniq=f"P{n:05d}"))
            outcome = COMMIT if n % 40 == 7 else ROLLBACK
            found.append(Put("Topic1", body, transaction=outcome, uniq=f"P{n:05d}"))
            found.append(Put(OPERATIONS, b"%d" % n, tags="d"))
        if n % 20 == 11:
            found.append(Put("Topic2", kind=BATCH, parts=[({"UNIQ_KEY": f"B{n:05d}-{k}"}, body) for k in range(3)]))
        if n % 20 == 13 and release >= "4.9":
            found.append(Put("Topic1", body, lmq=("%LMQ%all", f"%LMQ%{n % 3}"), uniq=f"L{n:05d}"))
        if n % 20 == 15 and release >= "5":
            found.append(Put("BatchTopic", kind=INNER_BATCH, uniq=f"I{n:05d}", parts=[({}, body) for _ in range(1 + n % 4)]))
            found.append(Put("LongName" * 20, body, uniq=f"V{n:05d}"))
    return found


@dataclass(frozen=True)
class Written:
    """Two stores of one release with the same messages: one stopped cleanly, one killed. `original`: what was served of each."""

    stopped: Path
    killed: Path
    original: dict[str, dict[Key, bytes]]

    def store(self, how: str) -> Path:
        return self.stopped if how == "stopped" else self.killed


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Written]]:
    known: dict[str, Written] = {}

    def of(release: str) -> Written:
        if release not in known:
            known[release] = _write(release, tmp_path_factory.mktemp(f"written-{release}"))
        return known[release]

    yield of
    for one in known.values():
        shutil.rmtree(one.stopped.parent)


def _write(release: str, folder: Path) -> Written:
    original = {}
    with Jvm(release) as jvm:
        brokers = {how: jvm.broker(folder / how, settings(release), batch_topics(release)) for how in ("stopped", "killed")}
        for how, broker in brokers.items():
            broker.begin()
            assert {answer.status for answer in broker.put(messages(release))} == {"PUT_OK"}
            broker.catch_up()
            original[how] = served(broker.serve(keys=False))
        brokers["stopped"].shutdown()
        jvm.kill()
    return Written(folder / "stopped", folder / "killed", original)


# ---- damage --------------------------------------------------------------------------------------------------------


def segments(root: Path) -> list[Path]:
    """Those with messages: a broker makes the next one ahead of time."""
    return [path for path in sorted((root / "commitlog").iterdir()) if any(path.read_bytes()[:8])]


def write_at(path: Path, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        assert file.read(len(data)) != data
        file.seek(position)
        file.write(data)


def none(root: Path) -> None:
    pass


def body_bit(root: Path) -> None:
    """One bit of a body in the second-last segment."""
    path = segments(root)[-2]
    records = [r for r, _ in valid_records(root).values() if int(path.name) <= r.phy_offset and len(r.body) > 20]
    record, data = records[7], path.read_bytes()
    at = data.index(record.body, record.phy_offset - int(path.name))
    write_at(path, at, bytes([data[at] ^ 4]))


def torn_tail(root: Path) -> None:
    """The last record's second half never reached the disk."""
    record = valid_records(root)[max(valid_records(root))][0]
    path = segments(root)[-1]
    at = record.phy_offset - int(path.name)
    write_at(path, at + record.size // 2, bytes(record.size - record.size // 2))


def zero_page(root: Path) -> None:
    """A page of the second segment, whose edges lie in bodies: properties have no checksum, and half of some would do."""
    path = segments(root)[1]
    data, base = path.read_bytes(), int(path.name)
    bodies = [(at := data.index(r.body, r.phy_offset - base), at + len(r.body)) for r, _ in valid_records(root).values()
              if base <= r.phy_offset < base + SEGMENT and r.body]  # fmt: skip
    inside = [n for n in range(1, SEGMENT // PAGE) if any(low < n * PAGE < high - 1 for low, high in bodies)]
    page = next(n for n in inside if n + 1 in inside)
    write_at(path, page * PAGE, bytes(PAGE))


def queue_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "Topic1" / "1")


def index_gone(root: Path) -> None:
    shutil.rmtree(root / "index")


def stale_queues(root: Path) -> None:
    """The last pages of the log are lost; queues and index still have entries for them."""
    last, path = valid_records(root), segments(root)[-1]
    mine = sorted(at for at in last if at >= int(path.name))
    at = mine[len(mine) // 2] - int(path.name)
    write_at(path, at, bytes(SEGMENT - at))


def middle_gone(root: Path) -> None:
    segments(root)[1].unlink()


def last_truncated(root: Path) -> None:
    """A copy that broke off: the last file is shorter than it was."""
    spare = [path for path in sorted((root / "commitlog").iterdir()) if path not in segments(root)]
    for path in spare:
        path.unlink()
    path = segments(root)[-1]
    os.truncate(path, PAGE + 100)


DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "stopped": ("stopped", none),
    "killed": ("killed", none),
    "body_bit": ("killed", body_bit),
    "torn_tail": ("killed", torn_tail),
    "zero_page": ("stopped", zero_page),
    "queue_gone": ("stopped", queue_gone),
    "index_gone": ("stopped", index_gone),
    "stale_queues": ("stopped", stale_queues),
    "middle_gone": ("killed", middle_gone),
    "last_truncated": ("killed", last_truncated),
}


# ---- the test ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("release", RELEASES)
def test_broker_serves_a_repaired_store(
    release: str, damage: str, policy: str, jvm_of: JvmOf, written: Callable[[str], Written], tmp_path: Path
) -> None:
    how, change = DAMAGES[damage]
    root = tmp_path / "copy"
    shutil.copytree(written(release).store(how), root)
    change(root)
    valid = valid_records(root)
    wanted, original = expected(valid), written(release).original[how]
    assert all(original[key] == data for key, data in wanted.items())
    assert (len(wanted) == len(original)) == (damage in ("stopped", "killed", "queue_gone", "index_gone"))

    repaired = repair(root, release, settings(release), policy, tmp_path / "new")
    assert repaired.exit_code == 0, repaired.report.get("problems")
    assert repaired.root is not None
    if policy == "broker" and repaired.plan["broker"]["starts"]:
        limit = repaired.plan["broker"]["truncate_at"]
        wanted = {key: data for key, data in wanted.items() if key[3] < limit}
    jvm = jvm_of(release)
    with jvm.broker(repaired.root, settings(release), batch_topics(release)) as broker:
        assert broker.load()
        end = broker.state()["maxPhyOffset"]
        broker.start()
        first = broker.serve()
        assert_serves(first, wanted, valid)
        for (topic, queue_id), queue in first.queues.items():
            assert set(broker.pull(topic, queue_id)) == {m.data for m in queue.messages}
        if policy == "broker" and repaired.plan["broker"]["starts"]:
            assert_nothing_lost(jvm, release, root, tmp_path / "own", first, wanted)
        more = put_more(broker, first)
        assert broker.state()["maxPhyOffset"] > end
        shutil.copytree(repaired.root, tmp_path / "again")
    with jvm.broker(tmp_path / "again", settings(release), batch_topics(release)) as broker:
        assert broker.load()
        assert broker.state()["maxPhyOffset"] == more.end
        broker.start()
        second = broker.serve()
        # Without keys: after a crash the release deletes index files that are newer than the checkpoint tells.
        assert_serves(second, wanted | more.messages, valid, keys=False)
        assert [m.queue_offset for m in second.messages] == [m.queue_offset for m in more.served.messages]


@pytest.mark.parametrize("release", RELEASES)
def test_clean_stop_of_a_repaired_store(release: str, jvm_of: JvmOf, written: Callable[[str], Written], tmp_path: Path) -> None:
    """Salvaged around a hole, started, stopped as brokers are stopped, started again: recovery ends where it did."""
    root = tmp_path / "copy"
    shutil.copytree(written(release).stopped, root)
    zero_page(root)
    valid = valid_records(root)
    repaired = repair(root, release, settings(release), "salvage", tmp_path / "new")
    assert repaired.root is not None, repaired.report.get("problems")
    broker = jvm_of(release).broker(repaired.root, settings(release), batch_topics(release))
    broker.begin()
    more = put_more(broker, broker.serve())
    broker.shutdown()
    assert not (repaired.root / "abort").exists()
    with jvm_of(release).broker(repaired.root, settings(release), batch_topics(release)) as broker:
        assert broker.load()
        assert broker.state()["maxPhyOffset"] == more.end
        broker.start()
        assert_serves(broker.serve(), expected(valid) | more.messages, valid)


def assert_serves(found: Served, wanted: dict[Key, bytes], valid: dict[int, tuple[Record, bytes]], keys: bool = True) -> None:
    """Every message that is wanted, byte for byte, where it tells that it is; and by each of its keys; and no other."""
    got = served(found)
    assert {key: data for key, data in wanted.items() if got.get(key) != data} == {}
    assert got.keys() - wanted.keys() == set()
    assert not keys or found.key_misses == ()
    at = {(m.topic, m.queue_id, m.queue_offset): m for m in found.messages}
    for topic, queue_id, queue_offset, phy_offset in wanted:
        message = at[topic, queue_id, queue_offset]
        assert message.phy_offset == phy_offset
    light = {m.phy_offset for m in found.messages if m.topic.startswith("%LMQ%all")}
    assert light == {phy for phy, (r, _) in valid.items() if "%LMQ%all" in r.properties.get("INNER_MULTI_DISPATCH", "")} & {
        key[3] for key in wanted
    }


def assert_nothing_lost(jvm: Jvm, release: str, root: Path, copy: Path, found: Served, wanted: dict[Key, bytes]) -> None:
    """What the broker itself serves of the damaged copy, and what is valid of that, is served of the repaired one."""
    shutil.copytree(root, copy)
    with jvm.broker(copy, settings(release), batch_topics(release)) as broker:
        broker.begin()
        own = served(broker.serve(keys=False))
    got = served(found)
    assert {key for key, data in own.items() if wanted.get(key) == data and got.get(key) != data} == set()


@dataclass(frozen=True)
class More:
    """What was put into a repaired store, and all that it served then. end: of its log."""

    messages: dict[Key, bytes]
    served: Served
    end: int


def put_more(broker: Broker, before: Served) -> More:
    """One message more for each queue of a plain topic: it gets the next offset of its queue, and is served there."""
    queues = [key for key in before.queues if key[0].startswith("Topic")]
    puts = [Put(topic, b"new", queue_id, tags="new", keys=f"new-{topic}-{queue_id}") for topic, queue_id in queues]
    answers = broker.put(puts)
    assert [(a.status, a.queue_offset) for a in answers] == [("PUT_OK", before.queues[key].max_offset) for key in queues]
    broker.catch_up()
    end = time.monotonic() + 20  # entries of queues in RocksDB are put by a thread of its own
    while any(broker.queues()[key][1] <= before.queues[key].max_offset for key in queues) and time.monotonic() < end:
        time.sleep(0.01)
    found = broker.serve()
    got = served(found)
    keys = [(put.topic, put.queue_id, a.queue_offset, a.phy_offset) for put, a in zip(puts, answers, strict=True)]
    assert all(b"new" in got[key] for key in keys)
    assert found.key_misses == ()
    return More({key: got[key] for key in keys}, found, broker.state()["maxPhyOffset"])


def test_witness_of_valid_records_agrees_with_the_broker(written: Callable[[str], Written]) -> None:
    """Of an undamaged store it finds what was served, and the prepared and rolled back messages, which are in no queue."""
    for release in RELEASES:
        valid = valid_records(written(release).stopped)
        assert expected(valid) == written(release).original["stopped"]
        others = [record.transaction for record, _ in valid.values() if not in_a_queue(record)]
        assert sorted(set(others)) == [PREPARED, ROLLBACK]


# ---- the corpus ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", corpus_tools.plain_cases(), ids=lambda case: case.name)
def test_repaired_case_serves_what_it_should(case: Case, policy: str, jvm_of: JvmOf, tmp_path: Path) -> None:
    """By `broker` at least what the broker's own recovery serves, by `salvage` all that is valid in the copy; a copy without a
    segment is refused."""
    measured = measure(case, jvm_of, tmp_path, [policy])
    result = measured.results[policy]
    if not measured.segments:
        assert (result.repaired.exit_code, result.repaired.root) == (3, None)
        return
    assert result.repaired.exit_code == 0, result.repaired.report.get("problems")
    assert policy == "salvage" or result.shown >= (measured.own or 0)
    assert (result.lost, result.invalid, result.truncated) == (frozenset(), frozenset(), False)
    if policy == "salvage":
        assert result.missing == frozenset()
    if "messageIndexEnable=false" not in case.broker_conf:
        assert result.key_misses == 0
