"""IndexFile: 40-byte header, hash slots of 4 bytes, entries of 20 bytes. Big-endian, signed. No magic, no checksum.

Entry i is at 40 + 4 * slot count + 20 * i; numbering starts at 1 (entry 0 is never used). The stored index count is
the number of the *next* entry, so a file holds maxIndexNum - 1 entries, and 0 in a file that never got one.
Source: IndexHeader, IndexFile.putKey, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0.
"""

HEADER_BYTES = 40
HEADER_FORMAT = ">qqqqii"
BEGIN_TIMESTAMP_POSITION = 0  # int64 ms
END_TIMESTAMP_POSITION = 8  # int64 ms
BEGIN_PHY_OFFSET_POSITION = 16  # int64
END_PHY_OFFSET_POSITION = 24  # int64: start of the last message put
HASH_SLOT_COUNT_POSITION = 32  # int32: slots in use
INDEX_COUNT_POSITION = 36  # int32: number of the next entry

SLOT_BYTES = 4  # int32: number of the newest entry of the chain; <= 0 or > index count: empty
ENTRY_BYTES = 20
ENTRY_FORMAT = ">iqii"  # key hash, phy_offset, time difference in s, previous entry of the slot (0: none)
DEFAULT_HASH_SLOTS = 5_000_000
DEFAULT_MAX_INDEX = 20_000_000
