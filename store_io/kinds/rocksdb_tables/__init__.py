"""Index and transactions in rocksdbstore/ (rocksdb.md 9, 10).

* `index_table`, `transaction_table`: their entries, read; `stored_marks`: how far these tables reach.
* `index_fingerprints`: the index entries of a segment's messages, as fingerprints and as bytes.
* `half_messages`: half messages and what marks them as done, as small rows.
* `table_tasks`: what a segment's messages leave in these tables.
* `hour_spans`: hours of messages with entries, and which of them retention can have removed.
* `table_view`: both sides together, and which stretches are to be looked at.
* `table_kind`: the kind; `rocksdb_tables`: the checks.
* `table_rebuild`: whether a new store's database is made anew, and what is copied; `table_rebuild_tasks`: writes it.
"""
