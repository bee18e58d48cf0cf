"""The writers of a repair.

* `store_writer`: the only module that writes a store; `flushed`: what of it is on the disk already.
* `trial_writer`: the same without a new store, for a dry run; `trial_source`: the store that such a run would have made, read.
* `database_writer`: a database of ConsumeQueues, by RocksDB; `database_child`: the program of the process that does it.
"""
