"""Commands on runs of the past, which read tables and no store.

* `fleet`: `report`. `run_list`: `runs`. `difference`: `diff`. `coverage`: `coverage`.
"""
