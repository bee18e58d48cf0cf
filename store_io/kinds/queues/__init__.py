"""ConsumeQueues in files (formats.md 3 to 5).

* `consumequeue_reader`: the files of a queue, and the tasks that read them.
* `queue_store`: a store's queues as a scan asks for them; what else another kind needs is listed there.
* `queue_probe`: each message's entry on disk.
* `queue_kind`: the kind; `queue_entries`: the checks.
* `queue_plan`: what each queue of a new store holds; `queue_places`: which position each message gets.
* `queue_files`: the files of the queues, made, kept or removed before entries are written.
"""
