"""Queues in files, and a second kind of queue store, made up: queues that are held in memory. A scan asks both alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from schemas.entries import STORED_ENTRY_DTYPE
from schemas.rows import MATCH_DIFFERS, MATCH_EQUAL, MATCH_MISSING, MappedFile, QueueKey, SegmentSummary
from store_io.broker.releases import BrokerRules, Setting, broker_rules
from store_io.log.entries import queue_store
from store_io.log.entries.queue_store import ExtUnits, FileQueueStore, Place, QueuePaths, open_queue_store
from store_io.log.entries.stored_entries import KeyedQueueStore
from store_io.log.scan.segment_scan import SegmentTask, scan_segment
from store_io.rocksdb.database import StoredDatabase
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from tests.support.stores.builders import Message, Sizes, StoreBuilder

KEY = ("TopicA", 0)
KIND = "defaultRocksDB"


class Held:
    """One queue in memory: bytes of entries that follow one another from number 0 on."""

    def __init__(self, data: bytes):
        self.rows = np.frombuffer(data, STORED_ENTRY_DTYPE)

    def read(self, first: int, count: int) -> np.ndarray:
        found = np.zeros(count, STORED_ENTRY_DTYPE)
        part = self.rows[first : first + count]
        found[: len(part)] = part
        return found

    def read_into(self, first: int, data: np.ndarray) -> None:
        data[:] = self.read(first, len(data) // STORED_ENTRY_DTYPE.itemsize).view(np.uint8)

    def entries_within(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        phy = self.rows["phy_offset"]
        numbers = np.flatnonzero((phy >= low) & (phy < high) & (self.rows["size"] != 0))
        return numbers, self.rows[numbers]

    def place(self, number: int) -> Place:
        return Place("rocksdb", 20 * number)


class MemoryQueueStore:
    """All queues of a store. Its content is set on the class, as a real one would find it below the store root."""

    content: ClassVar[dict[QueueKey, bytes]] = {}

    def __init__(self, source: ByteSource, database: StoredDatabase, stored: frozenset[QueueKey]):
        self.queue_count, self.entries_at_once = len(self.content), 100

    def has(self, key: QueueKey, batch: bool = False) -> bool:
        return not batch and key in self.content

    def entries(self, key: QueueKey, batch: bool = False) -> Held:
        return Held(self.content[key])

    def ext_units(self, key: QueueKey) -> ExtUnits | None:
        return None

    def close(self) -> None: ...


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


def matches(summary: SegmentSummary) -> list[tuple[int, int]]:
    return [(int(run["match"]), int(run["records"])) for run in summary.runs]


def test_a_scan_asks_queues_in_memory_as_those_in_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, entries = stored(tmp_path)
    assert matches(scan_segment(task)) == [(MATCH_MISSING, 9)]  # no file and no database was named
    monkeypatch.setattr(queue_store, "KeyedQueueStore", MemoryQueueStore)
    monkeypatch.setattr(MemoryQueueStore, "content", {KEY: entries})
    assert matches(scan_segment(task)) == [(MATCH_EQUAL, 9)]
    damaged = bytearray(entries)
    damaged[3 * 20 + 11] ^= 1
    monkeypatch.setattr(MemoryQueueStore, "content", {KEY: bytes(damaged[: 8 * 20])})
    summary = scan_segment(task)
    assert matches(summary) == [(MATCH_EQUAL, 3), (MATCH_DIFFERS, 1), (MATCH_EQUAL, 4), (MATCH_MISSING, 1)]
    assert [(f.code, f.file, f.start, f.end) for f in summary.findings] == [("queue_entry_wrong", "rocksdb", 68, 72)]


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
