"""Segments of two brokers in one folder, and fillers of a smaller size of segments: each beside what only looks alike."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from store_io.answer.headline import verdict_text
from store_io.wording.steps import next_text
from tests.support.answers import product
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

SIZES = Sizes(segment=4096, queue_file=400, slots=20, index_max=200)


def built(root: Path, count: int, clock: int, size: int = 50, queues: int = 4, sizes: Sizes = SIZES) -> Store:
    builder = StoreBuilder("5.3.3", sizes)
    builder.clock += clock
    for number in range(count):
        builder.put(Message("T", number % queues, body=b"x" * size, uniq=f"{clock}-{number}"))
    return builder.write(root, spare=False)


def codes(root: Path, conf: str | None, code: str) -> list[str]:
    return [f"{f.file}: {f.message}" for f in product.audit(root, "5.3.3", conf).findings if f.code == code]


@pytest.mark.parametrize(("clock", "size"), [(-3_600_000, 20), (3_600_000, 50), (3_600_000, 90)], ids=["older", "same", "fewer"])
def test_segments_of_two_brokers_are_told(clock: int, size: int, tmp_path: Path) -> None:
    """The last segments are of a broker whose messages are smaller or larger: its offsets are further, equal or less far."""
    one, other = built(tmp_path / "one", 60, 0), built(tmp_path / "other", 100, clock, size)
    last = f"{4096:020d}"
    shutil.copy(other.root / "commitlog" / last, one.root / "commitlog" / last)
    for path in sorted((one.root / "commitlog").iterdir())[2:]:
        path.unlink()
    found = codes(one.root, one.broker_conf, "stores_merged")
    if size == 50:  # its queues continue: nothing shows it
        assert found == []
    else:
        assert len(found) == 1 and found[0].startswith(f"commitlog/{last}: ") and "files of two brokers" in found[0]
        assert ("segment 4096 is older than the ones before it" in found[0]) == (clock < 0)
        assert codes(one.root, None, "stores_merged") == found


def test_a_clock_that_was_set_back_a_hole_and_a_topic_made_again_are_no_second_broker(tmp_path: Path) -> None:
    builder = StoreBuilder("5.3.3", SIZES)
    for number in range(90):
        if number == 28:
            builder.clock -= 3_600_000
        builder.put(Message("T", number % 4, body=b"x" * 50, uniq=f"U{number}"))
    store = builder.write(tmp_path / "store")
    assert codes(store.root, store.broker_conf, "stores_merged") == []
    store = built(tmp_path / "hole", 90, 0)
    path = store.root / "commitlog" / f"{4096:020d}"
    path.write_bytes(path.read_bytes()[:1000].ljust(4096, b"\0"))
    assert codes(store.root, store.broker_conf, "stores_merged") == []
    (store.root / "commitlog" / f"{4096:020d}").unlink()
    assert codes(store.root, store.broker_conf, "stores_merged") == []


def test_one_queue_alone_shows_no_second_broker(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", 60, 0, queues=1), built(tmp_path / "other", 100, -3_600_000, 40, queues=1)
    last = f"{4096:020d}"
    shutil.copy(other.root / "commitlog" / last, one.root / "commitlog" / last)
    assert codes(one.root, one.broker_conf, "stores_merged") == []


@pytest.mark.parametrize("named", [True, False])
def test_fillers_of_a_smaller_size_name_that_size(named: bool, tmp_path: Path) -> None:
    store = built(tmp_path / "store", 150, 0)
    log = store.root / "commitlog"
    whole = b"".join(path.read_bytes() for path in sorted(log.iterdir()))
    shutil.rmtree(log)
    log.mkdir()
    for start in range(0, len(whole), 16384):
        (log / f"{start:020d}").write_bytes(whole[start : start + 16384].ljust(16384, b"\0"))
    conf = store.broker_conf.replace("mappedFileSizeCommitLog=4096", "mappedFileSizeCommitLog=16384")
    audited = product.audit(store.root, "5.3.3", conf if named else None)
    (note,) = [f for f in audited.findings if f.code == "filler_other_size"]
    assert (note.expected, note.actual, note.severity) == ("16384", "4096", "note")
    assert "this log was written with mappedFileSizeCommitLog=4096" in verdict_text(audited.outcome)
    assert "set mappedFileSizeCommitLog=4096 in place of 16384 in broker.conf" in next_text(note.next)


def test_a_single_damaged_filler_names_no_size(tmp_path: Path) -> None:
    store = built(tmp_path / "store", 60, 0)
    path = store.root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    at = data.rindex(b"\xcb\xd4\x31\x94") - 4
    data[at : at + 4] = (9).to_bytes(4, "big")
    path.write_bytes(data)
    assert codes(store.root, store.broker_conf, "filler_other_size") == []
