"""The traces of messages in the tables of rocksdbstore/ (rocksdb.md 10).

* `index_prints`: prints of the index entries of a segment's messages.
* `index_entries`: those entries themselves, of a few messages.
* `half_messages`: half messages and what marks them as done, as small rows.
"""
