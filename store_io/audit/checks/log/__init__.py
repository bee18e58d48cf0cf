"""Checks of the CommitLog.

* `sequences`: queue offsets along the log.
* `lost_messages`: messages that an entry knows and the log lacks.
* `emptied`: a copy without its messages, or with fewer than an earlier audit saw.
"""
