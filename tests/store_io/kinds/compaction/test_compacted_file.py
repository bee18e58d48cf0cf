"""One file of a compacted topic's log against its entries and the CommitLog."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.layouts.consumequeue_layout import BATCH_ENTRY_BYTES
from schemas.rows import LOSS, NOTE, REBUILDABLE, MappedFile
from store_io.broker.releases import broker_rules
from store_io.kinds.compaction import log_messages
from store_io.kinds.compaction.compacted_file import CompactedFileSummary, CompactedFileTask, scan_compacted_file
from store_io.kinds.compaction.log_messages import LogFiles
from store_io.kinds.compaction.sparse_recovery import SparseEntry
from store_io.source.byte_source import StoreLocation
from tests.support.damage import write_at
from tests.support.stores import compacted
from tests.support.stores.builders import Store
from tests.support.stores.compacted import ENTRIES_FILE, LOG_FILE, TOPIC

LAST = 2 * LOG_FILE


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = compacted.build(tmp_path / "store")
    compacted.write_logs(store)
    return store


def files_of(root: Path, folder: str) -> tuple[MappedFile, ...]:
    paths = sorted((root / folder).iterdir()) if (root / folder).is_dir() else []
    return tuple(MappedFile(str(p.relative_to(root)), int(p.name), p.stat().st_size) for p in paths)


def task_of(store: Store, start: int = LAST, **given: object) -> CompactedFileTask:
    log, entries = (str(folder.relative_to(store.root)) + f"/{start:020d}" for folder in compacted.folders(store.root))
    known: dict[str, object] = {
        "log": MappedFile(log, start, (store.root / log).stat().st_size),
        "entries": MappedFile(entries, start, (store.root / entries).stat().st_size),
        "commitlog": LogFiles(files_of(store.root, "commitlog"), files_of(store.root, f"consumequeue/{TOPIC}/0")),
        "last": start == LAST,
        "put_here": True,
    }
    return CompactedFileTask(0, StoreLocation(str(store.root)), broker_rules(), (TOPIC, 0), **{**known, **given})  # type: ignore[arg-type]


def scan(store: Store, start: int = LAST, **given: object) -> CompactedFileSummary:
    return scan_compacted_file(task_of(store, start, **given))


def change(store: Store, kind: int, at: int, data: bytes, start: int = LAST) -> None:
    write_at(compacted.folders(store.root)[kind] / f"{start:020d}", at, data)


@pytest.mark.parametrize("start", [0, LOG_FILE, LAST])
@pytest.mark.parametrize("decoder", ["fast", "reference"])
def test_a_sound_file_has_no_finding(start: int, decoder: str, store: Store) -> None:
    found = scan(store, start, decoder=decoder)
    assert found.findings == [] and found.problem is None and len(found.digests) == 2
    assert found.ends is not None and found.ends.leading == found.records > 3


def test_a_hole_after_the_entries_is_not_read(store: Store) -> None:
    plain = scan(store)
    with open(compacted.folders(store.root)[1] / f"{LAST:020d}", "r+b") as file:
        file.truncate(1 << 40)  # more than could be read
    longer = scan(store)
    assert longer.ends == plain.ends and longer.findings == plain.findings
    assert longer.bytes_read < 64 << 20 and longer.digests != plain.digests


def test_the_ends_are_those_of_the_valid_entries(store: Store) -> None:
    found = scan(store)
    assert found.ends is not None and found.ends.first is not None and found.ends.last is not None
    rows = (compacted.folders(store.root)[1] / f"{LAST:020d}").read_bytes()
    offset, size, _, _, base = struct.unpack_from(">qiqqq", rows)
    assert found.ends.first == SparseEntry(offset, size, base)
    offset, size, _, _, base = struct.unpack_from(">qiqqq", rows, (found.records - 1) * BATCH_ENTRY_BYTES)
    assert found.ends.last == SparseEntry(offset, size, base) and base > found.ends.first.base


def test_a_damaged_record_is_a_loss_where_the_commitlog_has_lost_it_too(store: Store) -> None:
    change(store, 0, 90, b"\xff\xff")
    (held,) = scan(store).findings
    assert (held.code, held.weight, held.start) == ("compacted_record_damaged", REBUILDABLE, 0)
    (alone,) = scan(store, commitlog=LogFiles((), ())).findings
    assert (alone.code, alone.weight) == ("compacted_record_damaged", LOSS)


def test_damage_ends_with_the_next_entry(store: Store) -> None:
    sound = scan(store).records
    change(store, 0, 0, bytes(8))
    found = scan(store)
    assert found.records == sound - 1 and [f.count for f in found.findings] == [1]


def test_an_entry_that_leads_elsewhere_and_its_record(store: Store) -> None:
    change(store, 1, 0, struct.pack(">q", LAST + 7))
    assert {f.code for f in scan(store).findings} == {"compacted_entry_wrong", "compacted_record_unlisted"}


def test_an_entry_whose_record_would_end_after_the_file(store: Store) -> None:
    sound = scan(store)
    assert sound.ends is not None and sound.ends.last is not None
    at = (sound.ends.leading - 1) * BATCH_ENTRY_BYTES
    change(store, 1, at + 8, struct.pack(">i", LOG_FILE - (sound.ends.last.phy_offset - LAST) + 1))
    change(store, 0, sound.ends.last.phy_offset - LAST, bytes(8))
    assert [(f.code, f.start, f.message) for f in scan(store).findings] == [
        ("compacted_entry_wrong", at, "no record begins where it leads")
    ]


@pytest.mark.parametrize(("unclean", "severity"), [(False, REBUILDABLE), (True, NOTE)])
def test_records_after_the_last_entry(unclean: bool, severity: str, store: Store) -> None:
    """A kill between a record and its entry leaves that."""
    ends = scan(store).ends
    assert ends is not None
    change(store, 1, (ends.leading - 1) * 46, bytes(46))
    found = {f.code: f.weight for f in scan(store, unclean=unclean).findings}
    assert found == {"compacted_record_unlisted": severity, "compacted_message_missing": severity}


def test_messages_that_were_never_put(tmp_path: Path) -> None:
    """In the newest file between others: a loss for consumers. In older files a compaction takes messages out."""
    store = compacted.build(tmp_path / "store")
    last = max(r.queue_offset for r in store.records if (r.topic, r.queue_id) == (TOPIC, 0) and "KEYS" in r.properties)
    compacted.write_logs(store, put=lambda record: record.queue_offset not in (4, last - 2, last - 1, last))
    log = compacted.folders(store.root)[0]
    newest = max(int(path.name) for path in log.iterdir())
    (finding,) = scan(store, newest, last=True).findings
    assert finding.code == "compacted_message_missing" and finding.weight == REBUILDABLE and finding.count >= 1
    assert scan(store, 0).findings == []


def test_a_queue_without_a_log_is_a_note(store: Store) -> None:
    (finding,) = scan(store, log=None, entries=None).findings
    assert (finding.code, finding.weight, finding.file) == (
        "compacted_message_missing",
        NOTE,
        f"compaction/compactionCq/{TOPIC}/0",
    )
    assert scan(store, log=None, entries=None, put_here=False).findings == []


def test_messages_beyond_those_looked_at_are_noted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_messages, "_has_key", lambda *of: False)
    for most, noted in ((1000, 0), (1, 1)):
        monkeypatch.setattr(log_messages, "MAX_LOOKED_AT", most)
        found = scan(store, log=None, entries=None).findings
        assert [(f.weight, f"only {most}" in f.message) for f in found] == [(NOTE, True)] * noted


def test_a_file_of_another_length_than_listed_is_a_problem(store: Store) -> None:
    task = task_of(store)
    assert task.log is not None
    (store.root / task.log.path).write_bytes(b"")
    assert scan_compacted_file(task).problem.path == task.log.path


def test_quick_reads_the_entries_alone(store: Store) -> None:
    change(store, 0, 90, b"\xff\xff")
    found = scan(store, records=False)
    assert found.findings == [] and found.records == 0 and found.ends is not None


@settings(max_examples=30, deadline=None)
@given(log=st.binary(max_size=600), entries=st.binary(max_size=300), cut=st.integers(0, 500))
def test_any_bytes(log: bytes, entries: bytes, cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = compacted.build(tmp_path_factory.mktemp("s") / "store", messages=12)
    made = compacted.write_logs(store)[0]
    change(store, 0, 0, (made.log[0][:cut] + log)[:LOG_FILE], 0)
    change(store, 1, 0, (made.entries[0][:cut] + entries)[:ENTRIES_FILE], 0)
    found = scan(store, 0, last=True)
    assert found.problem is None and all(f.start is None or 0 <= f.start < (f.end or 0) <= LOG_FILE for f in found.findings)
