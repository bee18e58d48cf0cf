"""Finds the last messages of a segment that meet some conditions: so many physical offsets, and nothing else of them.

The boundaries of messages are known from a segment's start alone, so a segment is read whole; of the log only its end is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from store_io.messages.message_filter import Contents
from store_io.messages.message_search import search
from store_io.messages.scans import MessageScan

PLACE = "phy_offset"
INNER_MOST = 1 << 15  # messages of an inner batch, which share its place


@dataclass(frozen=True)
class LastTask:
    """One segment to search for its last `most` messages. Picklable."""

    scan: MessageScan
    contents: Contents
    most: int


def last_places(task: LastTask) -> np.ndarray:
    """The physical offsets of the segment's last messages that match, int64, ascending, at least so many if there are.

    One for each row, of the first inner batch that is unpacked all: they share its place. 8 bytes each. Raises as `search`.
    """
    most = task.most + (INNER_MOST if task.scan.unpack else 0)
    narrow = replace(task.scan, columns=(PLACE,), decompress=task.scan.decompress and task.scan.unpack)
    held, count = [np.zeros(0, np.int64)], 0
    for batch in search(narrow, task.contents):
        held.append(batch.column(PLACE).to_numpy())
        count += batch.num_rows
        if count > 2 * most:
            held = [np.concatenate(held)[-most:]]
            count = len(held[0])
    return np.concatenate(held)[-most:]
