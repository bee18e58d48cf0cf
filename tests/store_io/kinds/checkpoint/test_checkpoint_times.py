"""The checkpoint against the times of messages, read or known from before."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from schemas.rows import Checkpoint, EarlierRun, EarlierSegment, FirstRecord
from store_io.kinds.checkpoint.checkpoint_kind import CHECKPOINT, checkpoint_times, time_of_head
from store_io.kinds.checkpoint.checkpoint_reader import StoredCheckpoint
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.model.evidence import Evidence
from tests.support.handmade.evidence import SEGMENT, SETTINGS, copy_of, evidence_of, log_path, request_of, segment

NEWEST = segment(SEGMENT, {}, first_store_time=50_000, last_store_time=60_000)


def with_checkpoint(time: int, **facts: Any) -> Evidence:
    stored = StoredCheckpoint(True, 4096, Checkpoint(time, time, time))
    copy = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT}, of_kinds={CHECKPOINT: stored})
    return evidence_of(copy, segments=[NEWEST], **facts)


def test_a_checkpoint_of_a_later_time_than_any_message_is_told_where_the_end_is_known() -> None:
    assert checkpoint_times(with_checkpoint(60_000)) == []
    assert {f.code for f in checkpoint_times(with_checkpoint(10_000_000_000))} == {"checkpoint_ahead"}
    assert checkpoint_times(with_checkpoint(10_000_000_000, broken=True)) == []


@pytest.mark.parametrize(
    ("first", "times"),
    [
        (FirstRecord(store_time=77, check_ok=True), (77, 77)),
        (FirstRecord(store_time=77, check_ok=False), (0, 0)),
        (FirstRecord(store_time=77, check_ok=True, blank=True), (0, 0)),
    ],
)
def test_an_unread_segment_counts_with_its_first_record(first: FirstRecord, times: tuple[int, int]) -> None:
    evidence = with_checkpoint(0, edges={log_path(0): SegmentEdges(log_path(0), first, "e")})
    assert time_of_head(evidence, evidence.copy.segment_files[0]) == times
    assert time_of_head(evidence, evidence.copy.segment_files[1]) == (0, 0)


def test_an_unchanged_segment_counts_with_what_an_earlier_run_saw() -> None:
    row = {"messages": 3, "first_store_time_ms": 5, "last_store_time_ms": 9}
    settings = {key: str(setting.value) for key, setting in copy_of().rules.settings.items()}
    assert set(SETTINGS) <= set(settings)
    known = EarlierSegment(SEGMENT, 7, "e", False, "r0", datetime(2026, 11, 1, tzinfo=UTC), row)
    request = request_of(earlier=EarlierRun("r0", "5.3.3", settings, {log_path(0): known}))
    evidence = with_checkpoint(0, request=request, edges={log_path(0): SegmentEdges(log_path(0), digest="e")})
    assert time_of_head(evidence, evidence.copy.segment_files[0]) == (5, 9)
