"""One segment's messages against the entries of the index files.

* `index_merge`: two streams in the log's order, step by step.
* `index_files`: where entries lie, and which of them belong to a segment.
* `odd_entries`: entries without a place, and what they lead to.
* `wrong_times`: entries whose time difference is wrong.
"""
