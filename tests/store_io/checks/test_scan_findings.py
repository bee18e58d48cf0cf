"""What the tasks themselves have found."""

from __future__ import annotations

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, Finding
from store_io.checks.all_checks import unread_heads, unwritten_ends
from store_io.log.scan.segment_edges import SegmentEdges
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, segment

COPY = copy_of({log_path(SEGMENT * number): SEGMENT for number in range(5)})


def test_heads_of_unread_segments_but_for_the_newest_which_may_be_torn() -> None:
    edges = {f.path: SegmentEdges(f.path, findings=[Finding("commitlog_damaged", f.path)]) for f in COPY.segment_files}
    facts = {"edges": edges, "segments": [segment(4 * SEGMENT)], "unread": tuple(COPY.segment_files[:4])}
    assert [f.file for f in unread_heads(evidence_of(COPY, **facts))] == [log_path(0), log_path(SEGMENT)]
    assert unread_heads(evidence_of(COPY, **{**facts, "segments": []})) == []


def test_zeros_up_to_the_end_of_a_segment_count_where_the_whole_log_was_read() -> None:
    first = segment(0, extents=[Extent(EXTENT_MESSAGE, 0, 100, 1), Extent(EXTENT_UNWRITTEN, 100, SEGMENT)])
    second = segment(SEGMENT, extents=[Extent(EXTENT_DAMAGED, 0, SEGMENT)])
    (finding,) = unwritten_ends(evidence_of(COPY, segments=[first, second]))
    assert (finding.code, finding.phy_offset) == ("segment_unwritten", 100)
    assert unwritten_ends(evidence_of(COPY, segments=[first, second], broken=True)) == []
