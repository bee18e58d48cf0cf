"""The checks of a copy that belong to no kind alone: each returns findings.

* `all_checks`: all checks in their order, with those of the kinds' rooms; what tasks found while they read.
* `file_names`: names and lengths of files.
* `joined_files`: segments of two brokers in one folder, or put together of smaller ones.
* `lost_messages`, `sequences`, `emptied`: messages that the log lacks; queue offsets along the log; copies without messages.
* `changed_bytes`: segments with other bytes than an earlier audit read under the same modification time.
* `missing_messages`: how many messages a copy shows and does not hold.
* `disputed`: messages that findings on derived data blame.
* `broker_start`: what a start would refuse, drop or leave without an entry.
* `repaired_store`: what the repair that made this store could not keep.
"""
