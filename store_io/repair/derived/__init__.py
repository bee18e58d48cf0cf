"""Queues, index and tables of a new store, rebuilt from its log if an audit blames them.

* `rebuild_round`: one round of it, over queues and index at once.
* `queue_plan`: what each queue of a new store holds; `queue_places`: which position each message gets.
* `rebuild_tasks`: the tasks that write queue and index entries, from what was kept or from messages.
* `kept_rows`: what an audit's scan keeps for a rebuild, and its form.
* `repair_offsets`: offsets of consumers and timers beyond the new ends of the queues, which their kinds find and set back.
"""
