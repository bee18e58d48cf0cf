"""The columns that a store shows to people who explore it. They are messages as clients know them, and the entries and byte
ranges on disk.

Columns of the Spark data sources rocketmq.messages, rocketmq.consumequeue, rocketmq.index, rocketmq.extents, rocketmq.offsets and
rocketmq.transactions, of exports and of queries. Types as in `tables`. Times come twice: as timestamps for people, null where a
damaged one lies outside of the years 1970 to 2261, which is what all kinds of timestamps can hold, and in ms as stored.
"""

from __future__ import annotations

from schemas.tables import Column, ColumnType

_TEXT_MAP: ColumnType = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
_FILE = Column("file", "string", "Path of the file below the store.")
_POSITION = Column("position", "long", "Where it begins, byte in the file.")

MESSAGES = (
    _FILE,
    _POSITION,
    Column("phy_offset", "long", "Key: physical offset of the message's first byte."),
    Column("total_size", "integer", "Bytes of the whole message."),
    Column("topic", "string", "Topic, as stored: a delayed or half message's is the broker's own, see real_topic."),
    Column("queue_id", "integer", "Queue id, as stored."),
    Column("queue_offset", "long", "Entry number in its ConsumeQueue; an unpacked message's is its own."),
    Column("store_time", "timestamp", "When the broker stored it, UTC."),
    Column("store_time_ms", "long", "The same, ms since 1970."),
    Column("born_time", "timestamp", "When the producer made it, by the producer's clock, UTC."),
    Column("born_time_ms", "long", "The same, ms since 1970."),
    Column("msg_id", "string", "The id that clients show: the unique key, or else the offset_msg_id."),
    Column("offset_msg_id", "string", "The broker's id: its address, port and the physical offset, in hexadecimal."),
    Column("tags", "string", "Tags; null without."),
    Column("keys", "string", "Keys as sent, separated by spaces; null without."),
    Column("unique_key", "string", "The client's unique key; null without."),
    Column("properties", _TEXT_MAP, "All properties by name; of equal names the last."),
    Column("properties_size", "integer", "Bytes of the properties."),
    Column(
        "tags_code", "long", "What its ConsumeQueue entry holds: hash of the tags, or a delayed message's deliver time in ms."
    ),
    Column("sys_flag", "integer", "Flag bits, as stored; they hold the next three."),
    Column("transaction", "string", "none, prepared, commit or rollback."),
    Column("compression", "string", "How the body is compressed: none, zlib, lz4, zstd or unknown."),
    Column("inner_batch", "boolean", "Whether it is an inner batch: several messages in one body."),
    Column("flag", "integer", "The producer's own flag."),
    Column("born_host", "string", "The producer's address, ip:port; an IPv6 address is in brackets."),
    Column("store_host", "string", "The broker's address, ip:port."),
    Column("reconsume_times", "integer", "How often it was consumed in vain."),
    Column("prepared_offset", "long", "Transactions: physical offset of the prepared message."),
    Column("delay_level", "integer", "Delay level that was asked for; null without."),
    Column("real_topic", "string", "Topic for which a delayed or half message waits; null without."),
    Column("real_queue_id", "integer", "Queue id for which it waits; null without."),
    Column("batch_base", "long", "Queue offset of the first message in an inner batch; else the queue offset."),
    Column("batch_count", "integer", "Messages in an inner batch; else 1."),
    Column("inner_index", "integer", "Place in the inner batch from which it was unpacked, from 0; null: it was not."),
    Column(
        "status",
        "string",
        "valid, proven; or plausible: valid, but found after damage: no local check proves where it begins.",
    ),
    Column("body_size", "integer", "Bytes of the body as stored; of an unpacked message, its own."),
    Column("body_crc", "integer", "CRC-32 of the stored body without its top bit, as stored; it fits."),
    Column("body", "binary", "The body; see body_status."),
    Column(
        "body_status",
        "string",
        "stored (as it is in the store), decoded (uncompressed), too_large (beyond the bound, body is null), damaged or "
        "unknown (cannot be uncompressed, body is null).",
    ),
    Column(
        "lost",
        "string",
        "What a start would make of it: cut (gone with the log's end), unreachable (without a ConsumeQueue entry), "
        "undelivered (a timer message that is never delivered); null: it stays.",
    ),
)

BODY_COLUMNS = ("body", "body_status")
"""Columns that are filled, and cost, only where bodies are asked for."""

LOST = "lost"
"""The column that an audit of the whole store fills, where it is asked for."""

