"""Kinds of store that are recognised and not modelled: RocksDB ConsumeQueues, DLedger, tiered."""

from __future__ import annotations

import re

from schemas.rows import StoreFile
from schemas.store_names import QUEUES
from store_io.rules.releases import BrokerRules
from store_io.source.byte_source import folder_of
from store_io.source.store_dir import DLEDGER, StoreListing

TIERED_METADATA = "config/tieredStoreMetadata.json"
_ROCKSDB = re.compile(r"CURRENT|IDENTITY|MANIFEST-[0-9]+|OPTIONS-[0-9]+(\.dbtmp)?|.+\.sst")


def unmodelled(listing: StoreListing, rules: BrokerRules) -> list[str]:
    """A sentence for each kind of store that is recognised but not modelled: what a broker would do cannot be said then.

    The RocksDB beside the store that 5.4.0 always makes does not count.
    """
    found = []
    databases: dict[str, list[str]] = {}
    for entry in listing.files:
        if (
            entry.kind == "file"
            and entry.path.startswith(QUEUES)
            and entry.path.count("/") == 1
            and _ROCKSDB.fullmatch(_name(entry))
        ):
            databases.setdefault(folder_of(entry.path), []).append(_name(entry))
    for folder, names in databases.items():
        found.append(f"{folder}/ holds RocksDB files ({', '.join(names[:3])}): ConsumeQueues in RocksDB are not modelled")
    store_type = str(rules.value("storeType"))
    if store_type != "default" and rules.knows_store_type:  # earlier ones do not know the setting
        found.append(f"storeType={store_type}: only file ConsumeQueues (storeType=default) are modelled")
    for entry in listing.files:
        if "/" not in entry.path and DLEDGER.fullmatch(entry.path):
            found.append(f"{entry.path}/: a DLedger CommitLog, which is not modelled")
    if rules.value("enableDLegerCommitLog"):
        found.append("enableDLegerCommitLog=true: a DLedger CommitLog is not modelled")
    for setting in ("duplicationEnable", "recheckReputOffsetFromCq"):
        if rules.controller_mode and rules.value(setting):
            found.append(f"{setting}=true beside enableControllerMode=true: the two together are not modelled")
    if _size(listing, TIERED_METADATA):
        found.append(f"{TIERED_METADATA}: the broker moved messages to a tiered store, which is not modelled")
    return found


def _name(entry: StoreFile) -> str:
    return entry.path.rpartition("/")[2]


def _size(listing: StoreListing, path: str) -> int:
    entry = listing.get(path)
    return entry.size if entry is not None and entry.kind == "file" else 0
