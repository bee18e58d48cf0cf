"""Queue offsets along the log."""

from __future__ import annotations

import pytest

from schemas.rows import EXTENT_DAMAGED, EXTENT_MESSAGE, LOSS, MATCH_MISSING, NOTE, REBUILDABLE, Extent, Finding, SegmentSummary
from store_io.checks.sequences import sequences
from store_io.model.queue_leftovers import LeftoverResult
from store_io.model.queue_views import KnownQueues, queue_views
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, segment


def found(log: SegmentSummary, release: str = "5.3.3", answered: list[tuple[int, int]] | None = None) -> list[Finding]:
    views = queue_views([log], KnownQueues())
    left = {("T", 0): LeftoverResult(("T", 0), answered=answered or [])}
    return sequences(evidence_of(copy_of(release=release), segments=[log], views=views, leftovers=left))


def offsets(*numbers: int, match: int = MATCH_MISSING) -> SegmentSummary:
    return segment(0, *({"queue_offset": number, "match": match} for number in numbers))


def test_offsets_that_follow_one_another_are_sound() -> None:
    assert found(segment(0, {"queue_offset": 5, "records": 3}, {"queue_offset": 8})) == []


@pytest.mark.parametrize(
    ("numbers", "code", "severity", "place"),
    [
        ((0, 7, 2, 3), "queue_offset_wrong", LOSS, 1),  # one record is out of line, and its place is counted
        ((5, 2, 6), "queue_offset_wrong", LOSS, 1),  # the sequence goes on as if it were not there
        ((0, 5, 6), "queue_offset_gap", REBUILDABLE, 1),
        ((5, 3), "queue_offset_back", LOSS, 1),
    ],
)
def test_what_does_not_follow(numbers: tuple[int, ...], code: str, severity: str, place: int) -> None:
    (finding,) = found(offsets(*numbers))
    assert (finding.code, finding.weight, finding.start, finding.end) == (code, severity, 100 * place, 100 * place + 100)
    assert finding.queue_offset == numbers[place] and finding.actual == f"queue offset {numbers[place]}"


def test_a_queue_that_begins_anew_is_a_note() -> None:
    (finding,) = found(segment(0, {"queue_offset": 9}, {"queue_offset": 0, "records": 2}))
    assert (finding.code, finding.weight) == ("queue_offset_back", NOTE)


def test_a_gap_is_a_note_under_releases_that_leave_them_and_where_a_repair_answered() -> None:
    log = offsets(0, 5, 6)
    assert found(log, "5.1.0")[0].weight == NOTE and found(log, "5.1.1")[0].weight == REBUILDABLE
    assert found(log, answered=[(1, 5)])[0].weight == NOTE and found(log, answered=[(1, 4)])[0].weight == REBUILDABLE


def test_no_gap_where_damage_or_a_bridge_lies_between() -> None:
    runs = ({"queue_offset": 0}, {"queue_offset": 5, "first_position": 500}, {"queue_offset": 6, "first_position": 600})
    damaged = [Extent(EXTENT_MESSAGE, 0, 100, 1), Extent(EXTENT_DAMAGED, 100, 500), Extent(EXTENT_MESSAGE, 500, SEGMENT, 2)]
    assert found(segment(0, *runs, extents=damaged)) == []
    assert found(segment(0, *runs, findings=[Finding("commitlog_bridged", "", phy_offset=300)])) == []
    assert len(found(segment(0, *runs))) == 1


def test_nothing_is_said_of_a_log_that_could_not_be_read() -> None:
    log = offsets(0, 5)
    facts = {"segments": [log], "views": queue_views([log], KnownQueues())}
    assert len(sequences(evidence_of(**facts))) == 1 and sequences(evidence_of(broken=True, **facts)) == []
