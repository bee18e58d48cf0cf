"""ConsumeQueues in files (formats.md 3 to 5).

* `consumequeue_reader`: the files of a queue, and the tasks that read them; single entries are read by `log.entries`.
* `queue_kind`: the kind; `queue_entries`: the checks; `queue_names`: names and lengths of files.
* `queue_rebuild`: the files of the queues, made, kept or removed before entries are written.
"""
