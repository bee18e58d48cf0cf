"""The builder writes what real brokers write: held against the corpus's undamaged stores, byte for byte."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from tests.support.stores import builders, corpus_tools
from tests.support.stores.builders import Dispatcher, Message, Sizes, StoreBuilder

UNDAMAGED_CLEAN = [
    c
    for c in corpus_tools.cases()
    if not c.case["mutations"] and not c.case["abortPresent"] and "enableControllerMode" not in c.broker_conf
]


def sizes_of(case: corpus_tools.Case) -> Sizes:
    given = dict(line.split("=", 1) for line in case.broker_conf.splitlines() if "=" in line)
    names = ("mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue", "mappedFileSizeConsumeQueueExt")
    names += ("mapperFileSizeBatchConsumeQueue", "maxHashSlotNum", "maxIndexNum")
    defaults = (1 << 30, 6_000_000, 48 << 20, 13_800_000, 5_000_000, 20_000_000)
    return Sizes(*(int(given.get(name, default)) for name, default in zip(names, defaults, strict=True)))


def test_corpus_is_what_the_manifest_says() -> None:
    ours = [c for c in corpus_tools.cases() if c.folder.parent == corpus_tools.CORPUS]
    assert {c.name for c in ours} == set(corpus_tools.manifest())
    for case in ours:
        release, written_by, digest, _ = corpus_tools.manifest()[case.name]
        assert (case.release, case.case["writeVersion"], case.tar_digest()) == (release, written_by, digest)
    assert {c.release for c in ours} == {"4.8.0", "4.9.8", "5.1.4", "5.3.3", "5.4.0", "5.5.0"}


@pytest.mark.parametrize("case", [c for c in corpus_tools.plain_cases() if c.case["writes"]], ids=lambda c: c.name)
def test_real_records_encode_to_their_own_bytes(case: corpus_tools.Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    size = sizes_of(case).segment
    for segment in sorted((root / "commitlog").iterdir()):
        if not segment.name.isdigit() or segment.stat().st_size != size:
            continue
        data = segment.read_bytes()
        try:
            for record in builders.walk(data, int(segment.name)):
                position = record.at - int(segment.name)
                assert builders.encode(record) == data[position : position + record.size]
        except ValueError:
            assert case.case["mutations"], "an undamaged store must read to its end"


@pytest.mark.parametrize("case", UNDAMAGED_CLEAN, ids=lambda c: c.name)
def test_reference_dispatch_gives_the_brokers_own_files(case: corpus_tools.Case, tmp_path: Path) -> None:
    root = case.unpack(tmp_path)
    sizes = sizes_of(case)
    batch_topics = frozenset(case.case["config"].get("batchCqTopics", "").split(",")) - {""}
    dispatcher = Dispatcher(case.case["writeVersion"], sizes, batch_topics, "enableLmq=true" in case.broker_conf)
    for segment in sorted((root / "commitlog").iterdir()):
        for record in builders.walk(segment.read_bytes(), int(segment.name)):
            dispatcher.put(record)
    for (topic, queue_id), queue in dispatcher.queues.items():
        folder = root / ("batchconsumequeue" if queue.unit == 46 else "consumequeue") / topic / str(queue_id)
        on_disk = {int(path.name): path.read_bytes() for path in folder.iterdir()}
        assert on_disk == {start: bytes(data) for start, data in queue.files.items()}
    on_disk_index = [path.read_bytes() for path in sorted((root / "index").iterdir())]
    assert on_disk_index == [page.to_bytes() for page in dispatcher.pages]


def test_built_store_reads_back(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", Sizes(segment=1024), batch_topics={"Batch"}, lmq=True)
    v6 = bytes(range(16)) + b"\0\0\x2a\x9f"
    messages = [
        Message(body=b"x" * 300, tags="a", keys="k1 k2", uniq="u1"),
        Message("T" * 200, 1, b"", tags="标签🐇", born_host=v6, store_host=v6),
        Message("Batch", 0, builders.inner_body([b"1", b"22", b"333"]), inner_count=3),
        Message("TopicB", 3, b"lmq", lmq=("%LMQ%a", "%LMQ%b")),
        Message(builders.SCHEDULE_TOPIC, 2, b"later", tags="t", properties=(("DELAY", "3"), ("REAL_TOPIC", "TopicA"))),
        Message(body=builders.compress(b"zz" * 50, "zstd"), sys_flag=builders.COMPRESSED["zstd"], property_crc=True),
        Message(body=b"undecided", sys_flag=builders.PREPARED, uniq="u2"),
        Message(body=b"withdrawn", sys_flag=builders.ROLLBACK, uniq="u3"),
    ]
    records = [builder.put(m) for m in messages]
    store = builder.write(tmp_path / "store", clean=False, undispatched=1)
    found = []
    for segment in sorted((store.root / "commitlog").iterdir()):
        assert segment.stat().st_size == 1024
        found += list(builders.walk(segment.read_bytes(), int(segment.name)))
    assert found == records
    assert [r.at for r in found] == [r.phy_offset for r in found]
    assert records[1].magic == builders.V2 and records[0].magic == builders.V1
    crc = records[5]
    assert crc.properties["__CRC32#"] == f"{zlib.crc32(builders.encode(crc)[:-20]) & 0x7FFFFFFF:010d}"[::-1]
    assert set(store.expected.queues) == {
        ("TopicA", 0), ("T" * 200, 1), ("Batch", 0), ("TopicB", 3), ("%LMQ%a", 0), ("%LMQ%b", 0), (builders.SCHEDULE_TOPIC, 2)
    }  # fmt: skip
    body_at, body_size = builders.field_position(records[1], "topic")
    assert builders.encode(records[1])[body_at : body_at + body_size] == b"T" * 200
    assert (store.root / "abort").exists() and (store.root / "checkpoint").stat().st_size == 4096
