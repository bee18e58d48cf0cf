"""ConsumeQueues in the broker's memory, and where its settings put them.

* `queue_state`, `queue_pieces`: one ConsumeQueue in files: recover, truncate, put; `queue_minimum`: its minimum;
  `file_queues`: all of them; `queue_puts`: runs of segments -> entries of all queues.
* `rocksdb_queue_state`: one ConsumeQueue in RocksDB: maximum, minimum, what dispatch put.
* `multi_dispatch`: one message -> the light queues that it enters too.
* `place`: in which folder the queues' database is, and with which folders a broker refuses.
* `combination`: queues that are written twice, in files and in RocksDB: settings, and refusals over them.
* `marked_families`: whose reach in rocksdbstore/ a start asks for: index and transactions.
* `opened`: databases of POP consumers and of ACL 2.0, which end the broker if they do not open.
"""
