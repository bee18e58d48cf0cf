"""Where a repair writes.

* `writer`: what every writer of a new store can do.
* `store_writer`: the only module that writes a store.
* `trial_writer`: the same without a new store, for a dry run; `trial_source`: the store that such a run would have made, read.
"""
