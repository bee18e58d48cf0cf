"""Checks of the CommitLog.

* `sequences`: queue offsets along the log.
* `lost_messages`: messages that an entry knows and the log lacks.
* `unwritten`: zeros before messages.
* `live_copy`: parts of a copy from different moments.
* `emptied`: a copy without its messages, or with fewer than an earlier audit saw.
"""
