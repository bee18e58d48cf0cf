"""The logs of compacted topics.

* `compacted_queues`: names and lengths -> the queues that load() opens, and why it refuses or leaves one out.
* `sparse_recovery`: the entries of the last files -> what recovery deletes.
* `log_messages`: a queue's messages in the CommitLog, by queue offset; those that a compacted log should hold and does not.
* `compacted_file`: one file of a log and its entries, as a task: records against entries, both against the CommitLog.
* `compaction_kind`: the kind, and what a start makes of all of it; `compacted_topics`: the checks.
* `unserved_topics`: topics of which consumers get nothing, as their compacted log is not there.
"""
