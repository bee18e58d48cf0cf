"""Reads the units of the timer log and the slots of the timer wheel (timer.md 3, 4).

Units are read window by window. They lie on a grid of their own size in each file, so what follows a damaged one is found again.
A slot is read if it holds anything, with the index where it lies. The wheel's file is sparse: holes cost nothing.
Source: TimerLog.append, TimerMessageStore.recoverAndRevise (5.1.4 to 5.5.0); TimerWheel.getSlot, putSlot, getSlotIndex; Slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from schemas.layouts import timer_layout as layout
from schemas.layouts.entries import SLOT_DTYPE, UNIT_DTYPE
from schemas.rows import MappedFile
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource
from store_io.source.piece_digest import PieceDigest

WINDOW_UNITS = 40_000
WINDOW_BYTES = WINDOW_UNITS * layout.UNIT_BYTES

TIMER_UNIT = np.dtype(
    [
        ("position", "i8"),  # in the timer log
        ("previous", "i8"),
        ("time", "i8"),  # ms; of its slot
        ("phy_offset", "i8"),
        ("size", "i4"),
        ("magic", "i4"),
        ("topic_hash", "i4"),
    ]
)

NO_UNITS = np.zeros(0, TIMER_UNIT)
SLOT_WINDOW_BYTES = 65_536 * layout.SLOT_BYTES
WHEEL_SLOT = np.dtype(
    [("index", "i4"), ("number", "i4"), ("time", "i8"), ("first", "i8"), ("last", "i8")]  # time in units of the precision
)


@dataclass(frozen=True)
class UnitWindow:
    """Valid units of one window, and the positions in the log of anything else.

    broken: the positions of rows that are neither units nor zeros, before a filler.
    stop: the position in the file of the first row that recovery does not take: -1 for none.
    blank: that row is a filler.
    """

    file: MappedFile
    units: np.ndarray
    broken: np.ndarray
    stop: int = -1
    blank: bool = False


def unit_windows(source: ByteSource, file: MappedFile, digest: PieceDigest) -> Iterator[UnitWindow]:
    """Yield all windows of one file with something in them, in order; every byte goes to the digest. Raises StoreError."""
    with source.open(file.path) as opened:
        at, digested = 0, 0
        while at < opened.size:
            data_at = opened.next_data(at)
            skipped = data_at - data_at % layout.UNIT_BYTES
            if skipped > at:
                yield UnitWindow(file, NO_UNITS, np.zeros(0, np.int64), at)
                at = skipped
            if at >= opened.size or data_at >= opened.size:
                break
            data = _window(opened, at)
            digest.feed_zeros(at - digested)
            digest.feed(data)
            yield _units_of(file, at, data)
            at += len(data)
            digested = at
        digest.feed_zeros(opened.size - digested)


def _window(file: ByteFile, at: int) -> np.ndarray:
    buffer = np.empty(min(WINDOW_BYTES, file.size - at), np.uint8)
    file.read_into(at, buffer)
    return buffer


def _units_of(file: MappedFile, at: int, data: np.ndarray) -> UnitWindow:
    whole = len(data) // layout.UNIT_BYTES
    rows = data[: whole * layout.UNIT_BYTES].view(UNIT_DTYPE)
    valid = (rows["size"] == layout.UNIT_BYTES) & (rows["magic"] >= 0) & (rows["magic"] <= layout.LARGEST_MAGIC)
    blank_at = np.flatnonzero(rows["magic"] == layout.BLANK_MAGIC)
    end = int(blank_at[0]) if len(blank_at) else whole
    stops = np.flatnonzero(~valid[:end])
    chosen = rows[:end][valid[:end]]
    units = np.zeros(len(chosen), TIMER_UNIT)
    units["position"] = file.start + at + np.flatnonzero(valid[:end]) * layout.UNIT_BYTES
    units["previous"], units["phy_offset"] = chosen["previous"], chosen["phy_offset"]
    units["time"] = chosen["write_time"].astype(np.int64) + chosen["delay"]
    units["size"], units["magic"], units["topic_hash"] = chosen["message_size"], chosen["magic"], chosen["topic_hash"]
    filled = np.any(data[: whole * layout.UNIT_BYTES].reshape(whole, layout.UNIT_BYTES), axis=1)
    broken = np.flatnonzero(~valid[:end] & filled[:end]) * layout.UNIT_BYTES + at
    if len(stops):
        return UnitWindow(file, units, broken, at + int(stops[0]) * layout.UNIT_BYTES)
    if len(blank_at):
        return UnitWindow(file, units, broken, at + end * layout.UNIT_BYTES, True)
    rest = data[whole * layout.UNIT_BYTES :]  # shorter than a unit: room for a filler alone
    if len(rest) >= layout.UNIT_HEAD_BYTES:
        magic = int.from_bytes(rest[layout.UNIT_HEAD_BYTES - 4 : layout.UNIT_HEAD_BYTES].tobytes(), "big", signed=True)
        return UnitWindow(file, units, broken, at + whole * layout.UNIT_BYTES, magic == layout.BLANK_MAGIC)
    return UnitWindow(file, units, broken, at + whole * layout.UNIT_BYTES if len(rest) else -1)


def read_slots(source: ByteSource, path: str, digest: PieceDigest) -> np.ndarray:
    """Return the slots that are not all zero, by index: WHEEL_SLOT. Every byte goes to the digest. Raises StoreError."""
    found = [np.zeros(0, WHEEL_SLOT)]
    with source.open(path) as file:
        at = 0
        while at < file.size:
            data_at = file.next_data(at)
            data_at -= data_at % layout.SLOT_BYTES
            digest.feed_zeros(max(0, data_at - at))
            at = max(at, data_at)
            buffer = np.empty(min(SLOT_WINDOW_BYTES, file.size - at), np.uint8)
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
