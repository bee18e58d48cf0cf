"""The benchmark: ratios against reading and summing the same bytes.

* `run_bench`: the command.
* `measures`: what is measured.
* `store`: the store that is measured.
"""
