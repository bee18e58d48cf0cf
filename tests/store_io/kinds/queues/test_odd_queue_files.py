"""Queues whose files no broker leaves so: gaps between very many used ranges, negative names; and a store without a segment."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from store_io.kinds.queues import consumequeue_reader
from store_io.messages.open_store import open_store, segment_times
from store_io.source.byte_source import StoreLocation
from tests.support.answers import product
from tests.support.answers.product import Audited
from tests.support.stores.builders import Message, Sizes, Store, StoreBuilder

FILE_ENTRIES = 60
NOWHERE = struct.pack(">qiq", 5_000_000, 100, 1)  # an entry that leads beyond the CommitLog
ALTERNATING = (NOWHERE + bytes(20)) * (FILE_ENTRIES // 2)
LEAST = "-9223372036854775808"


@pytest.fixture(autouse=True)
def few_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumequeue_reader, "MAX_RANGES", 1000)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    builder = StoreBuilder("5.3.3", Sizes(segment=1 << 16, queue_file=20 * FILE_ENTRIES, slots=3, index_max=12))
    for number in range(6):
        builder.put(Message("T", body=b"%d" % number, tags="a"))
    return builder.write(tmp_path / "store")


def queue(store: Store) -> Path:
    return store.root / "consumequeue" / "T" / "0"


def audited(store: Store) -> Audited:
    audit = product.audit(store.root, store.release, store.broker_conf)
    assert audit.outcome.complete, audit.incomplete
    return audit


def test_a_missing_file_among_very_many_used_ranges(store: Store) -> None:
    files = [*range(1, 40), *range(45, 60)]
    for number in files:
        (queue(store) / f"{number * 20 * FILE_ENTRIES:020d}").write_bytes(ALTERNATING)
    assert len(files) * FILE_ENTRIES // 2 > 1000  # so the gap lies inside of a range
    audit = audited(store)
    folder = "consumequeue/T/0"
    assert [f.file for f in audit.findings if f.code == "queue_file_missing"] == [f"{folder}/{40 * 20 * FILE_ENTRIES:020d}"]
    told = sum(f.count for f in audit.findings if f.code == "queue_entry_beyond_end")
    assert told + audit.outcome.found.dropped["queue_entry_beyond_end"] == len(files) * FILE_ENTRIES // 2


def test_files_very_far_apart_among_very_many_used_ranges(store: Store) -> None:
    for number in (*range(1, 40), 1 << 40):
        (queue(store) / f"{number * 20 * FILE_ENTRIES:020d}").write_bytes(ALTERNATING)
    view = next(view for key, view in audited(store).audit.views.items() if key == ("T", 0))
    assert sum(end - start for start, end in view.leftover) <= 40 * FILE_ENTRIES


@pytest.mark.parametrize("name", [LEAST, "-0000000000000001200", "-9223372036854774600"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_negative_name_is_told_and_its_entries_are_nobody_s(name: str, alone: bool, store: Store) -> None:
    first = queue(store) / f"{0:020d}"
    (queue(store) / name).write_bytes(first.read_bytes())
    if alone:
        first.unlink()
    audit = audited(store)
    told = [f for f in audit.findings if f.code == "file_unrecognised"]
    assert [(f.file, f.message) for f in told] == [(f"consumequeue/T/0/{name}", "its name is a negative number")]
    assert not [f for f in audit.findings if f.code == "queue_file_missing"], "what a negative name's gap would be called"
    missing = [f for f in audit.findings if f.code == "queue_entry_missing"]
    assert [f.count for f in missing] == ([6] if alone else [])


def test_no_segment_has_no_times(store: Store) -> None:
    for segment in (store.root / "commitlog").iterdir():
        segment.unlink()
    opened = open_store(StoreLocation(str(store.root)), store.release, store.broker_conf)
    assert segment_times(opened) == []


@pytest.mark.parametrize("most", [1, 9, 10, 11, 100])
def test_zeros_beyond_the_bound_of_ranges_are_counted_and_lead_nowhere(
    most: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten used stretches behind one another: their holes are the same number of zeros, and no entries, whatever is kept apart."""
    monkeypatch.setattr(consumequeue_reader, "MAX_RANGES", most)
    path = queue(store) / f"{20 * FILE_ENTRIES:020d}"
    path.write_bytes((NOWHERE + bytes(20) * 5) * 10)
    outcome = audited(store).outcome
    told = {
        code: sum(f.count + f.more for f in outcome.found.findings if f.code == code)
        for code in {f.code for f in outcome.found.findings}
    }
    assert told["queue_entry_beyond_end"] == 10 and told["queue_zero_entry"] == FILE_ENTRIES - 6 + 9 * 5
    assert not {"message_disputed", "queue_entry_invalid"} & told.keys()
    (row,) = (row for row in outcome.rows.queues if row["topic"] == "T")
    assert row["disk_entries"] == 16
