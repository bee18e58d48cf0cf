"""The places of a store in which records may be healed: damage that the scans report, and nothing else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from schemas import commitlog_layout as layout
from schemas.finding_codes import Code
from schemas.rows import EXTENT_DAMAGED, EXTENT_FILLER, EXTENT_MESSAGE, EXTENT_UNWRITTEN, LOSS, SegmentSummary
from store_io.audit.healing.changes import Place
from store_io.audit.healing.witnesses import LogOrder, Misplaced

MOST_PLACES = 1000  # of one store


def places_of(summary: SegmentSummary, next_begins: bool, misplaced: Iterable[Misplaced] = ()) -> list[Place]:
    """The places of one segment, ascending.

    next_begins: the next segment begins with a valid message.
    misplaced: of this segment.
    """
    found, extents = [], summary.extents
    torn = {
        f.start for f in summary.findings if f.code == Code.COMMITLOG_TORN_TAIL and f.severity != LOSS
    }  # never written to its end
    fillers = {f.start for f in summary.findings if f.code == Code.FILLER_WRONG_SIZE}
    for number, extent in enumerate(extents):
        after = extents[number + 1] if number + 1 < len(extents) else None
        if extent.kind == EXTENT_FILLER and extent.start in fillers and next_begins:
            found.append(Place(extent.start, extent.end, filler=True))
        if extent.kind != EXTENT_DAMAGED or extent.zeros or extent.start in torn:
            continue
        if after is not None and after.kind == EXTENT_FILLER and extent.end - extent.start == layout.FRAME_BYTES:
            if next_begins:
                found.append(Place(extent.start, extent.end, filler=True))
            continue
        at_end = after is None or after.kind == EXTENT_UNWRITTEN
        found.append(Place(extent.start, extent.end, zeros_follow=at_end))
    for each in misplaced:
        start = each.phy_offset - summary.base_offset
        found.append(Place(start, start + each.size, queue_offset=each.queue_offset))
    return sorted(found, key=lambda place: place.start)


def all_places(summaries: Sequence[SegmentSummary], order: LogOrder) -> tuple[dict[str, list[Place]], int]:
    """By segment, the first MOST_PLACES of a store; and how many more there are. order: by these segments."""
    misplaced = order.out_of_place()
    begins = {s.base_offset: begins_with_message(s) for s in summaries}
    found: dict[str, list[Place]] = {}
    more, room = 0, MOST_PLACES
    for summary in summaries:
        end = summary.base_offset + summary.size
        low, high = (bisect_left(misplaced, offset, key=lambda each: each.phy_offset) for offset in (summary.base_offset, end))
        places = places_of(summary, begins.get(end, False), misplaced[low:high])
        more += max(0, len(places) - room)
        places = places[:room]
        room -= len(places)
        if places:
            found[summary.path] = places
    return found, more


def begins_with_message(summary: SegmentSummary) -> bool:
    """Whether a valid message lies at the segment's first byte."""
    return bool(summary.extents) and summary.extents[0].kind == EXTENT_MESSAGE and summary.extents[0].start == 0
