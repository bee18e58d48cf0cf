"""Copies of one broker's log, compared.

* `replica_groups`: which copies there are, what each lacks, which one is best.
* `replica_compare`: one segment against the others' bytes.
"""
