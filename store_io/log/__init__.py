"""The CommitLog.

* `records`: messages in a segment's bytes: the readable decoder and the fast one.
* `scan`: one segment in one pass, held against its queue and index entries.
"""
