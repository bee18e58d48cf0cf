"""What an earlier run says of unchanged segments, and which segments to read first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from schemas.rows import EarlierRun, EarlierSegment, IndexFileSummary, QueueSummary
from store_io.audit.rounds.store_rounds import Collected
from store_io.kinds.index.index_kind import INDEX
from store_io.kinds.queues.queue_kind import QUEUES
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.model.audit_request import AuditRequest
from store_io.model.earlier_segments import EarlierSegments
from store_io.model.found_gaps import Gaps
from tests.support.handmade.evidence import SEGMENT, copy_of, log_path, queue_path, request_of

COPY = copy_of({**{log_path(SEGMENT * n): SEGMENT for n in range(6)}, queue_path(0): 200, "index/7": 100, "index/8": 100})
KEY = ("T", 0)
AT = datetime(2026, 11, 1, tzinfo=UTC)
KNOWN = EarlierSegment(SEGMENT, 7, "e", False, "r0", AT, {"messages": 1})
SETTINGS = {key: str(setting.value) for key, setting in COPY.rules.settings.items()}
BEFORE = EarlierRun(
    "r0", "5.3.3", SETTINGS, {f.path: KNOWN for f in COPY.segment_files}, {KEY: ((queue_path(0), 5, "d"),)},
    {"index/7": "d7", "index/8": "d8"},
)  # fmt: skip


def held(
    before: EarlierRun, *, queue: QueueSummary | None = None, index: dict[str, str] | None = None, **asked: Any
) -> EarlierSegments:
    request: AuditRequest = request_of(**{"reuse": True, "earlier": before, **asked})
    found = Collected(Gaps())
    found.edges = {f.path: SegmentEdges(f.path, digest="e") for f in COPY.segment_files}
    found.results(QUEUES).summaries.add({KEY: queue or QueueSummary(KEY, digests={queue_path(0): "d"})})
    digests = index or {"index/7": "d7", "index/8": "new"}
    summaries = {path: IndexFileSummary(path, 100, digest=digest) for path, digest in digests.items()}
    found.results(INDEX).files.update(summaries)
    return EarlierSegments(request, COPY, found)


def changed(**facts: Any) -> EarlierRun:
    return replace(BEFORE, segments={**BEFORE.segments, log_path(0): replace(KNOWN, **facts)})


def test_a_verified_segment_that_is_unchanged_is_reused() -> None:
    earlier = held(BEFORE)
    assert earlier.reused(log_path(0)) and earlier.reused_segment(log_path(0)) is KNOWN and earlier.chosen() == []
    assert not earlier.reused("commitlog/unknown")
    assert not held(BEFORE, reuse=False).reused(log_path(0)) and held(BEFORE, reuse=False).unchanged(log_path(0)) is KNOWN


@pytest.mark.parametrize(
    "facts",
    [{"size": 1}, {"modified_ns": 8}, {"edge_digest": "other"}, {"edge_digest": ""}, {"damaged": True}, {"verified_run": ""}],
)
def test_any_sign_of_a_change_or_a_doubt_has_it_read_again(facts: dict[str, Any]) -> None:
    earlier = held(changed(**facts))
    assert not earlier.reused(log_path(0)) and earlier.reused_segment(log_path(0)) is None
    assert [f.path for f in earlier.chosen()] == [log_path(0)]


@pytest.mark.parametrize("before", [replace(BEFORE, release="5.3.2"), replace(BEFORE, settings={**SETTINGS, "maxIndexNum": "1"})])
def test_other_rules_may_have_taken_for_sound_what_is_not(before: EarlierRun) -> None:
    assert held(before).unchanged(log_path(0)) is None


def test_nothing_is_reused_where_derived_files_changed() -> None:
    assert not held(BEFORE, queue=QueueSummary(KEY, digests={queue_path(0): "d"}, changed=True)).reused(log_path(0))
    assert not held(BEFORE, queue=QueueSummary(KEY)).reused(log_path(0))
    assert not held(BEFORE, index={"index/7": "other", "index/8": "d8"}).reused(log_path(0))
    assert not held(BEFORE, index={"index/8": "d8"}).reused(log_path(0))


def test_a_disagreement_of_before_must_be_about_a_segment_that_is_read_again() -> None:
    derived = ((queue_path(0), 10, 1),)
    assert not held(replace(BEFORE, derived=derived)).reused(log_path(SEGMENT))
    assert held(replace(changed(damaged=True), derived=derived)).reused(log_path(SEGMENT))
    assert not held(replace(changed(damaged=True), derived=((queue_path(0), 10, 2),))).reused(log_path(SEGMENT))


def test_order_in_which_segments_are_read() -> None:
    old = AT.replace(year=2025)
    paths = [f.path for f in COPY.segment_files]
    segments = dict(zip(paths, [KNOWN, replace(KNOWN, verified_at=old), replace(KNOWN, damaged=True)], strict=False))
    earlier = held(replace(BEFORE, segments=segments), reuse=False)
    assert [f.path for f in earlier.chosen()] == [paths[2], *paths[3:], paths[1], paths[0]]
    assert held(BEFORE, level="quick", reuse=False).chosen() == []
