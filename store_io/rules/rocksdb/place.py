"""In which folder a broker keeps its queues' database, and when it refuses because of that folder.

Source: RocksDBConsumeQueueStore's constructor, MessageStoreConfig.isUseSeparateStorePathForRocksdbCQ: 5.5.0 as its broker behaves
(rocksdb.md 1).
"""

from __future__ import annotations

from schemas import rocksdb_layout as layout
from store_io.rules.loading import Tree
from store_io.rules.releases import BrokerRules


def database_folder(rules: BrokerRules) -> str:
    """The folder, below the store root, of the database with the ConsumeQueues."""
    return layout.SEPARATE_FOLDER if rules.separate_rocksdb_folder else layout.FOLDER


def folder_refusal(tree: Tree, rules: BrokerRules) -> str:
    """Why the broker cannot be made: a database lies in the other one of the two folders; "" if none does."""
    if not rules.knows_separate_folder:
        return ""
    other = layout.FOLDER if rules.separate_rocksdb_folder else layout.SEPARATE_FOLDER
    path = f"{other}/{layout.CURRENT}"
    if not tree.exists(path):
        return ""
    setting = "true" if rules.separate_rocksdb_folder else "false"
    return f"{path}: a database where useSeparateStorePathForRocksdbCQ={setting} expects none"
