"""The change that makes the filler at a segment's end whole: its size is what is left, its magic is one number."""

from __future__ import annotations

from schemas import commitlog_layout as layout
from store_io.audit.healing.changes import Candidate, Change, Place
from store_io.source.segment_window import SegmentWindow

_BITS = 32  # the field that is right


def filler_changes(window: SegmentWindow, place: Place) -> list[Candidate]:
    """Return the one change of a filler, if one of its two fields is right. For plain segments."""
    head, left = window.read(place.start, place.start + layout.FRAME_BYTES), window.size - place.start
    size, magic = head[:4], head[4:]
    right_size = left.to_bytes(4, "big")
    if len(head) < layout.FRAME_BYTES or (size == right_size) == (magic == layout.MAGIC_BLANK_BYTES):
        return []
    if size == right_size:
        change = Change("filler MAGICCODE", place.start + 4, magic, layout.MAGIC_BLANK_BYTES)
    else:
        change = Change("filler TOTALSIZE", place.start, size, right_size)
    agrees = (f"{left:,} bytes are left in the segment", "the next segment begins with a valid message")
    return [Candidate(change.narrowed, place.start, left, 1, _BITS, True, True, agrees=agrees)]
