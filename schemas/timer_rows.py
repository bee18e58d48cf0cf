"""Units of the timer log and slots of the timer wheel as numpy dtypes, as they are stored (big-endian).

A module of its own: the command line imports `timer_layout`, and starts without numpy. Source: as in `timer_layout`.
"""

from __future__ import annotations

import numpy as np

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
