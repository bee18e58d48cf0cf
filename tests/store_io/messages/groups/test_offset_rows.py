"""Offsets of groups and delay levels as a start takes them, beside the ends of their queues."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store_io.base.errors import StoreError
from store_io.messages.groups.offset_rows import OffsetScan, offsets_not_there, queue_end, scan_offsets
from store_io.messages.message_filter import MessageFilter
from store_io.messages.open_store import open_store
from store_io.source.byte_source import StoreLocation
from tests.support.stores.builders import SCHEDULE_TOPIC, Message, Store, StoreBuilder

Row = dict[str, Any]
HOSTILE = "<script>\u202e\x1b[31m"
OFFSETS = {
    "T@g": {"0": 3, "1": 5, "7": 1},
    "T@beyond": {"0": 9},
    "batch@g": {"0": 1},
    "late@g": {"0": 4},
    f"T@{HOSTILE}": {"0": 0},
    "T@\ud800half": {"0": 5},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    b = StoreBuilder("5.3.3", batch_topics=["batch"], queue_starts={("late", 0): 3})
    for i in range(10):
        b.put(Message("T", i % 2, b"x" * i))
    for _ in range(2):
        b.put(Message("batch", 0, inner_count=2))
        b.put(Message("late", 0))
        b.put(Message(SCHEDULE_TOPIC, 2, properties=(("DELAY", "3"),)))
    config = {
        "consumerOffset.json": json.dumps({"offsetTable": OFFSETS}),
        "delayOffset.json": json.dumps({"offsetTable": {"3": 1, "5": 2}}),
    }
    return b.write(tmp_path / "store", config=config)


def rows_of(store: Store, **more: Any) -> list[Row]:
    found: list[Row] = []
    for batch in scan_offsets(OffsetScan(StoreLocation(str(store.root)), store.release, store.broker_conf, **more)):
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def test_every_offset_beside_its_queue(store: Store) -> None:
    names = ("group", "topic", "queue_id", "committed_offset", "queue_end", "lag", "status")
    found = [tuple(row[name] for name in names) for row in rows_of(store) if row["kind"] == "consumer"]
    assert found == [
        ("g", "T", 0, 3, 5, 2, "lagging"),
        ("g", "T", 1, 5, 5, 0, "at_end"),
        ("g", "T", 7, 1, None, None, "no_queue"),
        ("beyond", "T", 0, 9, 5, 0, "beyond_end"),
        ("g", "batch", 0, 1, 4, 3, "lagging"),
        ("g", "late", 0, 4, 5, 1, "lagging"),
        (HOSTILE, "T", 0, 0, 5, 5, "lagging"),
        ("\ufffdhalf", "T", 0, 5, 5, 0, "at_end"),
    ]
    delays = [(row["delay_level"], row["queue_id"], row["lag"], row["status"], row["file"]) for row in rows_of(store)[8:]]
    assert delays == [(3, 2, 1, "lagging", "config/delayOffset.json"), (5, 4, None, "no_queue", "config/delayOffset.json")]


def test_parts_together_have_each_row_once(store: Store) -> None:
    parts = [row for part in range(3) for row in rows_of(store, part=part, parts=3)]
    assert sorted(map(str, parts)) == sorted(map(str, rows_of(store)))


def test_conditions_and_columns(store: Store) -> None:
    assert [row["group"] for row in rows_of(store, groups=frozenset({"beyond"}))] == ["beyond"]
    assert {row["kind"] for row in rows_of(store, kinds=frozenset({"delay"}))} == {"delay"}
    assert [row["lag"] for row in rows_of(store, wanted=MessageFilter(topics=frozenset({"late"})))] == [1]
    seventh = MessageFilter(queue_ids=frozenset({7}))
    assert rows_of(store, columns=("lag", "group"), wanted=seventh) == [{"lag": None, "group": "g"}]


def test_without_the_columns_of_ends_no_queue_is_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store_io.messages.groups.offset_rows.QueueEnds", None)
    assert len(rows_of(store, columns=("group", "committed_offset"))) == 10


def test_the_backup_where_a_start_takes_it_and_an_error_where_none_starts(store: Store) -> None:
    config = store.root / "config"
    whole = (config / "consumerOffset.json").read_text("utf-8")
    (config / "consumerOffset.json").write_text(whole[:40])
    (config / "consumerOffset.json.bak").write_text(json.dumps({"offsetTable": {"T@old": {"0": 2}}}))
    (row,) = rows_of(store, kinds=frozenset({"consumer"}))
    assert (row["group"], row["lag"], row["file"]) == ("old", 3, "config/consumerOffset.json.bak")
    (config / "consumerOffset.json.bak").write_text("{")
    with pytest.raises(StoreError, match=r"RocketMQ 5.3.3 does not start with these offsets.*consumerOffset.json"):
        rows_of(store)
    assert len(rows_of(store, kinds=frozenset({"delay"}))) == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "consumerOffset.json is not in the copy: no offsets of groups are known"),
        ("", "consumerOffset.json is empty: a start takes no offsets of groups"),
        ('{"offsetTable":{"T@g":{"0":', r"consumerOffset.json cannot be parsed \(.*\): a start takes no offsets of groups"),
        ("{}", "consumerOffset.json has no table of offsets: a start takes no offsets of groups"),
        ('{"offsetTable":{}}', None),
    ],
)
def test_where_no_offsets_are_taken_the_reason_is_known(store: Store, content: str | None, why: str | None) -> None:
    file = store.root / "config" / "consumerOffset.json"
    file.unlink()
    if content is not None:
        file.write_text(content)
    scan = OffsetScan(StoreLocation(str(store.root)), store.release, store.broker_conf)
    found = offsets_not_there(scan)
    assert rows_of(store, kinds=frozenset({"consumer"})) == [] and len(found) == (why is not None)
    assert why is None or re.fullmatch("config/" + why, found[0])
    assert offsets_not_there(replace(scan, kinds=frozenset({"delay"}))) == []


def test_an_end_is_where_recovery_stops(store: Store) -> None:
    opened = open_store(StoreLocation(str(store.root)), store.release, store.broker_conf)
    (queue,) = [queue for queue in opened.queues() if queue.key == ("T", 0)]
    file = store.root / queue.files[-1].path
    data = bytearray(file.read_bytes())
    data[-20:] = data[:20]  # valid, and after entries that no recovery takes
    file.write_bytes(data)
    assert queue_end(opened.source(), queue, opened.rules) == 5
    data[4 * 20 : 6 * 20] = b"\xff" * 40
    file.write_bytes(data)
    assert queue_end(opened.source(), queue, opened.rules) == 4
    file.write_bytes(bytes(len(data)))
    assert queue_end(opened.source(), queue, opened.rules) == 0
    file.write_bytes(data[:-20])
    with pytest.raises(StoreError, match="when the copy was listed"):
        queue_end(opened.source(), queue, opened.rules)


def test_an_offset_below_zero_is_behind_by_the_whole_queue(store: Store) -> None:
    (store.root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": {"T@g": {"0": -7}}}))
    (row,) = rows_of(store, kinds=frozenset({"consumer"}))
    assert (row["committed_offset"], row["lag"], row["status"]) == (-7, 5, "lagging")
