"""Entries that lead into the log, for its scans and others: of ConsumeQueues, in files and in RocksDB, and of the index.

* `queues_in_files`: where these lie.
* `file_entries`: entries of queue files, by number.
* `queue_keys`, `stored_entries`: keys and entries of queues in RocksDB; `queue_table`: the ends of all of them.
* `queue_store`: the queues of a store, wherever they lie.
* `index_entries`: headers and entries of index files.
* `queue_probe`: a segment's messages against their entries.
"""
