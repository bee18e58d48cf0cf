"""What a new store derives from its log: queues, index and checkpoint, made anew where an audit blames them.

* `rebuild_round`: one round of it, over queues and index at once.
* `repair_queues`: what each queue holds.
* `queue_files`: the files of the queues, made, kept or gone before entries are written.
* `repair_index`: the names and sizes of the index files, and their chains.
* `rebuild`: the tasks that write queue and index entries from messages.
* `repair_checkpoint`: the checkpoint.
"""
