"""Queues in files, and a second kind of queue store, made up: queues that are held in memory. A scan asks both alike."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

from schemas.rows import MappedFile
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.log.entries.queue_store import FileQueueStore, QueuePaths, open_queue_store
from store_io.log.entries.stored_entries import KeyedQueueStore
from store_io.log.scan.segment_scan import SegmentTask
from store_io.source.byte_source import StoreLocation, open_source
from tests.support.stores.builders import Message, Sizes, StoreBuilder

KEY = ("TopicA", 0)
KIND = "defaultRocksDB"


def stored(root: Path) -> tuple[SegmentTask, bytes]:
    """A task of a segment with nine messages, and the bytes of their queue's entries."""
    builder = StoreBuilder("5.3.3", Sizes(segment=8192, queue_file=400))
    for number in range(9):
        builder.put(Message(KEY[0], KEY[1], body=b"x" * number, tags="t"))
    builder.write(root)
    path = root / "consumequeue" / KEY[0] / "0" / f"{0:020d}"
    rules = broker_rules("5.3.3", {"storeType": Setting(KIND, "broker.conf")})
    task = SegmentTask(0, f"commitlog/{0:020d}", 0, 8192, StoreLocation(str(root)), rules, expect_queues=True, log_end=8192)
    return task, path.read_bytes()


def test_the_kind_of_store_follows_from_the_settings(tmp_path: Path) -> None:
    task, _ = stored(tmp_path)
    source, paths = open_source(task.location), QueuePaths({}, {}, {})

    def opened(rules: BrokerRules) -> object:
        return open_queue_store(rules, source, paths)

    settings = {"storeType": Setting(KIND, "broker.conf")}
    assert isinstance(opened(task.rules), KeyedQueueStore)
    assert isinstance(opened(broker_rules("5.3.3")), FileQueueStore)
    assert isinstance(opened(broker_rules("5.1.4", settings)), FileQueueStore)  # it does not know the setting


def test_entries_in_files_are_one_array_with_zeros_where_no_file_is(tmp_path: Path) -> None:
    task, entries = stored(tmp_path)
    file = MappedFile(f"consumequeue/TopicA/0/{0:020d}", 0, 400)
    store = FileQueueStore(open_source(task.location), QueuePaths({KEY: (file,)}, {}, {}))
    assert store.has(KEY) and not store.has(KEY, batch=True) and store.ext_units(KEY) is None and store.queue_count == 1
    queue = store.entries(KEY)
    assert queue.read(0, 9).tobytes() == entries[:180] and not queue.read(20, 3)["size"].any()
    assert queue.place(4) == (file.path, 80)
    numbers, rows = queue.entries_within(int(queue.read(2, 1)["phy_offset"][0]), int(queue.read(5, 1)["phy_offset"][0]))
    assert numbers.tolist() == [2, 3, 4] and rows["phy_offset"].tolist() == queue.read(2, 3)["phy_offset"].tolist()
    moved = replace(file, start=7)  # no entry begins there
    assert not FileQueueStore(open_source(task.location), QueuePaths({KEY: (moved,)}, {}, {})).entries(KEY).read(0, 1)["size"]
    store.close()


def test_ext_units_are_found_wherever_they_lie(tmp_path: Path) -> None:
    """Some from what is read ahead, others behind it, and none that a file does not hold whole."""
    (tmp_path / "ext").mkdir()
    files = tuple(MappedFile(f"ext/{start}", start, 100) for start in (1000, 1100))
    for file in files:
        units = [struct.pack(">hqqh", 32, file.start + at, at, 0) + bytes(12) for at in (0, 32, 64)]
        (tmp_path / file.path).write_bytes(b"".join(units) + bytes(4))
    source = open_source(StoreLocation(str(tmp_path)))
    units = FileQueueStore(source, QueuePaths({}, {}, {KEY: files})).ext_units(KEY)
    assert units is not None
    for offset in (1032, 1064, 1000, 1164, 1132):
        assert units.at(offset) == (offset, offset % 100) and units.place(offset) == (f"ext/{offset // 100}00", offset % 100)
    assert [units.at(offset) for offset in (999, 1096, 1081, 1200)] == [None] * 4
    assert units.at(1012) is None  # its size is none of a unit


def test_holes_of_a_queue_file_are_not_read_for_entries(tmp_path: Path) -> None:
    task, entries = stored(tmp_path)
    path, size = tmp_path / f"consumequeue/TopicA/0/{0:020d}", 1 << 40
    with open(path, "r+b") as file:
        file.truncate(size)  # more than could be read
        file.seek((size // 20 - 20) * 20)
        file.write(entries[40:60])
    whole = MappedFile(str(path.relative_to(tmp_path)), 0, size)
    store = FileQueueStore(open_source(task.location), QueuePaths({KEY: (whole,)}, {}, {}))
    numbers, rows = store.entries(KEY).entries_within(0, 1 << 40)
    store.close()
    assert numbers.tolist() == [0, 1, 2, size // 20 - 20, *range(3, 9)] and len(rows) == 10
