"""ConsumeQueue entries of a question that lead where this copy has no segment: their messages cannot be found in it."""

from __future__ import annotations

import numpy as np

from schemas.rows import MappedFile
from store_io.base.errors import NotAFile
from store_io.kinds.queues.consumequeue_reader import read_entries, unit_bytes, valid_entries
from store_io.kinds.queues.queue_store import is_used
from store_io.messages.message_filter import ALL, MessageFilter
from store_io.messages.open_store import OpenStore

MOST_ENTRIES = 1 << 17  # that are looked at, of each queue


def entries_led_out(store: OpenStore, wanted: MessageFilter) -> int:
    """Count the entries of these queues and queue offsets that lead to physical offsets in no segment.

    0 if the question names no queue or no queue offsets, for queues in RocksDB, and for queues with more such entries than are
    looked at. Raises Unreadable.
    """
    if wanted.topics is None or wanted.queue_ids is None or wanted.queue_offsets == ALL:
        return 0
    segments, found = store.segments(), 0
    try:
        for queue in store.queues():
            if queue.key[0] in wanted.topics and queue.key[1] in wanted.queue_ids and not queue.batch and queue.files:
                found += _led_out(store, queue.files, wanted, segments)
    except NotAFile:
        return 0
    return found


def _led_out(store: OpenStore, files: tuple[MappedFile, ...], wanted: MessageFilter, segments: list[MappedFile]) -> int:
    low, high = wanted.queue_offsets
    unit = unit_bytes(False)
    begin, end = min(f.start for f in files) // unit, max(f.start + f.size for f in files) // unit
    first, last = max(low or 0, begin), end if high is None else min(high, end)
    if last - first > MOST_ENTRIES:
        return 0
    rows = read_entries(store.source(), files, first, last)
    places = rows["phy_offset"][valid_entries(rows) & is_used(rows)]
    held = np.zeros(len(places), bool)
    for file in segments:
        held |= (places >= file.start) & (places < file.start + file.size)
    return int((~held).sum())
