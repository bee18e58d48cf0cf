"""Entries of queues in RocksDB as rows: as the audit reads them, from where the release reads, beside bad bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from schemas.rows import QueueKey
from store_io.base.errors import StoreError
from store_io.base.java.java_compat import MAX_LONG
from store_io.log.entries import queue_table
from store_io.log.entries.stored_entries import EntryReader
from store_io.messages.message_filter import EVERY_MESSAGE, MessageFilter
from store_io.messages.open_store import OpenStore, open_store
from store_io.messages.scans import EntryScan
from store_io.messages.served_queues import ServedQueues, served_queues
from store_io.messages.stored_entry_rows import SCHEMAS, scan_keyed_entries, scan_queue_entries
from store_io.rocksdb import database
from store_io.source.byte_source import StoreLocation
from tests.support.stores.corpus_tools import of_kind
from tests.support.stores.rocksdb_stores import (
    TWICE,
    KeyedStore,
    combined_store,
    entry_key,
    entry_value,
    keyed_store,
    light_store,
    offset_key,
    offset_value,
    write_database,
)

pytest.importorskip("rocksdict")

Row = dict[str, Any]
READS = "combineCQPreferCQType=defaultRocksDB\n"
NAMES = ("topic", "queue_id", "queue_offset", "phy_offset", "size", "tags_code", "store_time_ms")


def opened(root: Path, release: str = "5.3.3", conf: str | None = "storeType=defaultRocksDB\n") -> OpenStore:
    return open_store(StoreLocation(str(root)), release, conf)


def keyed_rows(store: OpenStore, wanted: MessageFilter = EVERY_MESSAGE, queues: ServedQueues | None = None) -> list[Row]:
    queues = queues or served_queues(store)
    if queues.keyed is None:
        return []
    found: list[Row] = []
    scan = EntryScan(store.location, store.rules, wanted.phy_offsets)
    for ranges in queues.asked(wanted):
        for batch in scan_keyed_entries(scan, queues.keyed, ranges, wanted):
            batch.validate(full=True)
            assert batch.schema == SCHEMAS["consumequeue"] and batch.num_rows
            found += batch.to_pylist()
    return found


def values(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in NAMES) for row in rows)


def as_the_audit_reads(store: OpenStore, keys: set[QueueKey]) -> list[tuple[Any, ...]]:
    keyed = served_queues(store).keyed
    assert keyed is not None
    reader, found = EntryReader(store.source(), keyed.database), []
    for key in sorted(keys):
        for numbers, rows in reader.windows(key, 0, MAX_LONG + 1):
            found += [(*key, number, *row) for number, row in zip(numbers.tolist(), rows.tolist(), strict=True)]
    reader.close()
    return sorted(found)


@pytest.mark.parametrize("case", of_kind("rocksdb"), ids=lambda case: case.name)
def test_rows_of_real_stores_are_what_the_audit_reads(tmp_path: Path, case: Any) -> None:
    root = case.unpack(tmp_path)
    names = sorted(path.name for path in (root / "consumequeue").glob("*"))
    store = opened(root, case.release, case.broker_conf)
    rows = keyed_rows(store)
    keys = {(row["topic"], row["queue_id"]) for row in rows}
    assert values(rows) == as_the_audit_reads(store, keys) and {row["status"] for row in rows} <= {"valid"}
    assert bool(rows) == ("gone" not in case.name) == (not served_queues(store).notes)
    if case.name == "g90-533-rdb-clean":
        wanted = [(e["t"], e["q"], e["i"], e["p"], e["s"], e["c"], e["st"]) for e in case.entries() if "rdb" in e]
        assert values(rows) == sorted(wanted) and len(rows) == 285
    for row in rows:
        nothing = ("ext_tags_code", "ext_store_time_ms", "message_count", "position")
        assert row["file"] == "consumequeue" and row["kind"] == "queue" and all(row[name] is None for name in nothing)
    assert sorted(path.name for path in (root / "consumequeue").glob("*")) == names


def test_conditions_and_ranges_leave_out_what_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_table, "RANGE_ENTRIES", 20)
    monkeypatch.setattr(database, "BATCH_ROWS", 7)
    root = keyed_store(tmp_path / "store").write().root
    store = opened(root)
    queues, every = served_queues(store), keyed_rows(store)
    assert len(queues.ranges) == 4 and len(every) == 60 == len(set(values(every)))
    topics, other = frozenset({"Topic1"}), frozenset({"Topic1", "Topic", "none"})
    for wanted, parts in (
        (MessageFilter(topics=topics), 3),  # before its first queue, too, there could be keys
        (MessageFilter(topics=other, queue_ids=frozenset({1, 1 + (1 << 32)})), 2),
        (MessageFilter(queue_ids=frozenset({0})), 4),
        (MessageFilter(topics=frozenset({"Topic1"}), phy_offsets=(2000, 6000)), 3),
    ):
        low, high = wanted.phy_offsets
        right = [
            r
            for r in every
            if wanted.holds_queue(r["topic"], r["queue_id"]) and (low or 0) <= r["phy_offset"] < (high or 1 << 60)
        ]
        assert len(queues.asked(wanted)) == parts
        assert values(keyed_rows(store, wanted)) == values(right) != []


@pytest.mark.parametrize(
    ("release", "more", "in_files", "in_rocksdb"),
    [
        ("5.4.0", "", 60, 0),
        ("5.4.0", READS, 0, 40),
        ("5.5.0", f"{READS}combineCQUseRocksdbForLmq=true\n", 0, 40),
        ("5.3.3", READS, 60, 0),  # no broker of this release reads the database
    ],
)
def test_a_double_write_is_read_where_the_release_reads_it(
    tmp_path: Path, release: str, more: str, in_files: int, in_rocksdb: int
) -> None:
    made = combined_store(tmp_path / "store", dispatched=40).write()
    conf = f"{made.plain.broker_conf}rocksdbCQDoubleWriteEnable=true\n{more}"
    store = opened(made.root, release, conf)
    queues = served_queues(store)
    scan = EntryScan(store.location, store.rules)
    rows = [row for queue in queues.files for batch in scan_queue_entries(scan, queue) for row in batch.to_pylist()]
    assert (len(rows), len(keyed_rows(store))) == (in_files, in_rocksdb)


def test_light_queues_in_rocksdb_and_all_others_in_files(tmp_path: Path) -> None:
    made = light_store(tmp_path / "store").write()
    store = opened(made.root, "5.5.0", f"{made.plain.broker_conf}{TWICE}enableLmq=true\n")
    queues, rows = served_queues(store), keyed_rows(store)
    assert {row["topic"] for row in rows} == {"%LMQ%a", "%LMQ%b"} and {row["kind"] for row in rows} == {"lmq"}
    assert len(rows) == 40 and {queue.key[0] for queue in queues.files} == {"Topic0", "Topic1"}
    assert keyed_rows(store, MessageFilter(topics=frozenset({"Topic0"}))) == []


# ---- what is not as a broker writes it -------------------------------------------------------------------------------


def damaged(root: Path, *places: float) -> tuple[set[tuple[Any, ...]], str]:
    """A database with bad bytes at these parts of its entries' table: all entries, and the table."""
    chance = random.Random(4)
    entries = {
        (topic, queue_id, number): (chance.randrange(1 << 40), 90, chance.randrange(1 << 60), 7)
        for topic in ("T", "Longer")
        for queue_id in (0, 1)
        for number in range(3000)
    }
    ends = [
        (offset_key(topic, queue_id, b"max"), offset_value(entries[topic, queue_id, 2999][0], 2999))
        for topic in ("T", "Longer")
        for queue_id in (0, 1)
    ]
    pairs = [(entry_key(*key), entry_value(*value)) for key, value in entries.items()]
    write_database(root / "consumequeue", {"default": pairs, "offset": ends})
    (root / "commitlog").mkdir(exist_ok=True)
    table = max((root / "consumequeue").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    for place in places:
        data[int(len(data) * place)] ^= 1
    table.write_bytes(data)
    return {(*key, *value) for key, value in entries.items()}, f"consumequeue/{table.name}"


def test_entries_beside_bad_bytes_are_given_and_a_row_tells_of_the_others(tmp_path: Path) -> None:
    """Each of the four queues takes about a quarter of the table: bad bytes in the first, the third and the last."""
    entries, table = damaged(tmp_path, 0.1, 0.6, 0.9)
    store = opened(tmp_path)
    rows = keyed_rows(store)
    good, bad = [row for row in rows if row["status"] == "valid"], [row for row in rows if row["status"] != "valid"]
    assert set(values(good)) < entries and 3 * 50 < len(entries) - len(good) < 3 * 400 and len(good) == len(set(values(good)))
    assert [(row["topic"], row["queue_id"]) for row in bad] == [("T", 0), ("Longer", 0), ("Longer", 1)]
    for row in bad:
        assert (row["status"], row["file"], row["phy_offset"], row["kind"]) == ("unreadable", table, None, "queue")
        numbers = [r["queue_offset"] for r in good if (r["topic"], r["queue_id"]) == (row["topic"], row["queue_id"])]
        missing = sorted(set(range(3000)) - set(numbers))
        assert missing[0] == row["queue_offset"] and missing == list(range(missing[0], missing[-1] + 1))
    keys = {(topic, queue_id) for topic in ("T", "Longer") for queue_id in (0, 1)}
    assert values(good) == as_the_audit_reads(store, keys)
    (one,) = [row for row in keyed_rows(store, MessageFilter(topics=frozenset({"T"}))) if row["status"] != "valid"]
    assert one == bad[0]
    sound = MessageFilter(topics=frozenset({"T"}), queue_ids=frozenset({1}))
    assert len(keyed_rows(store, sound)) == 3000 and {row["status"] for row in keyed_rows(store, sound)} == {"valid"}


def test_bad_bytes_where_queues_begin_and_end_are_told_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_many(tmp_path, queues=30, entries=40)
    table = max((tmp_path / "consumequeue").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 1
    table.write_bytes(data)
    rows = keyed_rows(opened(tmp_path))
    bad = [row for row in rows if row["status"] == "unreadable"]
    got = {(row["queue_id"], row["queue_offset"]) for row in rows if row["status"] == "valid"}
    missing: dict[int, int] = {}
    for queue_id, number in sorted({(q, n) for q in range(30) for n in range(40)} - got):
        missing.setdefault(queue_id, number)
    assert {row["queue_id"]: row["queue_offset"] for row in bad} == missing and len(missing) > 1 and len(bad) == len(missing)


def write_many(root: Path, queues: int, entries: int) -> None:
    chance = random.Random(5)
    keys = [("T", queue_id, number) for queue_id in range(queues) for number in range(entries)]
    pairs = [(entry_key(*key), entry_value(chance.randrange(1 << 40), 90, chance.randrange(1 << 60), 7)) for key in keys]
    ends = [(offset_key("T", queue_id, b"max"), offset_value(1, entries - 1)) for queue_id in range(queues)]
    write_database(root / "consumequeue", {"default": pairs, "offset": ends})
    (root / "commitlog").mkdir(exist_ok=True)


def test_what_no_broker_writes(tmp_path: Path) -> None:
    odd = [
        (b"short", b""),
        (b"\0\0\0\x09" + bytes(30), entry_value(1, 2, 3, 4)),
        (entry_key("T", 0, 1), b"cut"),
        (entry_key("T", 0, 2), entry_value(-5, 90, 3, 4)),
    ]
    good = (entry_key("T", 0, 0), entry_value(0, 90, 3, 4))
    write_database(tmp_path / "consumequeue", {"default": [good, *odd], "offset": []})
    (tmp_path / "commitlog").mkdir()
    rows = keyed_rows(opened(tmp_path))
    assert [(r["queue_offset"], r["phy_offset"], r["status"]) for r in rows] == [
        (0, 0, "valid"),
        (1, None, "invalid"),
        (2, -5, "invalid"),
    ]


def removed(store: KeyedStore, pattern: str) -> None:
    next((store.root / "consumequeue").glob(pattern)).unlink()


def test_a_database_that_does_not_open_is_told_with_its_file(tmp_path: Path) -> None:
    made = keyed_store(tmp_path / "store").write()
    table = next((made.root / "consumequeue").glob("*.sst"))
    table.write_bytes(table.read_bytes()[:-10])
    with pytest.raises(StoreError, match=f"consumequeue/{table.name}: RocksDB cannot read it"):
        served_queues(opened(made.root, conf=made.broker_conf))
    removed(made, "MANIFEST-*")
    with pytest.raises(StoreError, match=r"consumequeue/MANIFEST-.*: RocksDB cannot read it"):
        served_queues(opened(made.root, conf=made.broker_conf))
    with pytest.raises(StoreError, match=r"consumequeue_rocksdb|useSeparateStorePathForRocksdbCQ"):
        served_queues(opened(made.root, "5.5.0", f"{made.broker_conf}useSeparateStorePathForRocksdbCQ=true\n"))
