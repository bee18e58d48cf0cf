"""The logs of compacted topics.

* `compacted_queues`: names and lengths -> the queues that load() opens, and why it refuses or leaves one out.
* `sparse_recovery`: the entries of the last files -> what recovery deletes; `compacted_start`: what a start makes of all of it.
* `compacted_file`: one file of a log and its entries, as a task: records against entries, both against the CommitLog.
* `log_messages`: a queue's messages in the CommitLog, looked up by queue offset.
* `unput_messages`: messages of the CommitLog that a compacted log should hold and does not.
* `compacted_topics`: the check.
"""
