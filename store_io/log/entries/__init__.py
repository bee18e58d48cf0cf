"""Entries of ConsumeQueues, as scans of the log and others read them: in files and in RocksDB.

* `file_entries`: entries of queue files, by number.
* `queue_keys`, `stored_entries`: keys and entries of queues in RocksDB.
* `queue_store`: the queues of a store, wherever they lie.
* `queue_probe`: a segment's messages against their entries.
"""
