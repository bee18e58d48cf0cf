"""Databases of RocksDB inside a copy: read without leaving a byte in it, by a process that may die of what it reads.

* `private_folder`: a folder of our own in which the database's files are, as links or copies.
* `process`: how such a process is started, and how it ends.
* `child`: the program of that process: opens the folder and writes entries to a pipe; knows nothing of this project.
* `kept_open`: opened databases, which stay open for an audit's next reader.
* `database`: `Database`: starts the process, asks for ranges of keys, gets batches of columns, or a sentence why not.
* `queue_keys`: keys of ConsumeQueues, to and from queues and numbers.
* `queue_table`: the ends of all queues (family `offset`).
* `marks`: how far the other tables of a store in RocksDB reach.
* `timer_table`: entries of timers.
* `index_table`, `transaction_table`: entries of the index, and of transactions.
* `queue_pass`: one pass over a range of keys: which numbers each queue has, what no broker writes.
* `queue_ends`: single ends by key, where bad bytes hold others.
* `queue_entries`: entries by queue and number, also as a scan of the CommitLog asks for them.
"""
