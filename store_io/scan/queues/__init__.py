"""Each message's queues, and its entries there.

* `batch_items`: a row for each queue that a message enters.
* `queue_probe`: each message's queue entry on disk.
* `twin_queues`: queues that are written twice, in files and in RocksDB, against each other.
"""
