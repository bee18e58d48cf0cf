"""Queues that are written twice, made anew by a repair: both kinds have the same entries."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import product
from tests.support.damage import remove
from tests.support.repaired import plan_of, repaired
from tests.support.rocksdb_stores import TWICE, KeyedStore, combined_store, entry_key, entry_value, read_database

pytest.importorskip("rocksdict")
READS = "combineCQPreferCQType=defaultRocksDB\n"


def rows(root: Path) -> dict[bytes, bytes]:
    """The entries in RocksDB, without the folders of the queues in files, which lie beside them."""
    shutil.copytree(
        root / "consumequeue", root.parent / "database", ignore=lambda path, names: {n for n in names if "Topic" in n}
    )
    found = read_database(root.parent / "database")["default"]
    remove(root.parent / "database")
    return found


def files(root: Path) -> dict[str, bytes]:
    folder = root / "consumequeue"
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.glob("*/*/*")}


def expected(store: KeyedStore) -> dict[bytes, bytes]:
    entries = {(r.topic, r.queue_id, r.queue_offset): r for r in store.records}
    kept = dict(store.entries)
    for record in entries.values():
        store.put(record)
    found = {entry_key(*key): entry_value(*value) for key, value in store.entries.items()}
    store.entries = kept
    return found


def test_a_database_that_ends_early_gets_the_entries_of_the_files(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "store", dispatched=25).write()
    conf = store.plain.broker_conf + TWICE
    (store.root / "abort").touch()
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.4.0", conf), "salvage")
    assert outcome.exit_code == 0, outcome.report["problems"]
    assert rows(tmp_path / "new") == expected(store) and files(tmp_path / "new") == files(store.root)
    audit = product.audit(tmp_path / "new", "5.4.0", conf)
    assert audit.above_note == [] and not audit.incomplete


def test_a_queue_whose_files_are_gone_gets_them_and_the_database_stays(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "store").write()
    conf, whole = store.plain.broker_conf + TWICE + READS, files(store.root)
    remove(store.root / "consumequeue" / "Topic0" / "1")
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.4.0", conf), "salvage")
    assert outcome.exit_code == 0 and outcome.report["database"] is None, outcome.report["problems"]
    assert [row["folder"] for row in outcome.report["queues"]] == ["consumequeue/Topic0/1"]
    assert files(tmp_path / "new") == whole
