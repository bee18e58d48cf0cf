"""The audit of one store.

* `audit_request`: what to audit, and how much of it.
* `audit_store`: the audit as a machine that asks for tasks, and ends with an outcome; its parts are the following.
* `opened_copy`: what listing, settings and small files say.
* `healing`: which single change makes a damaged record whole.
* `rounds`: which tasks next, and the fold between them.
* `evidence`: all that is known at one moment.
* `timer`: the timer store, and what a start makes of it.
* `tables`: index and transactions in RocksDB, from both sides.
* `facts`: what follows from several files of a copy.
* `checks`: from evidence to findings.
* `outcome`: findings, plan, verdict and rows of the tables.
* `compared`: several releases and settings, from one scan.
* `found_gaps`: why one audit is not complete.
* `log_map`, `queue_runs`, `queue_views`: what lies at each offset; which messages a queue has; entries against messages.
* `stored_queue_runs`: the same of too many runs for memory.
* `queue_leftovers`: entries that lead to no message of their queue.
* `epoch_starts`: which epochs of a replica in controller mode begin at no record.
* `loss`: which messages a start would lose.
* `premises`, `written_by`, `other_kinds`: what the verdict assumes; which releases wrote the copy; kinds that are not modelled.
* `as_master`: what a copy lacks of its group, as a verdict.
"""
