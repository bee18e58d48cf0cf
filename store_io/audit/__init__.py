"""The audit of one store.

* `audit_store`: the audit as a machine that asks for tasks, and ends with an outcome; its parts are the following.
* `healing`: which single change makes a damaged record whole.
* `rounds`: which tasks next, and the fold between them.
* `checks`: from evidence to findings.
* `outcome`: findings, plan, verdict and rows of the tables.
* `compared`: several releases and settings, from one scan.
* `as_master`: what a copy lacks of its group, as a verdict.
"""
