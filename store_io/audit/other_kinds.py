"""Kinds of store that are recognised and not modelled: some kinds together, logs of other DLedger nodes, the tiered plug-in."""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas.store_names import COMMITLOG, QUEUES, TIERED_METADATA
from store_io.rules.dledger.ledger_files import ledger_folder, ledger_folders
from store_io.rules.releases import ROCKSDB_STORE_TYPE, BrokerRules
from store_io.rules.rocksdb.combination import combination_refusal, reads_rocksdb
from store_io.rules.rocksdb.marks import keeps_other_tables
from store_io.source.byte_source import folder_of, name_of
from store_io.source.store_dir import StoreListing

_ROCKSDB = re.compile(r"CURRENT|IDENTITY|MANIFEST-[0-9]+|OPTIONS-[0-9]+(\.dbtmp)?|.+\.sst")


def unmodelled(listing: StoreListing, rules: BrokerRules, conf: bool = False) -> list[str]:
    """A sentence for each kind of store that is recognised but not modelled: what a broker would do cannot be said then.

    conf: whether a broker.conf was named; one that is silent means the default.
    The RocksDB beside the store that 5.4.0 always makes does not count.
    """
    found: list[str] = []
    databases: dict[str, list[str]] = {}
    for entry in listing.files:
        if (
            entry.kind == "file"
            and entry.path.startswith(QUEUES)
            and entry.path.count("/") == 1
            and _ROCKSDB.fullmatch(name_of(entry.path))
        ):
            databases.setdefault(folder_of(entry.path), []).append(name_of(entry.path))
    if rules.combined_queues:
        found += _beside_combined(rules)
    # With queues in files a broker reads such a database only as a part of a combined store, or without having been named.
    kind = rules.settings["storeType"]
    named = kind.value == "default" and (conf or bool(rules.value("rocksdbCQDoubleWriteEnable")))
    for folder, names in databases.items() if not rules.rocksdb_queues and not named else ():
        found.append(
            f"{folder}/ holds RocksDB files ({', '.join(names[:3])}): ConsumeQueues in RocksDB are modelled with"
            f" storeType={ROCKSDB_STORE_TYPE} alone"
        )
    store_type = str(rules.value("storeType"))
    if (
        store_type.lower() not in ("default", ROCKSDB_STORE_TYPE.lower()) and rules.knows_store_type
    ):  # earlier ones do not know the setting
        found.append(f"storeType={store_type}: only default and {ROCKSDB_STORE_TYPE} are modelled")
    found += _ledgers(listing, rules)
    found += _beside_controller_mode(rules)
    if rules.value("recheckReputOffsetFromCq") and reads_rocksdb(rules) and not rules.value("enableDLegerCommitLog"):
        found.append(
            "recheckReputOffsetFromCq=true with ConsumeQueues that are read in RocksDB: where a start begins to dispatch again"
            " depends on which queues the broker's services ask for before it, which is not modelled"
        )
    found += _beyond_confirmed(rules)
    if rules.tiered and _size(listing, TIERED_METADATA):
        found.append(
            f"{TIERED_METADATA}: load() opens a tiered store, too (messageStorePlugIn), and whether it can is not modelled"
        )
    return found


def other_ledgers(listing: StoreListing, rules: BrokerRules) -> list[str]:
    """The folders with logs of other DLedger nodes beside this one's own: no start of this node reads them."""
    folders, own = ledger_folders(listing.files, with_data=True), ledger_folder(rules)
    return [folder for folder in folders if folder != own] if own in folders else []


def _beside_controller_mode(rules: BrokerRules) -> Iterable[str]:
    """What is not modelled together with controller mode."""
    if rules.controller_mode and rules.value("duplicationEnable"):
        yield (
            "duplicationEnable=true beside enableControllerMode=true: such a broker has no replication service, so it never"
            " becomes master or slave, and serves nobody; set duplicationEnable=false; what a start does with it is not modelled"
        )
    if rules.controller_mode and rules.value("recheckReputOffsetFromCq") and not rules.controlled:
        yield "recheckReputOffsetFromCq=true beside enableControllerMode=true: the two together are not modelled before 5.1.1"


