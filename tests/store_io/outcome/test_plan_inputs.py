"""Every file that a plan depends on."""

from __future__ import annotations

from schemas.rows import IndexFileSummary, QueueSummary
from store_io.kinds.queues.queue_kind import QUEUES, QueueResults
from store_io.outcome.plan_inputs import digest_of, plan_inputs
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, segment


def test_all_that_a_start_would_look_at_with_a_digest_of_what_was_read() -> None:
    small = {"checkpoint": b"c", "abort": b"", "config/topics.json": b"{}", "commitlog/readme": b"?", "lock": b"x"}
    copy = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, queue_path(0): 200, "index/7": 100}, small)
    queues = QueueResults()
    queues.summaries.add({("T", 0): QueueSummary(("T", 0), digests={queue_path(0): "dq"})})
    index = {"index/7": IndexFileSummary("index/7", 100, digest="di")}
    read = segment(0, digest="ds")
    unread = (copy.segment_files[1],)
    rows = plan_inputs(evidence_of(copy, found={QUEUES: queues}, segments=[read], unread=unread, index=index))
    found = {row["file"]: (row["size"], row["digest"]) for row in rows}
    assert [row["file"] for row in rows] == sorted(found)
    assert found == {
        log_path(0): (SEGMENT, "ds"),
        log_path(SEGMENT): (SEGMENT, ""),
        queue_path(0): (200, "dq"),
        "index/7": (100, "di"),
        **{path: (len(data), digest_of(data)) for path, data in small.items() if path != "lock"},
    }


def test_what_can_no_longer_be_read_has_no_row() -> None:
    assert plan_inputs(evidence_of(copy_of({"checkpoint": 9}))) == []
