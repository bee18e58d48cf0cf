"""Messages for people, from a store as it is.

Whoever reads messages (commands, data sources) asks a `question`; `message_answer` runs it. Nobody else chooses segments.

* `question`: what is asked, and which parts of the log are read for it; `choice`: how these are chosen.
* `message_answer`: the messages in the order of the log, read here or by workers that it is handed.
* `open_store`: a store opened for reading messages.
* `scans`: what to read of a store, as plain values that travel.
* `served_queues`: the queues from which a release serves consumers, in files or in RocksDB.
* `message_rows`, `stored_entry_rows`: messages, queue and index entries as Arrow batches.
* `message_batch`: the columns of one batch of messages.
* `message_filter`, `message_search`: conditions on messages; a segment's messages by key, id, or bytes of a body.
* `explain`: what lies at one offset, and which entries lead to it.
* `served`: what a consumer would get from a started broker.
* `groups`: how far consumer groups have come; half messages, and what became of them.
* `lost`: the messages that a start would lose, and the form in which a producer can send them again.
* `only_here`: the messages that one copy holds and another one does not.
* `redaction`: bodies and properties hidden.
* `copy_manifest`: digests of a copy's files.
"""
