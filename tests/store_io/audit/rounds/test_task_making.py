"""Tasks from the files of a copy."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from schemas.rows import EarlierRun, EarlierSegment, MappedFile
from store_io.audit.rounds.task_making import TaskMaker, messages_by_index
from store_io.broker.index_state import IndexHeader
from store_io.broker.prediction import Needs, ScanId
from store_io.kinds.index.index_kind import INDEX
from store_io.kinds.index.index_merge import IndexFollower
from store_io.log.scan.segment_scan import PartialWalk
from store_io.model.queue_views import QueueView
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, request_of

FILES = {log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, "index/7": 100, "index/8": 100, "abort": 1}
COPY = copy_of({**FILES, **{queue_path(0, "T", number): 200 for number in range(5)}})


def test_segments_with_what_they_stand_for() -> None:
    maker = TaskMaker(request_of(), COPY)
    first, second = maker.segments(COPY.segment_files)
    assert (cast(Any, second).path, cast(Any, second).base_offset, cast(Any, second).size) == (
        log_path(SEGMENT),
        SEGMENT,
        SEGMENT,
    )
    assert (maker.scan_of(first), maker.scan_of(second)) == (ScanId("segment", 0), ScanId("segment", 1))
    assert maker.base.log_end == 2 * SEGMENT and maker.base.unclean
    assert set(maker.base.queue_files) == set(COPY.queues_in_files.served.files)
    files = cast(IndexFollower, maker.base.index).files
    assert files[1].may_be_torn and not files[0].may_be_torn


def test_leftovers_are_only_asked_of_queues_that_have_some() -> None:
    views = {("T", number): QueueView(("T", number), False, "", leftover=[(0, number)] if number else []) for number in (3, 0, 1)}
    tasks = TaskMaker(request_of(), COPY).leftovers(evidence_of(COPY, views=views))
    assert [task.key for task in tasks] == [("T", 1), ("T", 3)]


def test_how_many_messages_a_segment_holds_by_the_index() -> None:
    segments = [MappedFile(log_path(n * SEGMENT), n * SEGMENT, SEGMENT) for n in range(4)]
    first = IndexHeader(begin_phy_offset=0, end_phy_offset=2 * SEGMENT, index_count=9)
    second = IndexHeader(begin_phy_offset=2 * SEGMENT, end_phy_offset=3 * SEGMENT, index_count=5)
    assert messages_by_index([first, second], segments) == [4, 4, 4, 0]
    assert messages_by_index([], segments) == messages_by_index([IndexHeader()], segments) == [-1] * 4
    odd = IndexHeader(begin_phy_offset=-(1 << 63), end_phy_offset=(1 << 63) - 1, index_count=(1 << 31) - 1)
    for headers in ([odd, first], [second, odd], [replace(first, begin_phy_offset=1 << 62), second]):
        assert all(0 <= count <= SEGMENT // 91 for count in messages_by_index(headers, segments))


def test_a_damaged_segment_is_read_however_late_it_is() -> None:
    known = EarlierSegment(SEGMENT, 7, "e", True, "r0", datetime(2026, 11, 1, tzinfo=UTC), {})
    request = request_of(not_after=50.0, earlier=EarlierRun("r0", "5.3.3", {}, {log_path(0): known}))
    assert [task.not_after for task in TaskMaker(request, COPY).segments(COPY.segment_files)] == [0.0, 50.0]


def test_second_looks_carry_every_cut_that_was_ever_asked_for() -> None:
    maker = TaskMaker(request_of(not_after=50.0), COPY)
    whole, part, walk = ScanId("segment", 0), ScanId("from", 0, 300), ScanId("reput", 1, 100, 400)
    asked, needs = Needs(), Needs(scans={walk, part})
    asked.phy_cuts[whole] |= {7, 3}
    needs.phy_cuts[whole] |= {7}
    found = {maker.scan_of(task): cast(Any, task) for task in maker.rescans(needs, asked, {log_path(0)})}
    assert set(found) == {whole, part, walk} and found[whole].cuts.phy_offsets == (3, 7)
    assert (found[part].broker_from, found[part].walk_audit) == (300, False)
    assert found[part].only is found[whole].only is None and found[walk].only == PartialWalk("reput", 100, 400)
    assert (found[whole].not_after, found[walk].not_after) == (0.0, 50.0)  # what was read already is little more


def test_an_index_file_knows_the_end_of_the_one_before() -> None:
    first, second = (cast(Any, task) for task in INDEX.first_tasks(request_of(), COPY))
    assert (first.newest, first.previous_end, second.newest, second.previous_end) == (False, None, True, (0, 0))


def test_the_quick_level_reads_no_index() -> None:
    maker = TaskMaker(request_of(level="quick"), COPY)
    assert maker.base.index is None
