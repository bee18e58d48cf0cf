"""What an audit knows of one copy.

* `kind`: the protocol of a kind of files: what an audit asks of each, in the order of its rounds.
* `audit_request`: what to audit, and how much of it.
* `opened_copy`: what listing, settings and small files say; `other_kinds`: kinds of store that are not modelled.
* `evidence`: all that is known at one moment; `found_gaps`: why it is not all. `start_moment`: when a broker is started on it.
* `log_map`: what lies at each offset of the log.
* `queue_runs`, `queue_views`: which messages a queue has; entries against messages.
* `queue_leftovers`: entries that lead to no message of their queue; `lost_entries`: those whose messages are lost.
* `loss`: which messages a start would lose.
* `earlier_segments`: what an earlier run says of segments that are unchanged.
* `premises`, `written_by`: what the verdict assumes; which releases can have written the copy.
* `facts`: what follows from several of these.
"""
