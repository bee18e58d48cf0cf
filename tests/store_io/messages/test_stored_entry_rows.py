"""ConsumeQueue and index entries on disk, and byte ranges, as rows."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreChanged, Unreadable
from store_io.messages.open_store import OpenStore, open_store
from store_io.messages.scans import EntryScan
from store_io.messages.stored_entry_rows import SCHEMAS, scan_extents, scan_index_entries, scan_queue_entries
from store_io.source.byte_source import StoreLocation
from tests.support.stores import builders
from tests.support.stores.builders import Message, StoreBuilder
from tests.support.stores.corpus_tools import cases

Row = dict[str, Any]


def opened(root: Path, release: str, conf: str | None) -> tuple[OpenStore, EntryScan]:
    store = open_store(StoreLocation(str(root)), release, conf)
    return store, EntryScan(store.location, store.rules)


def queue_rows(store: OpenStore, scan: EntryScan) -> list[Row]:
    found: list[Row] = []
    for queue in store.queues():
        for batch in scan_queue_entries(scan, queue):
            batch.validate(full=True)
            assert batch.schema == SCHEMAS["consumequeue"]
            found += batch.to_pylist()
    return found


def index_rows(store: OpenStore, scan: EntryScan) -> list[Row]:
    found: list[Row] = []
    for file in store.index_files():
        for batch in scan_index_entries(scan, file):
            batch.validate(full=True)
            assert batch.schema == SCHEMAS["index"]
            found += batch.to_pylist()
    return found


def built(root: Path, **more: Any) -> builders.Store:
    b = StoreBuilder("5.3.3", batch_topics=["batch"], queue_starts={("late", 0): 3}, lmq=True, **more)
    for i in range(40):
        b.put(Message("T", i % 2, b"x" * i, tags=f"tag{i}", keys=f"k{i} common", uniq=f"U{i}"))
        b.put(Message("batch", 0, inner_count=2))
        b.put(Message("late", 0, tags="t"))
        b.put(Message("lite", 0, lmq=("%LMQ%one",)))
    return b.write(root)


def test_queue_entries(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    rows = queue_rows(*opened(store.root, "5.3.3", store.broker_conf))
    wanted = []
    for (topic, queue_id), queue in sorted(store.expected.queues.items(), key=lambda q: (q[1].unit == 46, q[0])):
        for number, entry in queue.entries():
            phy_offset, size, code = struct.unpack(">qiq", entry[:20])
            row = (topic, queue_id, number, phy_offset, size, code, None, 1, "queue", "valid")
            if size == 0x7FFFFFFF:
                row = (*row[:-1], "pre_blank")
            if topic.startswith("%LMQ%"):
                row = (*row[:-2], "lmq", "valid")
            if queue.unit == 46:
                time, base, count = struct.unpack(">qqh", entry[20:38])
                row = (topic, queue_id, base, phy_offset, size, code, time, count, "batch", "valid")
            wanted.append((*row, number * queue.unit % queue.file_size))
    names = (
        "topic", "queue_id", "queue_offset", "phy_offset", "size", "tags_code", "store_time_ms", "message_count", "kind",
        "status", "position",
    )  # fmt: skip
    assert [tuple(row[name] for name in names) for row in rows] == wanted
    assert {row[8] for row in wanted} == {"queue", "batch", "lmq"} and {row[9] for row in wanted} == {"valid", "pre_blank"}
    kind = {"batch": "batchconsumequeue"}
    assert all(r["file"].startswith(f"{kind.get(r['topic'], 'consumequeue')}/{r['topic']}/{r['queue_id']}/") for r in rows)


def test_an_invalid_entry_is_told_and_unwritten_ones_are_left_out(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    path = store.root / "consumequeue/T/0/00000000000000000000"
    data = bytearray(path.read_bytes())
    data[20:40] = struct.pack(">qiq", 5, -1, 7)
    data[40:60] = bytes(20)
    path.write_bytes(data)
    rows = [r for r in queue_rows(*opened(store.root, "5.3.3", store.broker_conf)) if (r["topic"], r["queue_id"]) == ("T", 0)]
    assert [(r["queue_offset"], r["status"]) for r in rows[:3]] == [(0, "valid"), (1, "invalid"), (3, "valid")]


def test_entries_that_lead_to_a_range(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    opened_store, scan = opened(store.root, "5.3.3", store.broker_conf)
    narrow = EntryScan(scan.location, scan.rules, (1000, 3000))
    for rows in (queue_rows, index_rows):
        chosen = [r for r in rows(opened_store, scan) if 1000 <= r["phy_offset"] < 3000]
        assert rows(opened_store, narrow) == chosen != []


def test_ext_units(tmp_path: Path) -> None:
    store = built(tmp_path / "store", ext_bit_map=4)
    rows = queue_rows(*opened(store.root, "5.3.3", store.broker_conf))
    by_phy = {r.phy_offset: r for r in store.records}
    resolved = [r for r in rows if r["ext_tags_code"] is not None]
    assert len(resolved) == len([r for r in rows if r["kind"] != "batch" and r["status"] == "valid"]) > 100
    for row in resolved:
        record = by_phy[row["phy_offset"]]
        assert row["tags_code"] < -(1 << 31)
        assert (row["ext_tags_code"], row["ext_store_time_ms"]) == (builders.tags_code(record), record.store_time)


def test_index_entries(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    rows = index_rows(*opened(store.root, "5.3.3", store.broker_conf))
    wanted = []
    for page in store.expected.pages:
        for number, (key_hash, phy_offset, seconds, previous) in enumerate(page.entries, 1):
            time = page.begin_time + 1000 * seconds
            position = 40 + 4 * 20 + 20 * number
            wanted.append((number, key_hash, phy_offset, seconds, time, previous, key_hash % 20, "counted", position))
    assert [tuple(row.values())[1:] for row in rows] == wanted and len(store.expected.pages) > 2


def test_an_index_entry_behind_the_count_is_told(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    path = sorted((store.root / "index").iterdir())[0]
    data = bytearray(path.read_bytes())
    (count,) = struct.unpack_from(">i", data, 36)
    struct.pack_into(">i", data, 36, count - 1)
    path.write_bytes(data)
    rows = [r for r in index_rows(*opened(store.root, "5.3.3", store.broker_conf)) if r["file"] == f"index/{path.name}"]
    assert [r["status"] for r in rows] == ["counted"] * (count - 2) + ["beyond_count"]


@pytest.mark.parametrize("name", ["g04-533-clean-all", "g11-533-zero-tail", "g19-514-size-mid"])
def test_extents_tile_the_segments_of_real_stores(tmp_path: Path, name: str) -> None:
    (case,) = cases(name)
    root = case.unpack(tmp_path)
    store, scan = opened(root, case.release, case.broker_conf)
    kinds = set()
    for segment in store.segments():
        rows = [row for batch in scan_extents(scan, segment) for row in batch.to_pylist()]
        assert [r["start"] for r in rows] == [0, *(r["end"] for r in rows[:-1])] and rows[-1]["end"] == segment.size
        assert all(r["size_bytes"] == r["end"] - r["start"] and r["phy_offset"] == segment.start + r["start"] for r in rows)
        kinds |= {r["kind"] for r in rows}
    assert ("damaged" in kinds) == (name != "g04-533-clean-all") and "message" in kinds


# ---- the store -------------------------------------------------------------------------------------------------------


def test_a_link_out_of_the_store_is_told_where_it_would_be_read(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    (store.root / "commitlog" / "00000000000000999424").symlink_to("/etc/hostname")
    found = open_store(StoreLocation(str(store.root)), "5.3.3", store.broker_conf)
    with pytest.raises(Unreadable, match="commitlog/00000000000000999424: a link that leads out"):
        found.segments()
    assert found.queues() and found.index_files()


def test_a_file_that_shrank_is_told(tmp_path: Path) -> None:
    store = built(tmp_path / "store")
    opened_store, scan = opened(store.root, "5.3.3", store.broker_conf)
    (queue,) = [q for q in opened_store.queues() if q.key == ("T", 0)]
    with open(store.root / queue.files[0].path, "r+b") as file:
        file.truncate(20)
    with pytest.raises(StoreChanged, match="20 bytes, 400 when"):
        list(scan_queue_entries(scan, queue))
