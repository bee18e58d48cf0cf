"""Keys and values of ConsumeQueues in RocksDB. Big-endian, signed; keys sort as their bytes do: by the topic's length first.

Family `default`: int32 topic length, 1, topic, 1, int32 queue id, 1, int64 queue offset -> an entry.
Family `offset`: int32 topic length, 1, topic, 1, "max" or "min", 1, int32 queue id -> int64 phy_offset, int64 queue offset.
The end mark is a key of `offset` as well, of a topic of its own; its value is int64 alone.
Source: RocksDBConsumeQueueTable, RocksDBConsumeQueueOffsetTable, read at 5.3.3.
"""

ENTRY_FAMILY, OFFSET_FAMILY = "default", "offset"
SEPARATOR = b"\x01"
LENGTH_BYTES = 4
AFTER_TOPIC = 5  # bytes before the topic: its length and a separator
ENTRY_KEY_EXTRA = 19  # bytes of an entry's key besides the topic
NUMBER_BYTES = 8  # of the queue offset, an entry's key's last
OFFSET_KEY_EXTRA = 14  # bytes of a key of `offset` besides the topic
ENTRY_VALUE_BYTES = 28  # int64 phy_offset, int32 size, int64 tags code, int64 store time
OFFSET_VALUE_BYTES = 16
MARK_BYTES = 8
MAXIMUM, MINIMUM = b"max", b"min"
MARK_TOPIC = b"CHECKPOINT_TOPIC"
MARK_QUEUE_ID = 0

FOLDER, SEPARATE_FOLDER = "consumequeue", "consumequeue_rocksdb"
CURRENT = "CURRENT"
"""The file of a database that names its MANIFEST: where it is missing and no log is there either, a broker makes a new one."""

TABLES_FOLDER = "rocksdbstore"
INDEX_FAMILY, TIMER_FAMILY, TRANSACTION_FAMILY = TABLE_FAMILIES = "default", "timer", "trans"
TABLE_MARK = b"lastOffsetPy"
"""Of index and transactions: int64, the physical offset of the newest record in the family (MessageRocksDBStorage, 5.4.0)."""
TIMER_OFFSET_KEY, TIMER_TIME_KEY = b"sys_topic_scan_offset_checkpoint", b"timeline_checkpoint"
"""Of timers, int64 each: from which queue offset on messages are not taken yet; up to which time entries were delivered."""
TIMER_CHECK_BYTES = 8
TIMER_KEY_LEAST = 9  # int64 delivery time in ms, unique key
TIMER_VALUE_BYTES = 12  # int32 size, int64 phy_offset
TABLE_TIME_MARK = b"lastStoreTimeStamp"
"""Of the index alone."""
INDEX_KEY_LEAST = (
    21  # int64 store time, cut to the hour; "@", topic, "@", "K", "T" or "U", "@", a text or two with "@"; int64 phy_offset
)
INDEX_VALUE_BYTES = 8  # int64 store time
HOUR_MS = 3_600_000
HALF_TOPIC, DONE_TOPIC = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
"""Transactions in RocksDB have topics of their own: of half messages, and of what says that one is committed or rolled back."""
TRANSACTION_VALUE_BYTES = (
    8  # int32 how often the producer was asked, int32 size; the key: int64 phy_offset, "@", topic, "@", unique key
)
