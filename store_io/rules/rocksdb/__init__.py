"""The rules of brokers with ConsumeQueues in RocksDB: load, recovery, truncation, minimum (rocksdb.md 3 to 5).

* `place`: in which folder the database is, and with which folders a broker refuses.
* `stored`: what the database says of its queues' ends, as rules take it.
* `queue`: one queue in the broker's memory: maximum, minimum, what dispatch put.
* `puts`: runs of segments -> entries, for all queues at once.
* `recovery`: the fold over a store of this kind.
* `marks`: how far index and transactions in RocksDB reach, as a start asks.
* `combination`: of queues that are written twice, in files and in RocksDB: settings, and refusals over them.
* `combined`: the fold over a store with both.
* `opened`: databases of POP consumers and of ACL 2.0, which end the broker if they do not open.
* `ledger`: the fold over a DLedger log with such queues (dledger.md 8).
"""
