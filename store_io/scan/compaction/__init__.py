"""The logs of compacted topics, read.

* `compacted_file`: one file of a log and its entries, as a task: records against entries, both against the CommitLog.
* `log_messages`: a queue's messages in the CommitLog, looked up by queue offset.
* `unput_messages`: messages of the CommitLog that a compacted log should hold and does not.
"""
