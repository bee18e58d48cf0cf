"""The checks of a copy: each returns findings.

* `all_checks`: the checks over one copy's evidence in one table, and where other findings come from.
* `scan_findings`: what the tasks found while they read.
* `file_names`: names and lengths of files.
* `log`: the CommitLog, and copies without their messages.
* `derived`: what a broker derives from the CommitLog, against the messages: queues, index, checkpoint.
* `compaction`: the logs of compacted topics.
* `controller`: the epoch file of controller mode.
* `timer`: the timer store against the messages.
* `dledger`: a DLedger group's files against each other.
* `config`: what the files of config/ lack of what the rest of the copy shows.
* `broker_start`: what a start would refuse, drop or leave without an entry.
* `tiered_store`: what the metadata of a tiered store claims.
* `repaired_store`: what the repair that made this store could not keep.
"""
