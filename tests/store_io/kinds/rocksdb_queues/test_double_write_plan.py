"""Queues that are written twice, made anew by a repair: both kinds have the same entries."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.answers import product
from tests.support.answers.repaired import plan_of, repaired
from tests.support.damage import remove
from tests.support.stores.rocksdb_stores import (
    TWICE,
    KeyedStore,
    combined_store,
    entry_key,
    entry_value,
    light_store,
    read_database,
)

pytest.importorskip("rocksdict")
READS = "combineCQPreferCQType=defaultRocksDB\n"


def rows(root: Path) -> dict[bytes, bytes]:
    """The entries in RocksDB, without the folders of the queues in files, which lie beside them."""
    shutil.copytree(
        root / "consumequeue", root.parent / "database", ignore=lambda path, names: {n for n in names if "Topic" in n or "%" in n}
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
    assert outcome.exit_code == 0, outcome.report.problems
    assert rows(tmp_path / "new") == expected(store) and files(tmp_path / "new") == files(store.root)
    audit = product.audit(tmp_path / "new", "5.4.0", conf)
    assert audit.above_note == [] and not audit.incomplete


def test_a_queue_whose_files_are_gone_gets_them_and_the_database_stays(tmp_path: Path) -> None:
    store = combined_store(tmp_path / "store").write()
    conf, whole = store.plain.broker_conf + TWICE + READS, files(store.root)
    remove(store.root / "consumequeue" / "Topic0" / "1")
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.4.0", conf), "salvage")
    assert outcome.exit_code == 0 and outcome.report.database is None, outcome.report.problems
    assert [row.folder for row in outcome.report.queues] == ["consumequeue/Topic0/1"]
    assert files(tmp_path / "new") == whole


@pytest.mark.parametrize("release", ["5.4.0", "5.5.0"])
def test_light_queues_are_made_in_both_kinds_or_in_rocksdb_alone(release: str, tmp_path: Path) -> None:
    """Files of theirs that no broker of 5.5.0 reads stay as they are."""
    store = light_store(tmp_path / "store", "5.4.0").write()
    conf = store.plain.broker_conf + TWICE + "enableLmq=true\nenableMultiDispatch=true\n"
    light = {key: value for key, value in store.entries.items() if key[0].startswith("%LMQ%")}
    store.entries = {key: value for key, value in store.entries.items() if key not in light or key[2] < 3}
    remove(store.root / "consumequeue" / "Topic0" / "1")
    for path in (store.root / "consumequeue").iterdir():
        if path.is_file():
            path.unlink()
    before = files(store.root)
    store.write()
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, release, conf), "salvage")
    assert outcome.exit_code == 0, outcome.report.problems
    assert (
        light and {entry_key(*key): entry_value(*value) for key, value in light.items()}.items() <= rows(tmp_path / "new").items()
    )
    made = files(tmp_path / "new")
    assert made.keys() - before.keys() == {"Topic0/1/00000000000000000000"} and before.items() <= made.items()
    audit = product.audit(tmp_path / "new", release, conf)
    assert audit.above_note == [] and not audit.incomplete


def test_light_queues_that_are_in_rocksdb_alone_are_made_where_the_database_is_gone(tmp_path: Path) -> None:
    """The audit has a note: double write may have been switched on since the broker stopped."""
    store = light_store(tmp_path / "store", "5.4.0")
    conf = store.plain.broker_conf + TWICE + "enableLmq=true\nenableMultiDispatch=true\n"
    assert product.audit(store.root, "5.5.0", conf).above_note == []
    outcome = repaired(store.root, tmp_path / "new", plan_of(store.root, "5.5.0", conf), "broker")
    assert outcome.exit_code == 0, outcome.report.problems
    made = {entry_key(*key): entry_value(*value) for key, value in store.entries.items() if key[0].startswith("%LMQ%")}
    assert made and made.items() <= rows(tmp_path / "new").items()
    assert {"%LMQ%a": 20, "%LMQ%b": 20}.items() <= {row.topic: row.entries for row in outcome.report.queues}.items()
