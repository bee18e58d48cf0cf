"""The index files (formats.md 6).

* `index_reader`: headers, entries and the task that reads a file; `index_chains`: slots and links.
* `index_merge`: keys of a segment's messages against the entries, in the log's order, step by step.
* `odd_entries`: entries without a place, and what they lead to; entries whose time difference is wrong.
* `index_kind`: the kind; `unindexed`: the check: messages that no index file covers.
* `index_rebuild`: a new store's index files: names, sizes, slots and chains.
"""
