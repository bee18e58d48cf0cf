"""The audit of one store.

* `audit_store`: the audit as a machine that asks for tasks, and ends with an outcome; its parts are the following.
* `open_copy`: the listing, the rules that apply, and what each kind of files says of itself.
* `rounds`: which tasks next, and the fold between them.
* `healing`: which single change makes a damaged record whole.
* `compared`: several releases and settings, from one scan.
"""
