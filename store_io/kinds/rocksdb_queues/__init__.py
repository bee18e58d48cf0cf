"""ConsumeQueues in RocksDB, alone or as a double write with files (rocksdb.md 1 to 8).

Ends of queues, keys and single entries are read by `log.entries`.

* `queue_pass`: one pass over a range of keys: which numbers each queue has, what no broker writes.
* `rocksdb_fold`: the fold over such a store, and over a DLedger log with such queues; `double_write_fold`: over a store with both
  kinds of queues.
* `double_write_compare`: queues in files and in RocksDB against each other.
* `rocksdb_queue_kind`: the kind; `rocksdb_queue_checks`: the checks.
* `rocksdb_queue_plan`: what a new store's database holds, also of a double write; `rocksdb_queue_rebuild`: the steps that
  make it; `database_task`: writes it.
"""
