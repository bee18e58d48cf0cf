"""Entries of a question that lead where no segment is."""

from __future__ import annotations

from pathlib import Path

import pytest

from store_io.messages.choice import by_queues
from store_io.messages.choice.by_queues import entries_led_out
from store_io.messages.message_filter import MessageFilter, Range
from store_io.messages.open_store import OpenStore, open_store
from store_io.source.byte_source import StoreLocation
from tests.support.damage import overwrite
from tests.support.stores.builders import Message, Record, Sizes, StoreBuilder


def built(root: Path, first: int = 0, queue_begins_at: int = 0) -> tuple[Path, OpenStore, list[Record]]:
    builder = StoreBuilder("5.3.3", Sizes(segment=4096, queue_file=400), first_offset=first)
    records = [builder.put(Message("T", 0, b"b" * 200)) for _ in range(60)]
    made = builder.write(root / "store")
    store = open_store(StoreLocation(str(made.root)), made.release, made.broker_conf)
    return made.root, store, records


def asked(low: int | None, high: int | None) -> MessageFilter:
    return MessageFilter(topics=frozenset(["T"]), queue_ids=frozenset([0]), queue_offsets=(low, high))


def test_each_entry_of_the_range_is_counted_whose_segment_is_gone_or_short(tmp_path: Path) -> None:
    root, store, records = built(tmp_path)
    gone = {n for n, r in enumerate(records) if r.at // 4096 == 1}
    (root / "commitlog" / f"{4096:020d}").unlink()
    last = root / "commitlog" / f"{records[-1].at // 4096 * 4096:020d}"
    last.write_bytes(last.read_bytes()[: records[-1].at % 4096])
    store = open_store(store.location, "5.3.3", None)
    ranges: list[Range] = [(0, 60), (0, None), (None, 20), (15, 25), (59, 60), (0, 3), (1000, 2000), (30, 10)]
    for low, high in ranges:
        wished = range(low or 0, 60 if high is None else high)
        assert entries_led_out(store, asked(low, high)) == len({*gone, 59} & set(wished)), (low, high)
    assert gone


def test_nothing_is_counted_where_nothing_is_asked_or_all_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, store, _ = built(tmp_path)
    assert entries_led_out(store, asked(0, 60)) == 0
    (root / "commitlog" / f"{4096:020d}").unlink()
    store = open_store(store.location, "5.3.3", None)
    assert entries_led_out(store, asked(None, None)) == 0  # no queue offsets
    assert entries_led_out(store, MessageFilter(topics=frozenset(["T"]), queue_offsets=(0, 60))) == 0  # no queue
    assert entries_led_out(store, asked(0, 60)) > 0
    monkeypatch.setattr(by_queues, "MOST_LED_OUT", 59)
    assert entries_led_out(store, asked(0, 60)) == 0


def test_slots_that_were_filled_up_lead_nowhere(tmp_path: Path) -> None:
    root, store, _ = built(tmp_path, first=8192)
    queue = root / "consumequeue" / "T" / "0" / f"{0:020d}"
    overwrite(queue, 0, (0).to_bytes(8, "big") + (0x7FFFFFFF).to_bytes(4, "big") + (0).to_bytes(8, "big"))
    assert entries_led_out(store, asked(0, 60)) == 0
