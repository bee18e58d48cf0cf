"""What an audit knows of one copy.

* `audit_request`: what to audit, and how much of it.
* `opened_copy`: what listing, settings and small files say; `other_kinds`: kinds of store that are not modelled.
* `evidence`: all that is known at one moment; `gaps`: why it is not all.
* `log_map`: what lies at each offset of the log.
* `queue_runs`, `queue_views`: which messages a queue has; entries against messages; `stored_queue_runs`: runs too many for memory.
* `queue_leftovers`: entries that lead to no message of their queue.
* `loss`: which messages a start would lose.
* `earlier_segments`: what an earlier run says of segments that are unchanged.
* `premises`, `written_by`: what the verdict assumes; which releases can have written the copy.
* `facts`: what follows from several of these.
"""
