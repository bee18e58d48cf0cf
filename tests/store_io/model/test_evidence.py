"""What follows from facts alone: which parts could be read as a whole, and whether the log's end is known."""

from __future__ import annotations

import pytest

from schemas.advice import Cause, Gap
from schemas.rows import EXTENT_UNWRITTEN, Extent, IndexFileSummary, QueueSummary
from store_io.kinds.index.index_kind import index_whole
from store_io.model.evidence import Evidence
from store_io.model.queue_leftovers import LeftoverResult
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, request_of, segment

COPY = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, queue_path(0): 200, "index/7": 100})
KEY = ("T", 0)
REFUSED = Gap(Cause.UNREADABLE, values=("refused",))


def wholes(evidence: Evidence) -> tuple[bool, bool, bool]:
    return evidence.log_whole, evidence.queues_whole, index_whole(evidence)


@pytest.mark.parametrize(
    ("facts", "whole"),
    [
        ({}, (True, True, True)),
        ({"broken": True}, (False, False, False)),
        ({"segments": [segment(0, problem=REFUSED)]}, (False, True, True)),
        ({"queues": {KEY: QueueSummary(KEY, problem=REFUSED)}}, (True, False, True)),
        ({"leftovers": {KEY: LeftoverResult(KEY, problem=REFUSED)}}, (True, False, True)),
        ({"index": {"index/7": IndexFileSummary("index/7", 100, problem=REFUSED)}}, (True, True, False)),
    ],
)
def test_a_part_is_whole_unless_something_of_it_could_not_be_read(facts: dict[str, object], whole: tuple[bool, ...]) -> None:
    assert wholes(evidence_of(COPY, **facts)) == whole


def test_nothing_is_whole_in_a_store_that_is_not_modelled() -> None:
    assert wholes(evidence_of(copy_of(unmodelled=(Gap(Cause.LEDGER_SEVERAL),)))) == (False, False, False)


def test_the_end_is_known_where_the_newest_message_was_read() -> None:
    first, second = COPY.segment_files
    assert evidence_of(COPY, segments=[segment(0), segment(SEGMENT)]).end_is_known
    assert evidence_of(COPY, segments=[segment(SEGMENT)], unread=(first,)).end_is_known
    assert not evidence_of(COPY, segments=[segment(0)], unread=(second,)).end_is_known
    empty = segment(SEGMENT, extents=[Extent(EXTENT_UNWRITTEN, 0, SEGMENT)])
    assert not evidence_of(COPY, segments=[empty], unread=(first,)).read_last


def test_all_was_read_only_at_the_full_level() -> None:
    assert evidence_of(COPY).all_read
    assert not evidence_of(COPY, request_of(level="quick")).all_read
    assert not evidence_of(COPY, unread=tuple(COPY.segment_files)).all_read


def test_the_log_is_one_list_of_ranges_of_what_was_read_and_what_was_not() -> None:
    evidence = evidence_of(COPY, segments=[segment(0)], unread=(COPY.segment_files[1],))
    assert (evidence.log.start, evidence.log.end, evidence.log.data_end) == (0, 2 * SEGMENT, SEGMENT)
    assert evidence.log is evidence.log
