"""Messages in a segment's bytes.

* `framing`: how records lie one after the other, also with the header before each record of a DLedger log.
* `commitlog_reader`: the readable decoder, the reference of the fast one.
* `commitlog_columns`, `commitlog_kernel`: the fast decoder: a window of records as columns.
* `message_columns`: what those columns hold, the queries on them, and which entries the messages put into the index.
* `segment_walk`: from record to record through a segment, by either decoder.
* `segment_items`: what a message is to its queue, and its fields for compiled code.
* `message_decode`, `message_bodies`: one record as its fields; bodies, decompressed within bounds.
* `bridges`: the placeholder records that a repair writes over damage.
"""
