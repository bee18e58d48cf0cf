"""Checks of what a broker derives from the CommitLog, against the messages.

* `queue_entries`: ConsumeQueue entries.
* `queue_database`: the database of ConsumeQueues in RocksDB as a whole.
* `queue_twins`: queues that are written twice, in files and in RocksDB.
* `rocksdb_tables`: index and transactions in RocksDB.
* `passed_over`: entries of transactions that a broker never reads.
* `unnamed_tables`: table files of these that no MANIFEST names.
* `unindexed`: messages that no index file covers.
* `disputed`: messages that an entry contradicts.
* `checkpoint_times`: the checkpoint.
"""
