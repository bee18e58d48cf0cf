"""What is wrong with a copy, as findings.

* `all_checks`: every check in one table, in the order in which they are made.
* `scan_findings`: what the tasks found while they read.
* `file_names`: names and lengths of files.
* `sequences`: queue offsets along the log.
* `queue_entries`: ConsumeQueue entries against messages.
* `lost_messages`: messages that an entry knows and the log lacks.
* `unindexed`: messages that no index file covers.
* `disputed`: messages that an entry contradicts.
* `checkpoint_times`: the checkpoint against the messages' times.
* `broker_start`: what a start would refuse, drop or leave behind.
* `emptied`: a copy without its messages, or with fewer than an earlier audit saw.
* `given_up`: what the repair that made this store could not keep.
* `live_copy`, `unwritten`: parts of a copy from different moments; zeros before messages.
* `size_misfits`: sizes in broker.conf that no file has.
* `unjudged`: what a start reads and this audit does not judge.
"""
