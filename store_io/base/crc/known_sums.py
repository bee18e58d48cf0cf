"""Checksums of parts of a file that were just found, for its digest: these bytes are not read again (`combined_sums`).

`known` is an int64 array: how many sums it holds, how many it has room for, then (position in the file, bytes, CRC-32) of each.
"""

from __future__ import annotations

import numpy as np

# A part that is shorter is summed again as quickly as its sum is added.
LEAST_BYTES = 768  # by carry-less products
LEAST_BYTES_WIDE = 1200  # by carry-less products, where bytes are summed with vectors of 512 bits
LEAST_BYTES_BY_BITS = 4096  # by products that are made bit by bit
MOST_BYTES = 1 << 24  # less than that
COUNT, ROOM, FIRST, WORDS = 0, 1, 2, 3  # places in `known`; how many words a sum takes there


def no_sums(size: int) -> np.ndarray:
    """Return an empty `known`, with room for all parts of so many bytes."""
    room = size // LEAST_BYTES
    known = np.zeros(FIRST + WORDS * room, np.int64)
    known[ROOM] = room
    return known
