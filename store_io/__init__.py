"""HOW bytes become rows. Pure Python, numpy, numba and pyarrow; no Spark.

Four modules open stores, only for reading (`source.local_folder`, `s3_folder`, `hdfs_folder`, `arrow_folder`); one other writes
new ones (`repair.writing.store_writer`).

Folders in the order in which bytes become a plan. Each imports only from those before it; a test knows the order.

* `base`: errors, ranges, checksums, Java's own arithmetic, tasks.
* `source`: the copy as files: the folders that open them, the listing, a bounded window.
* `rocksdb`: databases of RocksDB, read by a process of their own.
* `broker`: what a broker of each release does.
* `log`: the CommitLog: its records, and one segment in one pass.
* `wording`: facts become sentences.
* `model`: what an audit knows of one copy.
* `kinds`: one room for each kind of files: reader, tasks, checks, rebuild.
* `first_day`: what a started broker does to a store by itself in its first day.
* `checks`: from evidence to findings: the checks that belong to no kind alone.
* `outcome`: what an audit says of one store: findings, what a start does, the decision, plan, rows of the tables.
* `audit`: one store: rounds of tasks, a fold between them, and its outcome.
* `replicas`: copies of one log, compared.
* `messages`: messages for people: search, rows, one record explained, the broker's view.
* `repair`: a new store.
* `answer`: the one answer about a copy, and what to do in which order.
"""
