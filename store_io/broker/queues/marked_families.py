"""The tables of rocksdbstore/ whose reach a start asks for: those of the index and of transactions (rocksdb.md 10).

Source: CommitLog.isMappedFileMatchedRecover, DefaultMessageStore.recover, IndexRocksDBStore, TransMessageRocksDBStore:
isMappedFileMatchedRecover, getDispatchFromPhyOffset; MessageRocksDBStorage.getLastOffsetPy; read at 5.4.0 and 5.5.0.
"""

from __future__ import annotations

from schemas import rocksdb_layout as layout
from store_io.broker.releases import BrokerRules

FOLDER, MARK_KEY = layout.TABLES_FOLDER, layout.TABLE_MARK
INDEX_FAMILY, TRANSACTION_FAMILY = layout.INDEX_FAMILY, layout.TRANSACTION_FAMILY


def keeps_other_tables(rules: BrokerRules) -> bool:
    """Whether index or transactions are in rocksdbstore/."""
    return rules.knows_rocksdb and any(rules.value(name) for name in ("indexRocksDBEnable", "transRocksDBEnable"))


def marked_families(rules: BrokerRules) -> tuple[str, ...]:
    """The families of rocksdbstore/ without whose mark no recovery begins."""
    if not rules.knows_rocksdb:
        return ()
    found = [INDEX_FAMILY] if rules.value("indexRocksDBEnable") else []
    # 5.4.0 asks the transactions only where their messages are written to no other topic as well.
    if rules.value("transRocksDBEnable") and (rules.dispatches_from_marks or not rules.value("transWriteOriginTransHalfEnable")):
        found.append(TRANSACTION_FAMILY)
    return tuple(found)
