"""Kinds of store that are recognised and not modelled are named, each in one sentence; a healthy store is none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from store_io.broker.releases import TIERED_PLUG_IN, BrokerRules, Setting, broker_rules
from store_io.model.other_kinds import other_ledgers, unmodelled
from store_io.source.store_dir import StoreListing
from store_io.wording.gaps import gap_text
from tests.support.handmade.evidence import listing_of, log_path

GROUP = {
    "enableDLegerCommitLog": Setting(True, "broker.conf"),
    "dLegerSelfId": Setting("n0", "broker.conf"),
    "dLegerPeers": Setting("n0-127.0.0.1:20911", "broker.conf"),
}
GROUP_OF = {None: {}, "enableControllerMode": {}, "enableDLegerCommitLog": GROUP}


def listed(files: Mapping[str, int]) -> StoreListing:
    return listing_of({log_path(0): 8, **files})


def kinds_of(listing: StoreListing, rules: BrokerRules, conf: bool = False) -> list[str]:
    return [gap_text(gap) for gap in unmodelled(listing, rules, conf)]


def test_what_every_broker_makes_is_no_other_kind() -> None:
    usual = {
        "batchconsumequeue/B/0/00000000000000000000": 46,
        "compaction/compactionLog/T/0/00000000000000000000": 5,
        "timerwheel": 10,
    }
    assert kinds_of(listed({**usual, "rocksdbstore/CURRENT": 16, "epochFileCheckpoint": 0}), broker_rules()) == []


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"consumequeue/CURRENT": 16}, "RocksDB"),
        ({"consumequeue/MANIFEST-000004": 9, "consumequeue/000009.sst": 5}, "RocksDB"),
        ({"consumequeue_r/CURRENT": 16}, "RocksDB"),
    ],
)
def test_kinds_that_are_not_modelled_are_named(files: dict[str, int], word: str) -> None:
    sentences = kinds_of(listed(files), broker_rules())
    assert len(sentences) == 1 and word in sentences[0] and "\n" not in sentences[0]


@pytest.mark.parametrize(("key", "value", "word"), [("storeType", "another", "storeType=another")])
def test_settings_name_them_too(key: str, value: object, word: str) -> None:
    sentences = kinds_of(listed({}), broker_rules(settings={key: Setting(value, "broker.conf")}))
    assert len(sentences) == 1 and word in sentences[0]


@pytest.mark.parametrize("named", [("storeType", "defaultRocksDB"), ("indexRocksDBEnable", True), ("transRocksDBEnable", True)])
def test_tables_in_rocksdb_beside_a_log_from_before_dledger_are_not_modelled(named: tuple[str, object]) -> None:
    settings = dict(GROUP)
    files = {"dledger-n0/data/00000000000000004096": 10}
    assert kinds_of(listed(files), broker_rules("5.5.0", settings)) == []
    settings[named[0]] = Setting(named[1], "broker.conf")
    assert kinds_of(listing_of(files), broker_rules("5.5.0", settings)) == []
    found = kinds_of(listed(files), broker_rules("5.5.0", settings))
    assert [sentence.startswith("commitlog/: a log from before DLedger") for sentence in found] == [True] * (named[1] is True)


def test_controller_mode_is_modelled_but_for_a_broker_that_never_takes_part() -> None:
    settings = {"enableControllerMode": Setting(True, "broker.conf")}
    assert kinds_of(listed({"epochFileCheckpoint": 5}), broker_rules(settings=settings)) == []
    looks = settings | {"recheckReputOffsetFromCq": Setting(True, "broker.conf")}
    assert kinds_of(listed({}), broker_rules("5.1.1", looks)) == kinds_of(listed({}), broker_rules("4.9.8", looks)) == []
    assert "before 5.1.1" in kinds_of(listed({}), broker_rules("5.1.0", looks))[0]
    alone = settings | {"duplicationEnable": Setting(True, "broker.conf")}
    (sentence,) = kinds_of(listed({}), broker_rules(settings=alone))
    assert "set duplicationEnable=false" in sentence and sentence.endswith("what a start does with it is not modelled")
    assert kinds_of(listed({}), broker_rules("4.9.8", alone)) == []


@pytest.mark.parametrize(("release", "named"), [("5.5.0", 0), ("5.5.1", 1)])
def test_queues_in_rocksdb_for_some_topics_alone_are_not_modelled(release: str, named: int) -> None:
    both = {"rocksdbCQDoubleWriteEnable": "true", "rocksdbCQSelectiveDoubleWriteEnable": "true"}
    settings = {key: Setting(True, "broker.conf", text) for key, text in both.items()}
    found = kinds_of(listed({}), broker_rules(release, settings))
    assert [sentence.startswith("rocksdbCQSelectiveDoubleWriteEnable=true: ") for sentence in found] == [True] * named


@pytest.mark.parametrize("beside", [None, "enableControllerMode", "enableDLegerCommitLog"])
def test_a_start_that_looks_at_queues_in_rocksdb_is_not_modelled(beside: str | None) -> None:
    """It is said once, whatever lies beside them."""
    settings = {name: Setting(True, "broker.conf") for name in ("recheckReputOffsetFromCq", beside) if name} | GROUP_OF[beside]
    in_files = kinds_of(listed({}), broker_rules("5.4.0", settings))
    assert not any("recheckReputOffsetFromCq" in sentence for sentence in in_files)
    settings["storeType"] = Setting("defaultRocksDB", "broker.conf")
    found = kinds_of(listed({}), broker_rules("5.4.0", settings))
    assert sum("recheckReputOffsetFromCq" in sentence for sentence in found) == 1


@pytest.mark.parametrize(
    ("beside", "modelled"),
    [
        ({"enableControllerMode": True}, True),
        ({"duplicationEnable": True}, True),
        ({"enableControllerMode": True, "storeType": "defaultRocksDB"}, True),
        ({"enableControllerMode": True, "rocksdbCQDoubleWriteEnable": True}, False),
        ({"duplicationEnable": True, "rocksdbCQDoubleWriteEnable": True}, False),
        ({"duplicationEnable": True, "storeType": "defaultRocksDB"}, False),
        ({"rocksdbCQDoubleWriteEnable": True}, True),
    ],
)
def test_what_is_dispatched_uncommitted_is_modelled_but_beside_queues_in_rocksdb(
    beside: dict[str, object], modelled: bool
) -> None:
    settings = {name: Setting(value, "broker.conf") for name, value in {"readUnCommitted": True, **beside}.items()}
    found = kinds_of(listed({}), broker_rules("5.4.0", settings))
    assert [sentence.startswith("readUnCommitted=true") for sentence in found] == [True] * (not modelled)


@pytest.mark.parametrize(
    ("release", "plug_in", "named"), [("5.3.3", TIERED_PLUG_IN, 1), ("5.0.0", TIERED_PLUG_IN, 0), ("5.3.3", "", 0)]
)
@pytest.mark.parametrize("files", [{"config/tieredStoreMetadata.json": 5}, {}])
def test_a_tiered_store_counts_if_the_broker_opens_it(files: dict[str, int], release: str, plug_in: str, named: int) -> None:
    rules = broker_rules(release, {"messageStorePlugIn": Setting(plug_in, "broker.conf")})
    sentences = kinds_of(listed(files), rules)
    assert len(sentences) == named and all("tiered" in sentence for sentence in sentences)


def test_a_broker_conf_that_is_silent_about_the_store_type_means_queues_in_files() -> None:
    listing = listed({"consumequeue/CURRENT": 16, "consumequeue/T/0/00000000000000000000": 20})
    assert kinds_of(listing, broker_rules(), conf=True) == [] and len(kinds_of(listing, broker_rules())) == 1


def test_queues_in_rocksdb_are_modelled_where_the_settings_name_them() -> None:
    rules = broker_rules(settings={"storeType": Setting("defaultRocksDB", "broker.conf")})
    assert kinds_of(listed({"consumequeue/CURRENT": 16, "consumequeue/000009.sst": 5}), rules) == []


def test_logs_of_other_dledger_nodes_are_named_beside_this_ones_own() -> None:
    own = {"dLegerSelfId": Setting("n1", "broker.conf"), "dLegerPeers": Setting("n1-127.0.0.1:20911", "broker.conf")}
    rules = broker_rules(settings=GROUP | own)
    names = [f"dledger-n{node}/data/{0:020d}" for node in range(3)]
    together = listed(dict.fromkeys(names, 8))
    assert kinds_of(together, rules) == [] and other_ledgers(together, rules) == ["dledger-n0", "dledger-n2"]
    foreign = listed({names[0]: 8})  # this node's own is not there
    assert kinds_of(foreign, rules) == other_ledgers(foreign, rules) == []  # its messages are a finding (`kinds.unread`)


def test_of_several_dledger_logs_without_a_broker_conf_nobody_knows_which_is_meant() -> None:
    inferred = {"enableDLegerCommitLog": Setting(True, "inferred")}
    listing = listing_of({f"dledger-n{node}/data/{0:020d}": 8 for node in range(2)})
    (sentence,) = kinds_of(listing, broker_rules(settings=inferred))
    assert sentence.startswith("dledger-n0, dledger-n1: logs of several DLedger nodes")


@pytest.mark.parametrize(("release", "log", "named"), [("5.5.0", "", 0), ("5.3.1", "", 1), ("5.5.0", log_path(0), 0)])
def test_keyed_queues_beside_a_ledger(release: str, log: str, named: int) -> None:
    rules = broker_rules(release, {**GROUP, "storeType": Setting("defaultRocksDB", "broker.conf")})
    files = {f"dledger-n0/data/{0:020d}": 8, **({log: 8} if log else {})}
    sentences = kinds_of(listing_of(files), rules, conf=True)
    assert len(sentences) == named and all("RocksDB" in sentence for sentence in sentences)
