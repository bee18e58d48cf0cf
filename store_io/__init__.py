"""HOW bytes become rows. Pure Python, numpy, numba and pyarrow; no Spark.

Four modules open stores, only for reading (`source.local_folder`, `s3_folder`, `hdfs_folder`, `arrow_folder`); one other writes
new ones (`repair.writing.store_writer`).

Folders in the order in which bytes become a plan. Each imports only from those before it; a test knows the order.

* `base`: errors, ranges, checksums, Java's own arithmetic, tasks.
* `source`: the copy as files: the folders that open them, the listing, a bounded window.
* `rules`: what a broker of each release does.
* `formats`: one reader per kind of file.
* `scan`: one CommitLog segment in one pass, held against its queue and index entries.
* `wording`: facts become sentences.
* `audit`: one store: rounds of tasks, checks, what a start loses, the plan.
* `replicas`: copies of one log, compared.
* `explore`: messages for people: search, rows, one record explained, the broker's view.
* `repair`: a new store.
"""
