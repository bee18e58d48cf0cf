"""Replicas in controller mode with queues in RocksDB: confirmOffset, the election. Real releases: tests/broker_truth."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from store_io.broker.releases import Setting, broker_rules
from tests.support.answers import product
from tests.support.damage import overwrite
from tests.support.stores.replica import epoch_text
from tests.support.stores.rocksdb_stores import SIZES, KeyedStore, keyed_store

CONF = "enableControllerMode=true\n"
ALL = [15] * 4


def replica(root: Path, release: str, confirmed: int, *, dispatched: int = 60, clean: bool = True) -> KeyedStore:
    """confirmed: this many messages are."""
    pytest.importorskip("rocksdict")
    store = keyed_store(root, release, clean, dispatched)
    ends = [record.at for record in store.records[1:]] + [store.records[-1].at + store.records[-1].size]
    if confirmed:
        overwrite(root / "checkpoint", 32, ends[confirmed - 1].to_bytes(8, "big"))
    (root / "epochFileCheckpoint").write_bytes(epoch_text((1, 0), (2, store.records[9].at)))
    (root / "brokerIdentity").write_bytes(b"DefaultCluster#broker-a#1")
    return store


def audited(store: KeyedStore, release: str) -> product.Audited:
    return product.audit(store.write().root, release, store.broker_conf + CONF)


def ends(state: dict[str, Any]) -> list[int]:
    return [queue["max_offset"] for queue in state["queues"]]


def codes(found: Iterable[Any]) -> set[str]:
    return {finding.code for finding in found}


@pytest.mark.parametrize(("release", "dispatched", "clean"), [("5.2.0", 60, True), ("5.5.0", 20, False)])
def test_a_sound_replica(release: str, dispatched: int, clean: bool, tmp_path: Path) -> None:
    """A master keeps the value of its election; queues that a slave has up to there are as sound."""
    audit = audited(replica(tmp_path / "s", release, 20, dispatched=dispatched, clean=clean), release)
    assert audit.broker is not None and audit.broker["lost"]["messages"] == 0 and not audit.above_note
    assert ends(audit.broker["after_election"]) == ALL


def test_after_an_unclean_exit_queues_go_back_to_what_is_confirmed(tmp_path: Path) -> None:
    audit = audited(replica(tmp_path / "s", "5.4.0", 56, clean=False), "5.4.0")
    assert audit.broker is not None
    assert ends(audit.broker["after_load"]) == [14] * 4 and ends(audit.broker["after_election"]) == ALL


def test_an_election_cuts_queues_at_the_record_that_it_refuses(tmp_path: Path) -> None:
    store = replica(tmp_path / "s", "5.4.0", 8)
    record = store.records[13]
    overwrite(store.root / "commitlog" / f"{record.at - record.at % SIZES.segment:020d}", record.at % SIZES.segment + 4, b"\x11")
    audit = audited(store, "5.4.0")
    assert audit.broker is not None and audit.broker["controller"]["election"]["cut_at"] == record.at
    last = {(r.topic, r.queue_id): r for r in store.records[:13]}
    last["Topic1", 0] = store.records[1]  # an entry that leads exactly to the cut ends the search (rocksdb.md 3)
    for queue in audit.broker["after_election"]["queues"]:
        kept = last[queue["topic"], queue["queue_id"]]
        assert (queue["max_offset"], queue["max_phy_offset"]) == (kept.queue_offset + 1, kept.at)
    assert audit.broker["lost"]["messages"] == 48 and "broker_drops_messages" in codes(audit.findings)


def test_messages_after_confirm_offset_are_not_read_for_the_next_numbers() -> None:
    in_rocksdb = {"storeType": Setting("defaultRocksDB", "broker.conf")}
    assert broker_rules("5.4.0").reads_unconfirmed and not broker_rules("5.4.0", in_rocksdb).reads_unconfirmed
