"""What shows that a copy is not whole: both sides of each proof, on small stores."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from schemas.advice import Lack, NotWhole
from store_io.wording.not_whole import headline
from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=4096, queue_file=400, slots=20, index_max=200)
ROOT = "storePathRootDir=/data/store\n"


def built(root: Path, *, clean: bool = True, count: int = 90, flushed: int | None = None, topic: str = "T") -> Store:
    """Three full segments and a bit; the checkpoint knows the first `flushed` messages, else all."""
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(count):
        builder.put(Message(topic, number % 3, body=b"x" * 50, tags="a", keys=f"k{number}"))
    time = builder.records[(flushed or count) - 1].store_time
    return builder.write(root, clean=clean, spare=False, checkpoint={"physic": time, "logics": time})


def segments(store: Store) -> list[Path]:
    return sorted((store.root / "commitlog").iterdir())


def cut_at(store: Store, kept: int) -> None:
    """The log as it was when it held `kept` messages: zeros after them, no later segment."""
    end = store.records[kept].at
    for path in segments(store):
        base = int(path.name)
        if base >= end:
            path.unlink()
        elif base + SIZES.segment > end:
            path.write_bytes(path.read_bytes()[: end - base].ljust(SIZES.segment, b"\0"))


def lacks(store: Store, conf: str = "") -> list[NotWhole]:
    return product.audit(store.root, store.release, store.broker_conf + conf).outcome.whole.signs


@pytest.mark.parametrize("clean", [True, False])
def test_a_whole_copy_lacks_nothing(clean: bool, tmp_path: Path) -> None:
    assert lacks(built(tmp_path / "store", clean=clean), "storePathCommitLog=/other/commitlog\n") == []


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_between_two_others_is_named_with_its_messages(clean: bool, tmp_path: Path) -> None:
    store = built(tmp_path / "store", clean=clean)
    gone = segments(store)[1]
    messages = sum(SIZES.segment <= record.at < 2 * SIZES.segment for record in store.records)
    gone.unlink()
    (lack,) = lacks(store, ROOT)
    assert lack == NotWhole(Lack.SEGMENTS_BETWEEN, f"commitlog/{gone.name}", messages=messages, place="/data/store/commitlog")
    assert headline(lack) == f"Copy again: commitlog/{gone.name} is missing between two others: {messages} messages"


@pytest.mark.parametrize("clean", [True, False])
def test_segments_missing_from_the_end_are_named(clean: bool, tmp_path: Path) -> None:
    store = built(tmp_path / "store", clean=clean)
    gone = segments(store)[2:]
    for path in gone:
        path.unlink()
    (lack,) = lacks(store)
    assert (lack.kind, lack.file, lack.files) == (Lack.SEGMENTS_AT_END, f"commitlog/{gone[0].name}", len(gone))
    assert lack.messages == sum(record.at >= 2 * SIZES.segment for record in store.records)
    assert headline(lack).endswith(f"missing from the end of the log: {lack.messages} messages")


def test_a_few_entries_that_lead_far_beyond_the_end_prove_nothing(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    queue = sorted((store.root / "consumequeue" / "T" / "0").iterdir())[-1]
    data = bytearray(queue.read_bytes())
    end = next(at for at in range(0, len(data), 20) if not any(data[at : at + 20]))
    for entry in range(3):
        data[end + entry * 20 : end + entry * 20 + 12] = struct.pack(">qi", 1_000_000 + 7777 * entry, 100)
    queue.write_bytes(data)
    audited = product.audit(store.root, store.release, store.broker_conf)
    assert "segment_missing" in {f.code for f in audited.findings} and audited.outcome.whole.signs == []


@pytest.mark.parametrize(
    ("clean", "flushed", "shown"),
    [(True, 15, True), (True, 90, True), (False, 90, True), (False, 15, False), (False, 14, False), (False, 16, True)],
)
def test_queues_beyond_the_log_prove_a_later_copy_unless_the_power_may_be_lost(
    clean: bool, flushed: int, shown: bool, tmp_path: Path
) -> None:
    store = built(tmp_path / "store", clean=clean, count=22, flushed=min(flushed, 22))
    cut_at(store, 15)
    assert [(lack.kind, lack.messages) for lack in lacks(store)] == ([(Lack.QUEUES_LATER, 7)] if shown else [])


def test_index_and_checkpoint_together_show_a_longer_log_without_queues(tmp_path: Path) -> None:
    store = built(tmp_path / "store", count=22)
    cut_at(store, 15)
    for path in sorted((store.root / "consumequeue").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (lack,) = lacks(store)
    assert lack.kind == Lack.QUEUES_LATER and "index and checkpoint know later messages" in headline(lack)
    (store.root / "checkpoint").unlink()
    assert lacks(store) == []


@pytest.mark.parametrize("clean", [True, False])
def test_zeros_before_later_messages_are_shown(clean: bool, tmp_path: Path) -> None:
    store = built(tmp_path / "store", clean=clean)
    path = segments(store)[1]
    at = next(record.at for record in store.records if record.at > SIZES.segment + 1000) - SIZES.segment
    path.write_bytes(path.read_bytes()[:at].ljust(SIZES.segment, b"\0"))
    (lack,) = lacks(store)
    assert (lack.kind, lack.file, lack.at_least) == (Lack.ZEROS, f"commitlog/{path.name}", True) and lack.messages > 10
    assert "holds zeros before later messages; at least" in headline(lack)


def test_a_log_that_is_kept_elsewhere_is_the_cause_of_what_is_missing(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    for path in segments(store)[1:]:
        path.unlink()
    (lack,) = lacks(store, f"{ROOT}storePathCommitLog=/data2/commitlog\n")
    assert (lack.kind, lack.file, lack.place) == (Lack.LOG_ELSEWHERE, "commitlog", "/data2/commitlog") and lack.messages > 30
    assert [other.kind for other in lacks(store, f"{ROOT}storePathCommitLog=/data/store/commitlog\n")] == [Lack.SEGMENTS_AT_END]


def test_a_wrong_size_in_broker_conf_lets_no_segment_seem_to_be_missing(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    audited = product.audit(store.root, store.release, "mappedFileSizeCommitLog=2048\n")
    assert "segment_missing" in {f.code for f in audited.findings} and audited.outcome.whole.signs == []


@pytest.mark.parametrize(
    ("topic", "conf", "config", "shown"),
    [
        ("%RETRY%G", "", {}, True),
        ("%DLQ%G", "", {}, True),
        ("T", "", {}, False),
        ("%RETRY%G", "brokerRole=SLAVE\nbrokerId=1\n", {}, False),
        ("%RETRY%G", "", {"topics.json": json.dumps({"topicConfigTable": {}})}, False),
    ],
)
def test_config_that_was_not_copied_is_shown_by_topics_of_consumers(
    topic: str, conf: str, config: dict[str, str], shown: bool, tmp_path: Path
) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(5):
        builder.put(Message(topic, 0, body=b"x" * 50, uniq=f"U{number}"))
    store = builder.write(tmp_path / "store", topics_json=bool(config), config=config)
    audited = product.audit(store.root, store.release, store.broker_conf + conf)
    assert ("config_not_copied" in {f.code for f in audited.above_note}) == shown
    assert [lack.kind for lack in audited.outcome.whole.signs] == ([Lack.NO_CONFIG] if shown else [])
    assert not shown or audited.outcome.exit_code == 10
