"""One reader per kind of file.

* `commitlog`: messages: the readable decoder and the fast one.
* `consumequeue_reader`, `index_reader`, `checkpoint_reader`, `config_reader`: the other files of a store.
* `index_chains`: slots and links of an index file.
* `config`: the texts in config/, and the tables that managers make of them.
* `controller`: what controller mode keeps beside the store.
* `timer`: units of the timer log, slots of the wheel, its checkpoint.
* `queue_store`: a store's queues as a scan asks for them; what else another kind needs is listed there.
* `place`: where something lies, as a finding says it.
* `rocksdb`: databases of RocksDB, by a process of their own.
* `dledger`: entry headers, index units and texts of a DLedger group.
* `tiered_metadata`: what lies in a tiered store, as its metadata says.
* `properties`: java.util.Properties, as broker.conf is one.
* `settings`: broker.conf, and the sizes that the files themselves show.
"""
