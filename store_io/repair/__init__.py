"""A new store from a damaged copy. The copy is never written to.

* `repair_store`: the repair, step by step, and its report.
* `repair_plan`: plan.json, read back and held against the copy.
* `repair_copy`, `repair_log`, `repair_queues`, `repair_offsets`: the parts of a store.
* `rebuild`: queue and index entries from messages.
* `donor`: damaged bytes taken from another copy.
* `store_writer`: the only module that writes a store; `trial_writer`: the same without writing, for a dry run.
"""
