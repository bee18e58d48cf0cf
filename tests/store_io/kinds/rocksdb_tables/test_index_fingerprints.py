"""Prints of a segment's messages are those of the entries that they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from store_io.base.fingerprints import Stretches, prints_of
from store_io.kinds.rocksdb_tables.index_fingerprints import IndexPrints, index_entries
from store_io.kinds.rocksdb_tables.index_table import decoded
from store_io.kinds.rocksdb_tables.table_tasks import LogTableTask
from store_io.kinds.rocksdb_tables.transaction_table import key_print
from store_io.log.records import commitlog_columns
from store_io.log.records.message_columns import Columns, RecordCheck, Stretch, TopicTable
from store_io.log.scan.segment_scan import part_scan
from store_io.rocksdb.database import Batch
from store_io.source.segment_window import SegmentWindow
from tests.store_io.log.scan.test_segment_scan import MemoryFile
from tests.support.answers.segment_tasks import tasks
from tests.support.stores import builders
from tests.support.stores.rocksdb_tables import index_pairs, table_store


def hashes_of(pairs: dict[bytes, bytes]) -> np.ndarray:
    ends = [np.cumsum([len(part) for part in parts], dtype=np.int64) for parts in (pairs, pairs.values())]
    keys, values = (np.frombuffer(b"".join(parts), np.uint8) for parts in (pairs, pairs.values()))
    return decoded(Batch(*ends, keys, values))[2]


def test_a_segment_has_the_prints_of_its_entries_and_its_half_messages(tmp_path: Path) -> None:
    made = table_store(tmp_path / "s")
    stretches, scan = Stretches(0, 1 << 14, 1 << 12), tasks(made.root, made.conf, "5.4.0")[0]
    found = LogTableTask(part_scan(scan, scan.path, 0, scan.size), stretches, True, 3).run()
    own = {key: value for key, value in made.index.items() if int.from_bytes(key[-8:], "big") < scan.size}
    numbers = np.array([int.from_bytes(key[-8:], "big") // stretches.size for key in own])
    expected = prints_of(numbers, hashes_of(own))
    assert found.problem is None and len(expected.stretch) > 2
    for name in ("stretch", "count", "total"):
        assert getattr(found.prints, name).tolist() == getattr(expected, name).tolist()
    done, half = (found.halves[found.halves["done"] == value] for value in (True, False))
    assert len(found.halves) == 3 and found.dropped == 4
    assert done["of"].tolist() == [half["phy_offset"][0]] and done["key"][0] == half["key"][0]
    assert half["key"][0] == key_print(b"@pay@" + b"H" + b"0" * 31)


@given(st.lists(st.binary(max_size=12), min_size=3, max_size=3), st.integers(-1, 1 << 42), st.sampled_from([0, 4, 8, 12]))
def test_entries_of_any_texts_are_what_a_broker_puts(parts: list[bytes], time: int, flag: int) -> None:
    found = dict(index_entries("Topic", (parts[0], parts[1], parts[2]), flag, time, 77))
    if flag == builders.ROLLBACK or time < 3_600_000 or not parts[0]:
        assert found == {}
        return
    kinds = [key[15:16] for key in found]
    keys = {part for part in parts[1].decode("utf-8", "replace").split(" ") if part}
    assert kinds.count(b"K") == len(keys) and kinds.count(b"T") == bool(parts[2]) and kinds.count(b"U") == 1
    assert set(found.values()) == {time.to_bytes(8, "big")} and all(key[-8:] == bytes(7) + b"M" for key in found)


def test_the_entries_of_real_messages(tmp_path: Path) -> None:
    for record in table_store(tmp_path / "s").records:
        parts = tuple(record.properties.get(name, "").encode() for name in ("UNIQ_KEY", "KEYS", "TAGS"))
        told = dict(index_entries(record.topic, parts, record.sys_flag, record.store_time, record.at))  # type: ignore[arg-type]
        assert told == dict(index_pairs(record))


@given(st.lists(st.sampled_from([f"k{n}" for n in range(400)] + ["", "k", "kk"]), max_size=900), st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_each_key_of_a_message_counts_once_however_many_there_are(names: list[str], more: int) -> None:
    keys = " ".join([*names, *(str(n) for n in range(more))])
    builder = builders.StoreBuilder("5.4.0", builders.Sizes(segment=1 << 15))
    record = builder.put(builders.Message("Topic", body=b"b", uniq="u", keys=keys, tags="t"))
    data = np.frombuffer(bytes(builder.segments[0]), np.uint8).copy()
    columns, topics = Columns(4, want_keys=True), TopicTable()
    commitlog_columns.decode(Stretch(data, 0, 0, record.size, True), RecordCheck.audit(0), columns, topics)
    window = SegmentWindow(MemoryFile("commitlog/0", data.tobytes()), len(data), len(data))  # type: ignore[arg-type]
    window.hold(0)
    stretches = Stretches(0, 1 << 15, 1 << 15)
    found = IndexPrints(stretches)
    found.add(columns, topics.keys, window)
    parts = b"u", keys.encode(), b"t"
    own = dict(index_entries("Topic", parts, record.sys_flag, record.store_time, record.at))
    expected = prints_of(np.zeros(len(own), np.int64), hashes_of(own))
    assert columns.count == 1 and len(own) > 1
    assert (found.prints.count.tolist(), found.prints.total.tolist()) == (expected.count.tolist(), expected.total.tolist())
