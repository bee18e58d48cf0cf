"""One room for each kind of files in a store: their reader, rules, tasks, checks and rebuild.

* `all_kinds`: the list of them, over which an audit goes; what a kind is says `store_io.model.kind`.
* `all_repairs`: their parts in a repair; what such a part is says `store_io.repair.kind_repair`.
* `queues`: ConsumeQueues in files: ordinary, batch, with extensions.
* `rocksdb_queues`: ConsumeQueues in RocksDB, alone or as a double write with files.
* `index`: the index files.
* `rocksdb_tables`: index and transactions in rocksdbstore/.
* `timers`: the timer log, its wheel and its checkpoint, and timers in rocksdbstore/.
* `transactions`: half messages that a started broker's first check looks at.
* `delays`: messages of delay levels, as entries and as messages.
* `checkpoint`: the store's checkpoint.
* `config`: the files below config/.
* `dledger`: the log of a DLedger group.
* `controller`: what controller mode keeps beside the store.
* `compaction`: the logs of compacted topics.
* `unread`: logs that a start does not read under the settings that were named.
* `tiered`: what the metadata of a tiered store claims.
"""
