"""In which folder a broker keeps its queues' database, and when it refuses because of that folder.

Source: RocksDBConsumeQueueStore's constructor, MessageStoreConfig.isUseSeparateStorePathForRocksdbCQ: 5.5.0 as its broker behaves
(rocksdb.md 1).
"""

from __future__ import annotations

from schemas import rocksdb_layout as layout
from schemas.advice import Refusal, RefusalKind
from store_io.broker.loading import Tree
from store_io.broker.releases import BrokerRules


def database_folder(rules: BrokerRules) -> str:
    """The folder, below the store root, of the database with the ConsumeQueues."""
    return layout.SEPARATE_FOLDER if rules.separate_rocksdb_folder else layout.FOLDER


def folder_refusal(tree: Tree, rules: BrokerRules) -> Refusal | None:
    """Why the broker cannot be made: a database lies in the other one of the two folders."""
    if not rules.knows_separate_folder:
        return None
    other = layout.FOLDER if rules.separate_rocksdb_folder else layout.SEPARATE_FOLDER
    path = f"{other}/{layout.CURRENT}"
    if not tree.exists(path):
        return None
    setting = "true" if rules.separate_rocksdb_folder else "false"
    return Refusal(RefusalKind.QUEUE_DATABASE_ELSEWHERE, path, setting)
