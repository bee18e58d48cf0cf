"""The database rocksdbstore/ of a new store (rocksdb.md 10).

* `table_rebuild`: whether it is made anew, and what of it is copied.
* `table_tasks`: reads segments for it, and writes it.
"""
