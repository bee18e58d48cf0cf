"""Declares entries of derived files as numpy dtypes: ConsumeQueue, BatchConsumeQueue, index, timer log, timer wheel.

Fields are in the order of the files, without padding. Entries of queues and index come twice: in the machine's byte order, to
work with, and as they are stored (big-endian). Units of the timer log and slots of the wheel come as they are stored.

The layouts are modules of their own: the command line imports `timer_layout`, and starts without numpy.
Source: as in `consumequeue_layout`, `index_layout` and `timer_layout`.
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

UNIT_DTYPE = np.dtype(
    [
        ("size", ">i4"),
        ("previous", ">i8"),  # position of the unit before it in the same slot; -1: the first
        ("magic", ">i4"),
        ("write_time", ">i8"),  # ms; with the delay the slot's time
        ("delay", ">i4"),
        ("phy_offset", ">i8"),
        ("message_size", ">i4"),
        ("topic_hash", ">i4"),
        ("reserved", ">i8"),
    ]
)

SLOT_DTYPE = np.dtype(
    [
        ("time", ">i8"),  # in units of the precision
        ("first", ">i8"),
        ("last", ">i8"),  # positions in the timer log
        ("number", ">i4"),
        ("magic", ">i4"),
    ]
)