CONSUMEQUEUE = (
    Column("topic", "string", "Key: topic, as the folder is called, or the key in RocksDB says."),
    Column("queue_id", "integer", "Key: queue id."),
    Column("queue_offset", "long", "Entry number; in a BatchConsumeQueue the offset of the entry's first message."),
    Column("phy_offset", "long", "Physical offset of the message to which it leads."),
    Column("size", "integer", "Bytes of that message."),
    Column("tags_code", "long", "As stored: hash of the tags, a deliver time in ms, or the address of an ext unit."),
    Column("ext_tags_code", "long", "Tags code in the ext unit to which tags_code leads; null where there is none."),
    Column("ext_store_time_ms", "long", "Store time in that ext unit, ms since 1970."),
    Column("store_time_ms", "long", "BatchConsumeQueue and RocksDB: store time of the message, ms since 1970; else null."),
    Column("message_count", "integer", "BatchConsumeQueue: messages of the entry; RocksDB: null, it does not say; else 1."),
    Column("kind", "string", "queue, batch (a BatchConsumeQueue) or lmq (a queue whose name begins with %LMQ%)."),
    Column(
        "status",
        "string",
        "valid; pre_blank (before the queue's first entry); invalid (a broker would not take it); unreadable (RocksDB calls the "
        "bytes bad in which entries of this queue may be, from this queue offset on: one row for all of them).",
    ),
    Column("file", "string", "Path of the file below the store; the database's folder for entries in RocksDB."),
    Column("position", "long", "Where it begins, byte in the file; null in RocksDB."),
)

INDEX = (
    _FILE,
    Column("number", "integer", "Key, with the file: number of the entry, from 1."),
    Column("key_hash", "integer", "Hash of topic#key."),
    Column("phy_offset", "long", "Physical offset of the message to which it leads."),
    Column("time_difference_s", "integer", "Seconds from the file's first message to this one's store time, as stored."),
    Column("store_time_ms", "long", "What this makes, to the second: ms since 1970."),
    Column("previous", "integer", "Number of the entry before it in its slot's chain; 0: none."),
    Column("slot", "integer", "Its slot by the hash."),
    Column("status", "string", "counted; or beyond_count: beyond the number that the header counts."),
    _POSITION,
)

EXTENTS = (
    _FILE,
    Column("start", "long", "Key, with the file: first byte in the file."),
    Column("end", "long", "Byte after the last one."),
    Column("phy_offset", "long", "Physical offset of the first byte."),
    Column("size_bytes", "long", "Bytes in it."),
    Column("kind", "string", "message, filler, unwritten or damaged."),
    Column("message_count", "long", "Messages in it."),
    Column("plausible", "boolean", "Found after damage; no local check can prove its boundaries."),
    Column("reason", "string", "Why a damaged one is damaged; values in schemas/finding_codes.py."),
)

OFFSETS = (
    Column("kind", "string", "consumer (what a group has consumed) or delay (what a delay level has delivered)."),
    Column("group", "string", "Consumer group; null of a delay level."),
    Column("topic", "string", "Topic; of a delay level SCHEDULE_TOPIC_XXXX."),
    Column("queue_id", "integer", "Queue id; of a delay level the level less 1."),
    Column("delay_level", "integer", "Delay level; null of a consumer group."),
    Column("committed_offset", "long", "Queue offset of the next message, as stored: a start may move one of a delay level."),
    Column("queue_end", "long", "Queue offset after the last entry of the queue on disk; null: the copy has no such queue."),
    Column("lag", "long", "Entries from the committed offset to the end; 0 beyond the end; null: no such queue."),
    Column("status", "string", "lagging, at_end, beyond_end (the offset is larger than the end) or no_queue."),
    Column("file", "string", "What it was read from: a file, the .bak that a start takes in its place, or a database's folder."),
)

TRANSACTIONS = (
    _FILE,
    _POSITION,
    Column("phy_offset", "long", "Key: physical offset of the half message."),
    Column("total_size", "integer", "Bytes of the half message."),
    Column("topic", "string", "The broker's own topic in which it waits; that of transactions in RocksDB is another one."),
    Column("queue_id", "integer", "Queue id there."),
    Column("queue_offset", "long", "Entry number there: operation messages name it."),
    Column("real_topic", "string", "Topic for which it waits; null without."),
    Column("real_queue_id", "integer", "Queue id for which it waits; null without."),
    Column("store_time", "timestamp", "When the broker stored it, UTC."),
    Column("store_time_ms", "long", "The same, ms since 1970."),
    Column("born_time_ms", "long", "When the producer made it, by the producer's clock, ms since 1970."),
    Column("producer_group", "string", "The producer group that is asked for its end; null without."),
    Column("transaction_id", "string", "The id that producers know it by: as stored, or else the unique key; null without."),
    Column("unique_key", "string", "The client's unique key; null without."),
    Column("check_times", "integer", "How often its producer had been asked when it was stored; null: never."),
    Column(
        "state",
        "string",
        "The first that the log shows after it. committed: a committed message; rolled_back: an operation message without one; "
        "put_back: a newer half message in its place; given_up: the broker put it aside; open: nothing.",
    ),
    Column("end_phy_offset", "long", "Physical offset of the message that shows this; null of an open one."),
    Column("end_time_ms", "long", "When that message was stored, ms since 1970; null of an open one."),
    Column("status", "string", "Of the half message: valid or plausible, as in rocketmq.messages."),
)

STORE = Column("store", "string", "The store, as in the tables of audits: its name in the fleet file, or else where it lies.")
"""The column that tells several stores of one load apart."""

SOURCES: dict[str, tuple[Column, ...]] = {
    "messages": MESSAGES,
    "consumequeue": CONSUMEQUEUE,
    "index": INDEX,
    "extents": EXTENTS,
    "offsets": OFFSETS,
    "transactions": TRANSACTIONS,
}
"""Source -> its columns in their order, without `store`."""
