"""Index and transactions in RocksDB against the CommitLog (rocksdb.md 10).

* `table_tasks`: what a segment's messages leave in these tables; stretches of the log whose index differs, entry by entry.
* `hour_spans`: hours of messages with entries, and which of them retention can have removed.
* `table_view`: both sides together, and which stretches are to be looked at.
"""
