"""Entries of derived files as numpy dtypes: ConsumeQueue, BatchConsumeQueue, index. Fields in the order of the files, no padding.

Each comes twice: in the machine's byte order, to work with, and as it is stored (big-endian).
Source: as in `consumequeue_layout` and `index_layout`.
"""

from __future__ import annotations

import numpy as np

ENTRY_DTYPE = np.dtype([("phy_offset", "i8"), ("size", "i4"), ("tags_code", "i8")])
BATCH_DTYPE = np.dtype(
    [
        ("phy_offset", "i8"),
        ("size", "i4"),
        ("tags_code", "i8"),
        ("store_time", "i8"),
        ("base", "i8"),
        ("count", "i2"),
        ("compacted", "i4"),
        ("reserved", "i4"),
    ]
)
KEYED_ENTRY_DTYPE = np.dtype([("phy_offset", "i8"), ("size", "i4"), ("tags_code", "i8"), ("store_time", "i8")])  # in RocksDB
INDEX_DTYPE = np.dtype([("key_hash", "i4"), ("phy_offset", "i8"), ("time_difference", "i4"), ("previous", "i4")])

STORED_ENTRY_DTYPE = ENTRY_DTYPE.newbyteorder(">")
STORED_KEYED_ENTRY_DTYPE = KEYED_ENTRY_DTYPE.newbyteorder(">")
STORED_BATCH_DTYPE = BATCH_DTYPE.newbyteorder(">")
STORED_INDEX_DTYPE = INDEX_DTYPE.newbyteorder(">")
