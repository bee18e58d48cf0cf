"""Messages for people, from a store as it is.

* `open_store`: a store opened for reading messages.
* `scans`: what to read of a store, as plain values that travel.
* `message_rows`, `stored_entry_rows`: messages, queue and index entries as Arrow batches.
* `message_batch`: the columns of one batch of messages.
* `message_search`, `message_filter`: messages by key, id, tag, offset or time; the last of them.
  `choice`: which segments such a question needs.
* `explain_place`, `explain_record`, `explain_pointers`: what lies at one offset, field by field, and which entries lead to it;
  `explain_ledger`: the header before a record of a DLedger log, and what a start does there.
* `served`: what a consumer would get from a started broker.
* `groups`: how far consumer groups have come; half messages, and what became of them.
* `lost`: the messages that a start would lose, and the form in which a producer can send them again.
* `redaction`: bodies and properties hidden.
* `copy_manifest`: digests of a copy's files.
"""
