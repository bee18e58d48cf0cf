"""Parts of the log that were never written although messages follow."""

from __future__ import annotations

import pytest

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, EXTENT_UNWRITTEN, Extent, QueueKey, QueueSummary, SegmentSummary
from store_io.model.facts.unwritten import PAGE_BYTES, Unwritten, unwritten
from store_io.model.log_map import UNWRITTEN, log_map
from store_io.model.queue_leftovers import LeftoverResult
from store_io.model.queue_views import KnownQueues, queue_views
from tests.support.handmade.evidence import SEGMENT, segment

KEY: QueueKey = ("T", 0)
TORN = [Extent(EXTENT_MESSAGE, 0, 100, 1), Extent(EXTENT_UNWRITTEN, 100, SEGMENT)]


def told(segments: list[SegmentSummary], *lost: tuple[int, int, int, int]) -> Unwritten:
    views = queue_views(segments, KnownQueues())
    return unwritten(segments, views, {KEY: LeftoverResult(KEY, lost=list(lost))}, log_map(segments, SEGMENT))


def test_the_end_of_the_newest_segment_is_no_hole() -> None:
    assert told([segment(0, {}, extents=TORN)]).holes == []


def test_zeros_before_a_later_segment_and_how_many_messages_lay_there() -> None:
    later = segment(SEGMENT, {"queue_offset": 5}, first_store_time=77)
    found = told([segment(0, {"queue_offset": 0}, extents=TORN), later])
    (hole,) = found.holes
    assert (hole.phy_offset, hole.zeros, hole.to_end, hole.next_time) == (100, 900, True, 77)
    assert found.counts == [4]  # queue offsets 1 to 4
    (finding,) = found.findings()
    assert finding.message == "900 bytes of zeros; at least 4 messages lay there" and (finding.start, finding.end) == (100, 108)


@pytest.mark.parametrize(("database", "lay"), [("consumequeue", 2), ("", 4)])
def test_a_record_of_many_messages_takes_as_many_offsets_in_rocksdb(database: str, lay: int) -> None:
    """There an inner batch has an entry with its first offset alone, as in a BatchConsumeQueue; in files it is one entry."""
    segments = [segment(0, {"queue_offset": 0, "messages": 3}, extents=TORN), segment(SEGMENT, {"queue_offset": 5})]
    known = KnownQueues(summaries={KEY: QueueSummary(KEY)} if database else {}, database=database)
    views = queue_views(segments, known)
    assert views[KEY].keyed is bool(database)
    assert unwritten(segments, views, {}, log_map(segments, SEGMENT)).counts == [lay]


def test_more_messages_than_fit_there_are_damaged_offsets_and_counted_not_at_all() -> None:
    later = segment(SEGMENT, {"queue_offset": 500})
    assert told([segment(0, {"queue_offset": 0}, extents=TORN), later]).counts == [0]


def test_entries_behind_the_last_message_of_a_queue_count() -> None:
    later = segment(SEGMENT, {}, queues=[("other", 0)])
    segments = [segment(0, {}, extents=TORN), later]
    assert told(segments, (1, 200, 100, UNWRITTEN), (1, 200, 100, UNWRITTEN), (2, 300, 100, UNWRITTEN)).counts == [2]


def test_zeros_within_damage_count_only_over_a_page() -> None:
    def damaged(zeros: int) -> SegmentSummary:
        extents = [Extent(EXTENT_DAMAGED, 0, 2 * PAGE_BYTES, zeros=zeros), Extent(EXTENT_MESSAGE, 2 * PAGE_BYTES, 9000, 1)]
        return segment(0, extents=extents)

    assert [hole.zeros for hole in told([damaged(PAGE_BYTES)]).holes] == [PAGE_BYTES]
    assert told([damaged(PAGE_BYTES - 1)]).holes == []
    assert told([damaged(PAGE_BYTES)]).findings() == []  # the scan has told that


def test_a_hole_before_a_message_that_was_flushed_is_the_copying_s() -> None:
    found = told([segment(0, {}, extents=TORN), segment(SEGMENT, {}, first_store_time=77)])
    flushed, not_flushed = found.copied_live(77), found.copied_live(76)
    assert flushed is not None and "lost power" not in flushed.message
    assert not_flushed is not None and "or its machine lost power" in not_flushed.message
    assert told([segment(0, {})]).copied_live(77) is None
