"""The writers of a repair.

* `store_writer`: the only module that writes a store.
* `trial_writer`: the same without a new store, for a dry run, and the store that such a run would have made, read.
* `database_writer`: a database of ConsumeQueues, by RocksDB; `database_child`: the program of the process that does it.
"""
