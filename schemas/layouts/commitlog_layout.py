"""CommitLog message, magic V1 and V2. Big-endian, signed, positions in bytes from the message's first byte.

V2 (since 5.1.0) differs in one place: topic length is int16, not int8. Everything after it moves by one byte.
Hosts are 8 bytes (IPv4 + port) or 20 (IPv6 + port), by two bits of SYSFLAG, so what follows a host moves by 12 for each.
Source: CommitLog.checkMessageAndReturnSize, MessageExtEncoder and MessageVersion, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0.
"""

MAGIC_V1 = -626843481  # 0xDAA320A7
MAGIC_V2 = -626843477  # 0xDAA320AB, since 5.1.0
MAGIC_BLANK = -875286124  # 0xCBD43194, the end-of-segment filler: int32 bytes left, int32 this
MAGIC_V1_BYTES = b"\xda\xa3\x20\xa7"
MAGIC_V2_BYTES = b"\xda\xa3\x20\xab"
MAGIC_BLANK_BYTES = b"\xcb\xd4\x31\x94"

TOTAL_SIZE_POSITION = 0  # int32, counts itself
MAGIC_POSITION = 4  # int32
BODY_CRC_POSITION = 8  # int32. CRC-32 of the body alone, top bit cleared: header flips go unseen by it.
QUEUE_ID_POSITION = 12  # int32
FLAG_POSITION = 16  # int32, the producer's own
QUEUE_OFFSET_POSITION = 20  # int64, entry number in the ConsumeQueue
PHY_OFFSET_POSITION = 28  # int64, the message's own CommitLog offset
SYS_FLAG_POSITION = 36  # int32
BORN_TIMESTAMP_POSITION = 40  # int64, ms, the producer's clock
BORN_HOST_POSITION = 48  # 8 or 20 bytes; all positions below move by 12 when it is IPv6
STORE_TIMESTAMP_POSITION = 56  # int64, ms, the broker's clock
STORE_HOST_POSITION = 64  # 8 or 20 bytes; all positions below move by 12 more when it is IPv6
RECONSUME_TIMES_POSITION = 72  # int32
PREPARED_OFFSET_POSITION = 76  # int64
BODY_LENGTH_POSITION = 84  # int32, <= 0: no body
BODY_POSITION = 88

FIXED_FIELDS = (  # (RocketMQ's name, position, bytes) of all fields before the body, both hosts IPv4
    ("TOTALSIZE", TOTAL_SIZE_POSITION, 4),
    ("MAGICCODE", MAGIC_POSITION, 4),
    ("BODYCRC", BODY_CRC_POSITION, 4),
    ("QUEUEID", QUEUE_ID_POSITION, 4),
    ("FLAG", FLAG_POSITION, 4),
    ("QUEUEOFFSET", QUEUE_OFFSET_POSITION, 8),
    ("PHYSICALOFFSET", PHY_OFFSET_POSITION, 8),
    ("SYSFLAG", SYS_FLAG_POSITION, 4),
    ("BORNTIMESTAMP", BORN_TIMESTAMP_POSITION, 8),
    ("BORNHOST", BORN_HOST_POSITION, 8),
    ("STORETIMESTAMP", STORE_TIMESTAMP_POSITION, 8),
    ("STOREHOST", STORE_HOST_POSITION, 8),
    ("RECONSUMETIMES", RECONSUME_TIMES_POSITION, 4),
    ("PREPAREDTRANSACTIONOFFSET", PREPARED_OFFSET_POSITION, 8),
    ("BODYLENGTH", BODY_LENGTH_POSITION, 4),
)

IPV6_EXTRA_BYTES = 12
FRAME_BYTES = 8  # total size and magic: what a filler consists of, and what is always left at a segment's end
MIN_SIZE_V1_BYTES = 91  # empty body, topic and properties, both hosts IPv4
MIN_SIZE_V2_BYTES = 92

SYS_COMPRESSED = 0x1
SYS_MULTI_TAGS = 0x2
SYS_TRANSACTION_MASK = 0xC
SYS_PREPARED = 0x4
SYS_COMMIT = 0x8
SYS_ROLLBACK = 0xC
SYS_BORN_HOST_V6 = 0x10
SYS_STORE_HOST_V6 = 0x20
SYS_NEED_UNWRAP = 0x40
SYS_INNER_BATCH = 0x80
SYS_COMPRESSION_MASK = 0x700
SYS_COMPRESSION_SHIFT = 8

PROPERTY_NAME_END = b"\x01"
PROPERTY_END = b"\x02"
PROPERTY_CRC_BYTES = 20  # "__CRC32#", 0x01, ten digits (least significant first), 0x02, at the properties' end
PROPERTY_CRC_NAME = "__CRC32#"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
HALF_TOPIC, OPERATION_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"  # of half messages whose producers were asked too often
DEFAULT_SEGMENT_BYTES = 1 << 30

# One message in the body of an inner batch: int32 size, int32 magic (0), int32 CRC (0), then:
INNER_FLAG_POSITION = 12  # int32, the producer's own
INNER_BODY_LENGTH_POSITION = 16  # int32
INNER_BODY_POSITION = 20  # after the body: int16 properties length, properties
