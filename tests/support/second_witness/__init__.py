"""A broker's load(), recovery and start() as plain sequential code: the second witness of the recovery rules.

It was written apart from the product and shares no line with it: it holds a whole store in memory, walks it record by
record, and is entry for entry equal to the recorded brokers on all golden stores under all six releases. Tests compare the
product with it, on random damage too. It never writes to a store: files are mapped as private copies.

    java     Java's integers, String.hashCode, parseInt, split          files    mapped files; loading, truncating a file queue
    rules    releases, configuration and its defaults                   queues   ConsumeQueue, BatchConsumeQueue
    record   one CommitLog record and its checks                        index    index files
    broker   load(), recovery, start(), the STATE that a plan tells: `broker.run(store, release, broker_conf_text)`
    day      what a started broker does by itself in its first hours (`Day`)

Left out: DLedger, RocksDB, controller mode, several CommitLog paths, compaction, timer; the ext units that recovery would
append (only what makes ext files refuse to load); what a plan says beyond its `broker` section. Known limits: a giant
TOTALSIZE before 5.3.2 is decided as with a large heap; a BatchCQ topic all of whose queues and whose config/topics.json are
gone has no witness of its type.
"""
