"""The databases of RocksDB that a start opens: that of the queues, that of index and transactions, and others that may end it.

Source: RocksDBConsumeQueueStore's constructor, MessageStoreConfig.isUseSeparateStorePathForRocksdbCQ: 5.5.0 as its broker behaves
(rocksdb.md 1). CommitLog.isMappedFileMatchedRecover, DefaultMessageStore.recover, IndexRocksDBStore, TransMessageRocksDBStore:
isMappedFileMatchedRecover, getDispatchFromPhyOffset; MessageRocksDBStorage.getLastOffsetPy; 5.4.0 and 5.5.0
(rocksdb.md 10). PopConsumerService.start, PopConsumerRocksdbStore.postLoad (5.3.2 to 5.5.1); LocalAuthenticationMetadataProvider
and LocalAuthorizationMetadataProvider.initialize, ConfigRocksDBStorage.postLoad, BrokerController's constructor (5.3.0 to 5.5.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from schemas.advice import Refusal, RefusalKind
from schemas.layouts import rocksdb_layout as layout
from schemas.layouts.rocksdb_layout import INDEX_FAMILY as DEFAULT_FAMILY
from schemas.layouts.store_names import ACLS, POP_RECORDS, USERS
from store_io.broker.loading import Tree
from store_io.broker.releases import BrokerRules
from store_io.broker.settings.config_rules import config_rules

FOLDER, MARK_KEY = layout.TABLES_FOLDER, layout.TABLE_MARK
INDEX_FAMILY, TRANSACTION_FAMILY = layout.INDEX_FAMILY, layout.TRANSACTION_FAMILY
_AUTH_PROVIDERS = {USERS: "authenticationMetadataProvider", ACLS: "authorizationMetadataProvider"}
_LOCAL = "org.apache.rocketmq.auth.{}.provider.Local{}MetadataProvider"
_LOCAL_PROVIDERS = {
    USERS: _LOCAL.format("authentication", "Authentication"),
    ACLS: _LOCAL.format("authorization", "Authorization"),
}
_POP_STATE = "popState"
_ENTRIES = {POP_RECORDS: "messages that consumers popped and did not acknowledge", USERS: "users", ACLS: "access rules"}


def database_folder(rules: BrokerRules) -> str:
    """Return the folder, below the store root, of the database with the ConsumeQueues."""
    return layout.SEPARATE_FOLDER if rules.separate_rocksdb_folder else layout.FOLDER


def folder_refusal(tree: Tree, rules: BrokerRules) -> Refusal | None:
    """Return why the broker cannot be made: a database lies in the other one of the two folders."""
    if not rules.knows_separate_folder:
        return None
    other = layout.FOLDER if rules.separate_rocksdb_folder else layout.SEPARATE_FOLDER
    path = f"{other}/{layout.CURRENT}"
    if not tree.exists(path):
        return None
    setting = "true" if rules.separate_rocksdb_folder else "false"
    return Refusal(RefusalKind.QUEUE_DATABASE_ELSEWHERE, path, setting)


def keeps_other_tables(rules: BrokerRules) -> bool:
    """Say whether index or transactions are in rocksdbstore/."""
    return rules.knows_rocksdb and any(rules.value(name) for name in ("indexRocksDBEnable", "transRocksDBEnable"))


def marked_families(rules: BrokerRules) -> tuple[str, ...]:
    """Return the families of rocksdbstore/ without whose mark no recovery begins."""
    if not rules.knows_rocksdb:
        return ()
    found = [INDEX_FAMILY] if rules.value("indexRocksDBEnable") else []
    # 5.4.0 asks the transactions only where their messages are written to no other topic as well.
    if rules.value("transRocksDBEnable") and (rules.dispatches_from_marks or not rules.value("transWriteOriginTransHalfEnable")):
        found.append(TRANSACTION_FAMILY)
    return tuple(found)


@dataclass(frozen=True)
class OpenedDatabase:
    """One database that the release can open.

    folder: below the store's root.
    key, value: the setting with which a start opens the database.
    opens: whether these settings do.
    entries: what an entry is, in the plural.
    family: the family with the entries.
    families: those that the release names, so that it opens no database with others; () if it opens any.
    skips_bad_log: bad records of the write-ahead log are left out.
    late: the database is opened after recovery, which has already cut the store when the broker ends.
    """

    folder: str
    key: str
    value: str | bool
    opens: bool
    entries: str
    family: str
    families: tuple[str, ...]
    skips_bad_log: bool
    late: bool

    @property
    def setting(self) -> str:
        """Return the line of broker.conf."""
        return f"{self.key}={str(self.value).lower() if isinstance(self.value, bool) else self.value}"


def opened_databases(rules: BrokerRules) -> list[OpenedDatabase]:
    """Return the databases that the release knows, in the order in which a start opens them."""
    found = []
    own = config_rules(rules)
    if rules.knows_auth_databases:
        versions = ("kvDataVersion", "forbidden") if own.imports_files else ()
        families = () if own.knows_single_database else (DEFAULT_FAMILY, *versions)
        for folder, key in _AUTH_PROVIDERS.items():
            value = _LOCAL_PROVIDERS[folder]
            opens = str(rules.value(key)).strip() == value
            found.append(OpenedDatabase(folder, key, value, opens, _ENTRIES[folder], DEFAULT_FAMILY, families, True, late=False))
    if rules.knows_pop_database:
        key, families = "popConsumerKVServiceInit", (DEFAULT_FAMILY, _POP_STATE)
        opens = bool(rules.value(key))
        found.append(OpenedDatabase(POP_RECORDS, key, True, opens, _ENTRIES[POP_RECORDS], _POP_STATE, families, False, late=True))
    return found
