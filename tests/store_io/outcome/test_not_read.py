"""How much was not read, and why."""

from __future__ import annotations

from datetime import UTC, datetime

from schemas.advice import Cause
from schemas.losses import ALL_READ
from schemas.rows import EarlierRun, EarlierSegment, IndexFileSummary, QueueSummary
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.outcome.store_outcome import not_read, not_read_gaps
from store_io.wording.gaps import gap_text
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, request_of, segment

COPY = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, queue_path(0): 200, "index/7": 100})
KEY = ("T", 0)
QUEUES = {KEY: QueueSummary(KEY, digests={queue_path(0): "d"})}
INDEX = {"index/7": IndexFileSummary("index/7", 100)}


def test_nothing_is_told_where_all_was_read() -> None:
    late = request_of(not_after=1.0)
    assert not_read(evidence_of(COPY, late, segments=[segment(0)], queues=QUEUES, index=INDEX)) == ALL_READ
    assert not_read_gaps(evidence_of(COPY, late), ALL_READ) == []
    assert not_read(evidence_of(COPY, unread=tuple(COPY.segment_files))) == ALL_READ  # a whole audit says itself what went wrong


def test_what_the_time_did_not_suffice_for() -> None:
    evidence = evidence_of(COPY, request_of(not_after=1.0), unread=(COPY.segment_files[1],), index=INDEX)
    told = not_read(evidence)
    assert (told.segments, told.segment_bytes, told.queue_files, told.index_files) == (1, SEGMENT, 1, 0)
    (gap,) = not_read_gaps(evidence, told)
    assert gap.cause == Cause.TIME_LIMIT and gap_text(gap) == (
        "not read (the time limit was reached): 1 of 2 CommitLog segments (1,000 bytes), 1 of 1 ConsumeQueue file (200 bytes)"
    )


def test_the_quick_level_says_so_even_where_it_left_nothing_out() -> None:
    evidence = evidence_of(COPY, request_of(level="quick"), queues=QUEUES, index=INDEX)
    assert list(map(gap_text, not_read_gaps(evidence, not_read(evidence)))) == [
        "not everything was compared: level quick reads what a starting broker reads"
    ]


def test_a_segment_that_an_earlier_run_verified_is_kept_and_not_left_out() -> None:
    settings = {key: str(setting.value) for key, setting in COPY.rules.settings.items()}
    known = EarlierSegment(SEGMENT, 7, "e", False, "r0", datetime(2026, 11, 1, tzinfo=UTC), {})
    request = request_of(reuse=True, earlier=EarlierRun("r0", "5.3.3", settings, {log_path(0): known}))
    edges = {log_path(0): SegmentEdges(log_path(0), digest="e")}
    evidence = evidence_of(COPY, request, unread=(COPY.segment_files[0],), queues=QUEUES, index=INDEX, edges=edges)
    told = not_read(evidence)
    assert (told.segments, told.reused_segments, told.reused_bytes, told.since) == (0, 1, SEGMENT, "r0")
    assert not_read_gaps(evidence, told) == []
