"""What is wrong with a copy, as findings.

* `all_checks`: every check in one table, in the order in which they are made.
* `scan_findings`: what the tasks found while they read.
* `file_names`: names and lengths of files.
* `log`: the CommitLog, and copies without their messages.
* `derived`: what a broker derives from the CommitLog, against the messages: queues, index, checkpoint.
* `start`: what a start would do, and what it reads besides.
* `repaired_store`: what the repair that made this store could not keep.
"""
