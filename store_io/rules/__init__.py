"""The rules of the BROKER, release by release. Pure functions of summaries; each cites its Java method.

* `releases`: release and settings -> the rule set that all others take as an argument.
* `settings`: values of broker.conf, what a release takes them for, and which of them harm.
* `message_verdict`, `header_faults`: one frame -> what the release's check says of it, and what the audit says.
* `config`: the files below config/: which the release reads, how, and without which of them it does not start.
* `multi_dispatch`: one message -> the light queues that it enters too.
* `index_keys`: one message -> the keys that it has in the index, and their hashes.
* `loading`: names and lengths -> the files that load() maps, or why it refuses; a queue's folder, topics like `../x` escaped.
* `queue_state`, `queue_pieces`: one ConsumeQueue in the broker's memory: recover, truncate, put; `queue_minimum`: its minimum;
  `file_queues`: all of them.
* `index_state`: the index files in the broker's memory.
* `compaction`: what a release does with the logs of compacted topics.
* `prediction`: the types of a fold: what was scanned, what it asks for, what the broker does.
* `start_segment`: where the recovery scan begins.
* `dispatch`, `queue_puts`: runs of segments -> entries of queues and index.
* `controller`: what controller mode adds: confirmOffset, epochs, elections.
* `dledger`: a log kept by DLedger: its own recovery, and the fold of a broker with one.
* `rocksdb`: stores whose ConsumeQueues are in RocksDB: where, their ends, their own form of the fold.
* `recovery`: the fold itself, summaries -> cut, states after load and after dispatch.
* `timer`: recovery of the timer store, and which timer messages are delivered after it.
"""
