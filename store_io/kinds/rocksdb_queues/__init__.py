"""ConsumeQueues in RocksDB, alone or written twice (rocksdb.md 1 to 8).

* `queue_keys`: keys of ConsumeQueues, to and from queues and numbers.
* `queue_table`: the ends of all queues (family `offset`); `queue_ends`: single ends by key, if bad bytes hold others.
* `stored_marks`: how far the other tables of rocksdbstore/ reach.
* `queue_pass`: one pass over a range of keys: which numbers each queue has, what no broker writes.
* `stored_entries`: entries by queue and number, also as a scan of the CommitLog asks for them.
* `stored_queue`: what the database says of its queues' ends, as rules take it; `rocksdb_puts`: runs of segments -> entries.
* `rocksdb_fold`: the fold over such a store; `double_write_fold`: over a store with both kinds of queues;
  `ledger_queues_fold`: over a DLedger log with such queues.
* `double_write_compare`: queues in files and in RocksDB against each other.
* `queue_database`, `double_write_findings`: the checks.
* `rocksdb_queue_plan`, `double_write_plan`: what a new store's database holds; `rocksdb_queue_rebuild`: the steps that make it;
  `database_task`: writes it.
"""
