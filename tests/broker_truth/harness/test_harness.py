"""The harness is right: it sees what was recorded of the corpus's stores, and what it puts comes back."""

from __future__ import annotations

import hashlib
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker_truth.harness.real_broker import BATCH, COMMIT, INNER_BATCH, PREPARED, RELEASES, Jvm, Message, Put, batch_topics
from tests.support.stores import corpus_tools
from tests.support.stores.corpus_tools import Case

pytestmark = pytest.mark.broker

JvmOf = Callable[[str], Jvm]
# The recorder counted as served, and digested, what its decoder made of an entry of a wrong size.
NOT_THE_SAME_DECODER = "g29-498-cq-wrong"
CASES = [case for case in corpus_tools.plain_cases() if case.name != NOT_THE_SAME_DECODER]


def digest(messages: list[Message]) -> str:
    """As the corpus's README tells."""
    rows = [(m.topic, m.queue_id, m.record) for m in messages]
    lines = [
        f"{topic}|{queue_id}|{r.queue_offset}|{r.phy_offset}|{r.body_crc}|{zlib.crc32(r.body) & 0x7FFFFFFF}|{r.size}\n"
        for topic, queue_id, r in rows
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_harness_sees_what_was_recorded(case: Case, tmp_path: Path) -> None:
    # A JVM of its own, as when it was recorded: brokers name an index file by the millisecond, and a warm one fills these
    # small files so quickly that two get the same name, and one is lost.
    root, expected = case.unpack(tmp_path), case.expected
    named = str(case.case["config"].get("batchCqTopics", ""))
    topics = named.split(",") if named else batch_topics(root)
    with Jvm(case.release) as jvm, jvm.broker(root, case.broker_conf, topics) as broker:
        loaded = broker.load()
        assert loaded == expected["load"]["result"]
        if not loaded:
            return
        recorded, state = expected["afterLoad"], broker.state()
        for number in ("minPhyOffset", "maxPhyOffset"):
            assert state[number] == recorded[number]
        for listed in ("commitLogFiles", "indexFiles"):
            names = list(state[listed][0]) if state[listed] else []
            assert state[listed] == [{name: file[name] for name in names} for file in recorded[listed]]
        assert state["queues"] == {
            (topic, int(queue_id)): (q["minOffsetInQueue"], q["maxOffsetInQueue"], q["maxPhysicOffset"])
            for topic, by_id in recorded["queues"].items()
            for queue_id, q in by_id.items()
        }
        broker.start()
        served, recorded = broker.serve(), expected["served"]
        assert len(served.messages) == recorded["served"]
        assert sum(len(queue.skipped) for queue in served.queues.values()) == recorded["missingBetweenMinAndMax"]
        # It asked for so many answers at most that messages with a common key were not all among them: `keyAnswersFull`.
        assert served.key_hits == recorded["keyHits"] + recorded["keyAnswersFull"]
        assert len(served.key_misses) == recorded["keyMisses"]
        assert digest(served.messages) == recorded["servedSha256"]


def sample(release: str) -> list[Put]:
    """A message of each kind that the release knows."""
    puts = [
        Put("Topic", b"plain", tags="a", keys="one two", uniq="U0"),
        Put("Topic", "Körper 正文 😀".encode(), queue_id=1, tags="Etikett 标签", keys="😀", uniq="U1"),
        Put("Topic", b"", uniq="U2", properties={"own": "value"}),
        Put("Topic", zlib.compress(b"compressed" * 50), sys_flag=0x1, uniq="U3"),
        Put("Topic", b"six", host="::1", uniq="U4"),
        Put("Topic", b"later", delay=3, uniq="U5"),
        Put("RMQ_SYS_TRANS_HALF_TOPIC", b"half", transaction=PREPARED, uniq="U6"),
        Put("Topic", b"half", transaction=COMMIT, uniq="U6"),
        Put("Topic", kind=BATCH, parts=[({"TAGS": "a", "UNIQ_KEY": f"B{n}"}, b"part %d" % n) for n in range(3)]),
    ]
    if release >= "4.9":
        puts.append(Put("Topic", b"light", lmq=("%LMQ%one", "%LMQ%two"), uniq="U7"))
    if release >= "5":
        puts.append(Put("BatchTopic", kind=INNER_BATCH, uniq="I", parts=[({}, b"in %d" % n) for n in range(4)]))
        puts.append(Put("L" * 200, b"long name", uniq="U8"))
    return puts


def settings(release: str) -> dict[str, object]:
    sizes: dict[str, object] = {"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 1200, "maxHashSlotNum": 100}
    sizes |= {"maxIndexNum": 600, "maxMessageSize": 32768}
    return sizes | ({"enableLmq": "true", "enableMultiDispatch": "true"} if release >= "4.9" else {})


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_put_comes_back(release: str, jvm_of: JvmOf, tmp_path: Path) -> None:
    puts, topics = sample(release), ["BatchTopic"] if release >= "5" else []
    with jvm_of(release).broker(tmp_path / "store", settings(release), topics) as broker:
        broker.begin()
        answers = broker.put(puts)
        assert {answer.status for answer in answers} == {"PUT_OK"}
        broker.catch_up()
        served = broker.serve()
    assert served.key_misses == ()
    assert not any(queue.skipped for queue in served.queues.values())
    at = {m.phy_offset: m for m in served.messages if not m.topic.startswith("%LMQ%")}
    for put, answer in zip(puts, answers, strict=True):
        if put.transaction == PREPARED:
            assert answer.phy_offset not in at  # prepared messages are in no queue
            continue
        message = at[answer.phy_offset]
        assert message.queue_offset == answer.queue_offset
        if put.kind == BATCH:
            bodies = [m.record.body for _, m in sorted(at.items()) if m.record.properties["UNIQ_KEY"].startswith("B")]
            assert bodies == [body for _, body in put.parts]
        elif put.kind == INNER_BATCH:
            assert answer.messages == len(put.parts)
            assert all(struct.pack(">i", len(body)) + body in message.record.body for _, body in put.parts)
        else:
            assert message.record.body == put.body
            assert message.record.topic == ("SCHEDULE_TOPIC_XXXX" if put.delay else put.topic)
            assert message.keys == [put.uniq, *(put.keys or "").split()]
            assert message.record.properties.get("TAGS") == put.tags
    light = [q for (topic, _), q in served.queues.items() if topic.startswith("%LMQ%")]
    assert [len(q.messages) for q in light] == ([1, 1] if release >= "4.9" else [])


@pytest.mark.parametrize("release", RELEASES)
def test_a_killed_store_is_an_unclean_one_and_a_stopped_one_is_not(release: str, tmp_path: Path) -> None:
    with Jvm(release) as jvm:
        stopped = jvm.broker(tmp_path / "stopped", settings(release))
        killed = jvm.broker(tmp_path / "killed", settings(release))
        for broker in (stopped, killed):
            broker.begin()
            assert broker.put([Put("Topic", b"body", uniq="U")])[0].status == "PUT_OK"
            broker.catch_up()
        stopped.shutdown()
        jvm.kill()
    assert not (tmp_path / "stopped" / "abort").exists()
    assert (tmp_path / "killed" / "abort").exists()
    shutil.rmtree(tmp_path / "killed" / "consumequeue")
    with Jvm(release) as jvm:
        for name in ("stopped", "killed"):
            with jvm.broker(tmp_path / name, settings(release)) as broker:
                broker.begin()
                assert [m.record.body for m in broker.serve().messages] == [b"body"]