def _beyond_confirmed(rules: BrokerRules) -> Iterable[str]:
    """What readUnCommitted dispatches and is not modelled. Without controller mode and duplicationEnable it changes nothing."""
    if not rules.reads_uncommitted:
        return
    if rules.combined_queues and rules.waits_for_confirm:
        yield (
            "readUnCommitted=true beside rocksdbCQDoubleWriteEnable=true: start() compares the ends of both kinds of queues while"
            " messages beyond confirmOffset are put into them, which is not modelled"
        )
    if rules.rocksdb_queues and rules.value("duplicationEnable"):
        yield "readUnCommitted=true and duplicationEnable=true with ConsumeQueues in RocksDB: not modelled"


def _beside_combined(rules: BrokerRules) -> Iterable[str]:
    """What is not modelled together with queues in files and in RocksDB."""
    together = "rocksdbCQDoubleWriteEnable=true: the two together are not modelled"
    if rules.value("enableDLegerCommitLog"):
        yield f"enableDLegerCommitLog=true beside {together}"
    if rules.value("duplicationEnable") and rules.value("recheckReputOffsetFromCq"):
        yield f"duplicationEnable=true and recheckReputOffsetFromCq=true beside {together}"
    if rules.value("rocksdbCQSelectiveDoubleWriteEnable") and not combination_refusal(rules):
        yield "rocksdbCQSelectiveDoubleWriteEnable=true: that topics of type LITE alone are in RocksDB is not modelled"


def _ledgers(listing: StoreListing, rules: BrokerRules) -> Iterable[str]:
    """What of DLedger's logs in this copy cannot be judged."""
    folders, own = ledger_folders(listing.files, with_data=True), ledger_folder(rules)
    if not rules.value("enableDLegerCommitLog"):
        for folder in folders:
            yield f"{folder}/: a DLedger CommitLog, although broker.conf says enableDLegerCommitLog=false: it was not read"
        return
    if rules.controller_mode:
        yield "enableDLegerCommitLog=true and enableControllerMode=true: a broker refuses both together"
    if not own and folders:
        yield f"{', '.join(folders)}: logs of several DLedger nodes; name with dLegerSelfId in broker.conf whose is meant"
    elif not own:
        yield "enableDLegerCommitLog=true: without dLegerSelfId in broker.conf nobody knows which DLedger log is meant"
    elif own not in folders:  # beside the node's own log the others are only named (`other_ledgers`)
        for folder in folders:
            yield f"{folder}/: the log of another DLedger node, which was not read"
    path = str(rules.value("storePathDLedgerCommitLog"))
    if path and rules.ledger_data_path and own in folders and "," in path:
        yield f"storePathDLedgerCommitLog={path}: data files outside of the node's own folder are not read"
    if rules.rocksdb_queues and not rules.flushes_after_unclean_exit:
        yield "ConsumeQueues in RocksDB beside a DLedger CommitLog: not modelled before 5.3.2"
    if any(e.kind == "file" and e.size and e.path.startswith(f"{COMMITLOG}/") for e in listing.files):
        if keeps_other_tables(rules):
            yield f"{COMMITLOG}/: a log from before DLedger, with index or transactions in rocksdbstore/: not modelled"
    for setting in ("duplicationEnable", "recheckReputOffsetFromCq") if rules.rocksdb_queues else ():
        if rules.value(setting):
            yield f"{setting}=true beside a DLedger CommitLog and ConsumeQueues in RocksDB: not modelled"


def _size(listing: StoreListing, path: str) -> int:
    entry = listing.get(path)
    return entry.size if entry is not None and entry.kind == "file" else 0
