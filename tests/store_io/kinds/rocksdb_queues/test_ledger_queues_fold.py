"""A DLedger log whose queues are in RocksDB. Real releases: tests/broker_truth."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.answers import product
from tests.support.stores.dledger_stores import LedgerStore, build
from tests.support.stores.rocksdb_stores import KeyedStore


def keyed(root: Path, dispatched: int = 40, **how: Any) -> tuple[LedgerStore, dict[str, Any], product.Audited]:
    """Forty messages of which the first have entries; what is planned for it."""
    pytest.importorskip("rocksdict")
    store = build(root, "5.4.0", **how)
    shutil.rmtree(store.root / "consumequeue")
    database = KeyedStore(SimpleNamespace(root=store.root, release=store.release))  # type: ignore[arg-type]
    for entry in store.entries[:dispatched]:
        database.put(entry.record)
    database.write()
    audit = product.audit(store.root, store.release, store.broker_conf + "storeType=defaultRocksDB\n")
    assert audit.broker is not None, audit.incomplete
    return store, audit.broker, audit


def test_a_sound_store(tmp_path: Path) -> None:
    store, broker, audit = keyed(tmp_path)
    assert (broker["truncate_at"], broker["lost"]["messages"]) == (store.end, 0) and not audit.above_note
    assert sum(queue["max_offset"] for queue in broker["after_dispatch"]["queues"]) == 40


def test_after_a_crash_a_race_decides_which_queues_are_cut(tmp_path: Path) -> None:
    _, broker, audit = keyed(tmp_path, clean=False)
    queues = broker["after_dispatch"]["queues"]
    assert broker["lost"]["messages"] and any("or" in queue for queue in queues)
    assert sum(queue.get("or", queue)["max_offset"] for queue in queues) == 40
    assert {"ledger_crash_cut", "queue_end_undecided"} <= {finding.code for finding in audit.findings}


def test_after_a_clean_exit_what_has_no_entry_stays_away(tmp_path: Path) -> None:
    _, broker, _ = keyed(tmp_path, dispatched=30)
    assert broker["lost"]["messages"] == 10
