"""The outcome of an audit, from its evidence and findings.

* `store_outcome`: all results of one store, the exit code among them; how much was not read, and why.
* `safety`: whether the copy is safe to start, the one decision, and what it lacks of its group.
* `copy_whole`: what shows that the copy is not all that its broker had.
* `final_findings`: each finding with all that the catalogue says, in a stable order.
* `release_leaves`: what a start leaves of each file, `steps` of plan.json.
* `plan_writer`: the outcome as plan.json has it.
* `plan_inputs`: every file that the plan depends on.
* `audit_rows`: the audit as rows of the tables.
* `segments_read`: rows of `segments` as values again, for those who say what is in them.
"""
