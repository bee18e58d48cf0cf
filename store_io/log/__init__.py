"""The CommitLog.

* `records`: messages in a segment's bytes: the readable decoder and the fast one.
* `entries`: entries of ConsumeQueues by number, wherever these lie; messages against them.
* `scan`: one segment in one pass, held against its queue and index entries.
"""
