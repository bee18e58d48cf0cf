"""StoreCheckpoint: int64 fields at the start of a 4096-byte file, and the abort marker. Big-endian, no checksum.

A missing file reads as zeros, a short one is extended with zeros.
Source: StoreCheckpoint, read at 4.8.0, 5.0.0, 5.1.1 (fifth field) and 5.5.0 (sixth field).
"""

FILE_BYTES = 4096
FIELDS_FORMAT = ">6q"
PHYSIC_MSG_TIMESTAMP_POSITION = 0  # ms, all releases
LOGICS_MSG_TIMESTAMP_POSITION = 8  # ms, all releases
INDEX_MSG_TIMESTAMP_POSITION = 16  # ms, all releases
MASTER_FLUSHED_OFFSET_POSITION = 24  # phy_offset, since 5.0.0
CONFIRM_PHY_OFFSET_POSITION = 32  # phy_offset, since 5.1.1
LOGICS_PHYSICAL_OFFSET_POSITION = 40  # phy_offset, since 5.5.0
ABORT_FILE = "abort"  # its existence alone says that the broker did not stop cleanly
CHECKPOINT_FILE = "checkpoint"
