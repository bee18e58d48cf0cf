"""ConsumeQueues in the broker's memory, and where its settings put them.

* `queue_state`, `queue_pieces`: one ConsumeQueue in files: recover, truncate, put; `queue_minimum`: its minimum;
  `file_queues`: all of them; `queue_puts`: runs of segments -> entries of all queues.
* `rocksdb_queue_state`: one ConsumeQueue in RocksDB: what the database says of its ends, and what dispatch put.
* `multi_dispatch`: one message -> the light queues that it enters too.
* `combination`: the double write of queues, to files and RocksDB: settings, and refusals over them.
* `start_databases`: the databases that a start opens: that of the queues, that of index and transactions, and those of POP
  consumers and of ACL 2.0, which end the broker if they do not open.
"""
