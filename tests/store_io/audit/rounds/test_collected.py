"""What tasks have found, taken in one by one."""

from __future__ import annotations

from schemas.advice import Cause, Gap, LeftOut
from schemas.rows import LOSS, NOTE, Finding
from store_io.audit.rounds.store_rounds import Collected
from store_io.audit.rounds.task_making import TaskMaker
from store_io.broker.prediction import ScanId
from store_io.kinds.index.index_kind import INDEX
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.model.found_gaps import Gaps
from store_io.model.queue_views import QueueView
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, request_of, segment

COPY = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, queue_path(0): 200, "index/7": 100})
MAKER = TaskMaker(request_of(), COPY)
KEY = ("T", 0)
REFUSED = Gap(Cause.UNREADABLE, values=("refused",))
VIEWS = {KEY: QueueView(KEY, False, "", leftover=[(0, 1)])}
(LEFTOVER,) = MAKER.leftovers(evidence_of(COPY, views=VIEWS))


def test_segments_are_known_by_path_and_sorted_by_place() -> None:
    found = Collected(Gaps())
    for task, base in zip(MAKER.segments(COPY.segment_files), (SEGMENT, 0), strict=True):
        found.take(task, segment(base, bytes_read=10), MAKER.scan_of(task))
    found.sort_segments()
    assert [s.base_offset for s in found.segments] == [0, SEGMENT] and found.bytes_read == 20
    assert set(found.scans) == {ScanId("segment", 0), ScanId("segment", 1)}


def test_a_part_of_the_broker_s_walk_does_not_replace_the_segment() -> None:
    found = Collected(Gaps())
    (task,) = MAKER.segments(COPY.segment_files[:1])
    found.late.add(log_path(0))
    found.take(task, segment(0), ScanId("from", 0, 300))
    assert found.by_path == {} and found.late == {log_path(0)}
    found.take(task, segment(0), None)  # of a segment that the broker does not load
    assert set(found.by_path) == {log_path(0)} and found.late == set() and len(found.scans) == 1


def test_edges_that_cannot_be_read_end_the_prediction() -> None:
    gaps = Gaps()
    found = Collected(gaps)
    found.take(MAKER.edges()[0], [SegmentEdges(log_path(0), bytes_read=3), SegmentEdges(log_path(SEGMENT), problem=REFUSED)])
    assert gaps.broken and gaps.found == [REFUSED] and found.bytes_read == 3 and len(found.edges) == 2


def test_tasks_that_came_too_late() -> None:
    gaps = Gaps()
    found = Collected(gaps)
    for task in (next(INDEX.first_tasks(request_of(), COPY)), LEFTOVER, LEFTOVER):
        found.not_read(task)
    assert found.late == {"index/7"} and gaps.found == [Gap(Cause.TIME_LIMIT, values=(LeftOut.LEFTOVERS,))]


def test_however_many_findings_there_are_a_loss_stays() -> None:
    """Decisions are made from them: an exit code, and what a donor may replace."""
    found = Collected(Gaps())
    (task,) = MAKER.segments(COPY.segment_files[:1])
    note, loss = (Finding("message_header_odd", log_path(0), severity=severity) for severity in (NOTE, LOSS))
    for number in range(250):
        found.take(task, segment(number * SEGMENT, findings=[*[note] * 999, loss]), None)
    kept = list(found.by_path.values())
    assert len(kept) == 250 and all(summary.findings[-1] == loss for summary in kept)
