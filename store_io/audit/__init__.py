"""The audit of one store.

* `audit_store`: rounds of tasks, and what follows from their results.
* `checks`: what is wrong, as findings.
* `log_map`, `queue_runs`, `queue_leftovers`: what lies at each offset; which messages a queue should have; entries without one.
* `loss`: which messages a start would lose.
* `planning`: the plan's steps and the verdict.
* `premises`, `written_by`, `other_kinds`: what the verdict assumes; which releases wrote the copy; kinds that are not modelled.
* `as_master`: what a copy lacks of its group, as a verdict.
* `audit_rows`: the audit as rows of the tables.
"""
