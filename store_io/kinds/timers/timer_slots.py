"""Slots of the timer wheel: those that hold anything, with the index where they lie (timer.md 4).

Source: TimerWheel.getSlot, putSlot, getSlotIndex; Slot. The file is sparse: holes cost nothing.
"""

from __future__ import annotations

import numpy as np

from schemas import timer_layout as layout
from schemas.timer_rows import SLOT_DTYPE
from store_io.source.byte_source import ByteSource
from store_io.source.piece_digest import PieceDigest

WINDOW_BYTES = 65_536 * layout.SLOT_BYTES

WHEEL_SLOT = np.dtype(
    [("index", "i4"), ("number", "i4"), ("time", "i8"), ("first", "i8"), ("last", "i8")]  # time in units of the precision
)


def read_slots(source: ByteSource, path: str, digest: PieceDigest) -> np.ndarray:
    """The slots that are not all zero, by index: WHEEL_SLOT. Every byte goes to the digest. Raises StoreError."""
    found = [np.zeros(0, WHEEL_SLOT)]
    with source.open(path) as file:
        at = 0
        while at < file.size:
            data_at = file.next_data(at)
            data_at -= data_at % layout.SLOT_BYTES
            digest.feed_zeros(max(0, data_at - at))
            at = max(at, data_at)
            buffer = np.empty(min(WINDOW_BYTES, file.size - at), np.uint8)
            if not len(buffer):
                break
            file.read_into(at, buffer)
            digest.feed(buffer)
            rows = buffer[: len(buffer) // layout.SLOT_BYTES * layout.SLOT_BYTES].view(SLOT_DTYPE)
            used = np.flatnonzero((rows["time"] != 0) | (rows["first"] != 0) | (rows["last"] != 0) | (rows["number"] != 0))
            slots = np.zeros(len(used), WHEEL_SLOT)
            slots["index"] = at // layout.SLOT_BYTES + used
            for name in ("time", "first", "last", "number"):
                slots[name] = rows[name][used]
            found.append(slots)
            at += len(buffer)
    return np.concatenate(found)
