"""ConsumeQueue entry, ConsumeQueueExt unit and BatchConsumeQueue entry. Big-endian, signed, no padding.

Source: ConsumeQueue.putMessagePositionInfo and fillPreBlank, ConsumeQueueExt.CqExtUnit, BatchConsumeQueue
.putBatchMessagePositionInfo, read at 4.8.0, 4.9.8, 5.1.4, 5.3.3, 5.4.0.
"""

ENTRY_BYTES = 20  # int64 phy_offset, int32 size, int64 tags code
ENTRY_FORMAT = ">qiq"
ENTRY_PHY_OFFSET_POSITION = 0
ENTRY_SIZE_POSITION = 8
ENTRY_TAGS_CODE_POSITION = 12
PRE_BLANK_SIZE = 0x7FFFFFFF  # (0, this, 0): the slots before the first entry of a queue that does not begin at 0

ANSWER_SIZE = 91  # of a repair's entry for a position without a message: (last byte of an earlier segment, this, 0)

BATCH_ENTRY_BYTES = 46  # phy_offset, size, tags code, store time, base offset, count (int16), compacted (-1), reserved

EXT_UNIT_HEADER_BYTES = 20  # int16 size, int64 tags code, int64 store time, int16 bit map size
EXT_UNIT_FORMAT = ">hqqh"
EXT_ADDRESS_MAX = -2147483649  # a tags code at or below this is the address of an ext unit: byte offset + EXT_ADDRESS_BASE
EXT_ADDRESS_BASE = -(1 << 63)
EXT_FILE_FULL = -1  # int16 where the next unit would begin

DEFAULT_FILE_BYTES = 6_000_000
DEFAULT_EXT_FILE_BYTES = 48 << 20
DEFAULT_BATCH_FILE_BYTES = 13_800_000
