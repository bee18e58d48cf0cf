"""ConsumeQueue entries against messages."""

from __future__ import annotations

import pytest

from schemas.rows import MATCH_MISSING, MATCH_SHIFTED, NOTE, MappedFile, QueueKey, QueueSummary
from store_io.kinds.queues.queue_entries import (
    hole_findings,
    missing_findings,
    queue_entries,
    shifted_findings,
    spare_file_findings,
)
from store_io.model.queue_views import KnownQueues, QueueView, queue_views
from tests.support.handmade.evidence import QUEUE_FILE, copy_of, evidence_of, log_path, queue_path, request_of, segment

KEY: QueueKey = ("T", 0)
FILES = (MappedFile(queue_path(0), 0, QUEUE_FILE), MappedFile(queue_path(200), 200, QUEUE_FILE))
RULES = copy_of().rules


def view_of(*runs: dict[str, int], used: list[tuple[int, int]], files: tuple[MappedFile, ...] = FILES) -> QueueView:
    summary = QueueSummary(KEY, used=used, used_end=used[-1][1] if used else 0)
    return queue_views([segment(0, *runs)], KnownQueues({KEY: summary}, {KEY: files}, {KEY: "consumequeue/T/0"}))[KEY]


def test_missing_entries_are_told_by_file_with_the_message_that_should_be_there() -> None:
    view = view_of({"queue_offset": 8, "records": 5, "match": MATCH_MISSING}, used=[(0, 8)], files=FILES[:1])
    first, second = missing_findings(view, RULES, [])
    assert (first.file, first.start, first.end, first.count, first.phy_offset) == (queue_path(0), 160, 200, 2, 0)
    assert (second.file, second.start, second.end, second.count) == (queue_path(200), None, None, 3)
    assert (first.actual, second.actual, first.expected) == ("no entry", "no file", "phy_offset 0, size 100")


def test_entries_told_as_wrong_are_not_told_as_missing() -> None:
    view = view_of({"queue_offset": 3, "records": 2, "match": MATCH_MISSING}, used=[(0, 5)])
    (finding,) = missing_findings(view, RULES, [(3, 4)])
    assert (finding.queue_offset, finding.count) == (4, 1)


def test_entries_of_a_deleted_topic_are_a_note() -> None:
    view = view_of({"match": MATCH_MISSING}, used=[])
    view.deleted_topic = True
    (finding,) = missing_findings(view, RULES, [])
    assert (finding.code, finding.weight) == ("queue_topic_unknown", NOTE)


def test_shifted_entries_are_told_where_they_stand() -> None:
    view = view_of({"queue_offset": 7, "records": 4, "match": MATCH_SHIFTED, "delta": 1}, used=[(0, 12)])
    found = shifted_findings(view)
    assert [(f.file, f.start, f.end, f.count) for f in found] == [(queue_path(0), 160, 200, 2), (queue_path(200), 0, 40, 2)]
    assert found[0].expected == "entry 7" and found[0].actual == "entry 8"


@pytest.mark.parametrize(
    ("used", "holes"),
    [
        ([(0, 4)], []),
        ([(0, 2), (4, 6)], [(40, 80)]),
        ([(0, 8), (10, 12)], [(160, 200)]),
        ([(0, 9), (11, 12)], [(180, 200), (0, 20)]),
    ],
)
def test_zero_entries_between_used_ones(used: list[tuple[int, int]], holes: list[tuple[int, int]]) -> None:
    assert [(f.start, f.end) for f in hole_findings(view_of(used=used))] == holes


def test_a_hole_that_a_message_misses_is_no_hole() -> None:
    assert hole_findings(view_of({"queue_offset": 2, "records": 2, "match": MATCH_MISSING}, used=[(0, 2), (4, 6)])) == []


@pytest.mark.parametrize(("used_end", "spare"), [(9, [queue_path(200)]), (10, []), (11, [])])
def test_a_file_behind_one_that_has_room(used_end: int, spare: list[str]) -> None:
    assert [f.file for f in spare_file_findings(view_of(used=[(0, used_end)]))] == spare


def test_holes_count_only_where_everything_was_read() -> None:
    views = {KEY: view_of(used=[(0, 2), (4, 6)])}
    copy = copy_of({log_path(0): 1000})
    told = {f.code for f in queue_entries(evidence_of(copy, views=views))}
    assert told == {"queue_zero_entry", "queue_file_unexpected"}
    assert [*queue_entries(evidence_of(copy, request_of(level="quick"), views=views))] == []
    assert [*queue_entries(evidence_of(copy, views=views, queues={KEY: QueueSummary(KEY, problem="refused")}))] == []
