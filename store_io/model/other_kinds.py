"""Kinds of store that are recognised and not modelled: some kinds together, logs of other DLedger nodes, the tiered plug-in."""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas.advice import Cause, Gap
from schemas.layouts.store_names import COMMITLOG, QUEUES
from store_io.broker.queues.combination import combination_refusal, reads_rocksdb
from store_io.broker.queues.start_databases import keeps_other_tables
from store_io.broker.releases import ROCKSDB_STORE_TYPE, BrokerRules
from store_io.broker.settings.ledger_files import ledger_folder, ledger_folders, settings_refusal
from store_io.source.byte_source import folder_of, name_of
from store_io.source.store_dir import StoreListing

_ROCKSDB = re.compile(r"CURRENT|IDENTITY|MANIFEST-[0-9]+|OPTIONS-[0-9]+(\.dbtmp)?|.+\.sst")


def unmodelled(listing: StoreListing, rules: BrokerRules, conf: bool = False) -> list[Gap]:
    """Return a gap for each kind of store that is recognised but not modelled. The effect of a start is then not known.

    conf: a broker.conf was named; one that is silent means the default.
    The RocksDB beside the store that 5.4.0 always makes does not count.
    """
    found: list[Gap] = []
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
        found.append(Gap(Cause.ROCKSDB_BESIDE_FILES, folder, (", ".join(names[:3]),)))
    store_type = str(rules.value("storeType"))
    if (
        store_type.lower() not in ("default", ROCKSDB_STORE_TYPE.lower()) and rules.knows_store_type
    ):  # earlier ones do not know the setting
        found.append(Gap(Cause.STORE_TYPE, values=(store_type,)))
    found += _ledgers(listing, rules)
    found += _beside_controller_mode(rules)
    if rules.value("recheckReputOffsetFromCq") and reads_rocksdb(rules) and not rules.value("enableDLegerCommitLog"):
        found.append(Gap(Cause.ROCKSDB_RECHECK))
    found += _beyond_confirmed(rules)
    if rules.tiered:
        found.append(Gap(Cause.TIERED))
    return found


def other_ledgers(listing: StoreListing, rules: BrokerRules) -> list[str]:
    """Return the folders with logs of other DLedger nodes beside this one's own: no start of this node reads them."""
    folders, own = ledger_folders(listing.files, with_data=True), ledger_folder(rules)
    return [folder for folder in folders if folder != own] if own in folders else []


def _beside_controller_mode(rules: BrokerRules) -> Iterable[Gap]:
    """Yield gaps of settings that are not modelled together with controller mode."""
    if rules.controller_mode and rules.value("duplicationEnable"):
        yield Gap(Cause.CONTROLLER_DUPLICATION)
    if rules.controller_mode and rules.value("recheckReputOffsetFromCq") and not rules.controlled:
        yield Gap(Cause.CONTROLLER_RECHECK)


def _beyond_confirmed(rules: BrokerRules) -> Iterable[Gap]:
    """Yield gaps of dispatch by readUnCommitted that is not modelled.

    Without controller mode and duplicationEnable it changes nothing.
    """
    if not rules.reads_uncommitted:
        return
    if rules.combined_queues and rules.waits_for_confirm:
        yield Gap(Cause.DOUBLE_WRITE_UNCOMMITTED)
    if rules.rocksdb_queues and rules.value("duplicationEnable"):
        yield Gap(Cause.UNCOMMITTED_DUPLICATION)


def _beside_combined(rules: BrokerRules) -> Iterable[Gap]:
    """Yield gaps of settings that are not modelled together with queues in files and in RocksDB."""
    if rules.value("enableDLegerCommitLog"):
        yield Gap(Cause.DOUBLE_WRITE_LEDGER)
    if rules.value("duplicationEnable") and rules.value("recheckReputOffsetFromCq"):
        yield Gap(Cause.DOUBLE_WRITE_RECHECK)
    if rules.value("rocksdbCQSelectiveDoubleWriteEnable") and not combination_refusal(rules):
        yield Gap(Cause.DOUBLE_WRITE_SELECTIVE)


def _ledgers(listing: StoreListing, rules: BrokerRules) -> Iterable[Gap]:
    """Yield gaps of DLedger's logs in this copy that cannot be judged."""
    folders, own = ledger_folders(listing.files, with_data=True), ledger_folder(rules)
    if not rules.value("enableDLegerCommitLog") or settings_refusal(rules):
        return
    if rules.controller_mode:
        yield Gap(Cause.CONTROLLER_LEDGER)
    if not own:
        yield Gap(Cause.LEDGER_SEVERAL, values=(", ".join(folders),))
    path = str(rules.value("storePathDLedgerCommitLog"))
    if path and rules.ledger_data_path and own in folders and "," in path:
        yield Gap(Cause.LEDGER_DATA_PATHS, values=(path,))
    if rules.rocksdb_queues and not rules.flushes_after_unclean_exit:
        yield Gap(Cause.LEDGER_ROCKSDB)
    if any(e.kind == "file" and e.size and e.path.startswith(f"{COMMITLOG}/") for e in listing.files):
        if keeps_other_tables(rules):
            yield Gap(Cause.LEDGER_OLD_LOG, COMMITLOG)
    for setting in ("duplicationEnable", "recheckReputOffsetFromCq") if rules.rocksdb_queues else ():
        if rules.value(setting):
            yield Gap(Cause.LEDGER_SETTING, values=(setting,))
