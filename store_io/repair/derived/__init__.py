"""The files that a new store derives from its log: queues, index and checkpoint, rebuilt if an audit blames them.

* `rebuild_round`: one round of it, over queues and index at once.
* `queue_plan`: what each queue holds; `queue_places`: which position each message gets.
* `queue_files`: the files of the queues, made, kept or removed before entries are written.
* `index_plan`: the names and sizes of the index files; `index_link`: their slots and chains.
* `keyed_rebuild`: the database of queues in RocksDB; `keyed_plan`: what it holds of each queue; `database_task`: writes it.
* `twin_plan`: the same of queues that are written twice.
* `kept_rows`: what an audit's scan keeps for a rebuild; `entry_rows`: its form.
* `rebuild_tasks`: the tasks that write queue and index entries, from what was kept or from messages.
* `checkpoint`: the checkpoint.
* `epochs`: the epoch file of a replica in controller mode.
* `timers`: the timer's files; `waiting_timers`: the messages that they lead to.
"""
