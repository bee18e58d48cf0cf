"""Have compiled code in memory before there is anything to decode: loading it from numba's cache takes 0.2 s."""

from __future__ import annotations

import numpy as np

from store_io.base.crc import checksum
from store_io.log.records import commitlog_columns
from store_io.log.records.message_columns import Columns, RecordCheck, Stretch, TopicTable
from store_io.source.piece_digest import PieceDigest


def link() -> None:
    """Decode and digest nothing, with arguments of the types that every scan has."""
    checksum.trust()
    nothing = Stretch(np.zeros(1, np.uint8), 0, 0, 0, True)
    commitlog_columns.decode(nothing, RecordCheck.audit(0), Columns(1), TopicTable())
    PieceDigest().feed_known(nothing.buffer[:0], 0, nothing.sums)
