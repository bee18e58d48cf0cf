"""The audit as rows of the tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from schemas.advice import Cause, Gap
from schemas.rows import (
    EXTENT_DAMAGED,
    EXTENT_MESSAGE,
    MATCH_MISSING,
    NOTE,
    EarlierRun,
    EarlierSegment,
    Extent,
    Finding,
    IndexFileSummary,
    MappedFile,
    QueueSummary,
)
from schemas.tables import TABLES
from store_io.broker.prediction import LogFile, Memory, Prediction
from store_io.log.scan.segment_edges import SegmentEdges
from store_io.model.loss import Loss, QueueLoss
from store_io.model.queue_views import KnownQueues, queue_views
from store_io.outcome.audit_rows import index_rows, queue_rows, segment_rows
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, request_of, segment

COPY = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT, queue_path(0): 200, "index/7": 100})
KEY = ("T", 0)
READ = segment(
    0, {"records": 2}, {"queue_offset": 2, "match": MATCH_MISSING}, first_store_time=5, last_store_time=9,
    extents=[Extent(EXTENT_MESSAGE, 0, 300, 3), Extent(EXTENT_DAMAGED, 300, SEGMENT)],
)  # fmt: skip
FAILED = Gap(Cause.UNREADABLE, values=("read error",))


def columns(table: str, rows: list[dict[str, Any]]) -> bool:
    names = {column.name for column in TABLES[table]}
    return all(set(row) <= names for row in rows)


def test_a_segment_that_was_read_and_one_that_was_not() -> None:
    settings = {key: str(setting.value) for key, setting in COPY.rules.settings.items()}
    known = EarlierSegment(SEGMENT, 7, "e", False, "r0", datetime(2026, 11, 1, tzinfo=UTC), {"messages": 8, "digest": "old"})
    request = request_of(earlier=EarlierRun("r0", "5.3.3", settings, {log_path(SEGMENT): known}))
    edges = {log_path(SEGMENT): SegmentEdges(log_path(SEGMENT), digest="e", bytes_read=70)}
    memory = Memory([LogFile(COPY.segment_files[0], 300)], {}, [])
    prediction = Prediction(True, False, after_load=memory, scanned=[0])
    evidence = evidence_of(COPY, request, segments=[READ], unread=(COPY.segment_files[1],), edges=edges, prediction=prediction)
    findings = [Finding("commitlog_damaged", READ.path), Finding("commitlog_damaged", READ.path, severity=NOTE)]
    read, unread = segment_rows(evidence, findings)
    assert columns("segments", [read, unread])
    assert (read["messages"], read["message_bytes"], read["damaged_bytes"], read["findings"]) == (3, 300, 700, 1)
    assert (read["broker_reads"], read["wrote_after_load"], read["modified_ns"]) == (True, 300, 7)
    assert (unread["messages"], unread["digest"], unread["verified_run"], unread["bytes_read"]) == (8, "old", "r0", 70)


def test_a_queue_with_both_sides_counted() -> None:
    files = (MappedFile(queue_path(0), 0, 200),)
    summary = QueueSummary(KEY, used=[(0, 2)], used_end=2, digests={queue_path(0): "d"}, used_digests={queue_path(0): (2, "u")})
    views = queue_views([READ], KnownQueues({KEY: summary}, {KEY: files}, {KEY: "consumequeue/T/0"}))
    findings = [Finding("queue_entry_unexpected", queue_path(0), topic="T", queue_id=0, count=4)]
    loss = Loss({KEY: QueueLoss(messages=6)})
    evidence = evidence_of(COPY, views=views, loss=loss)
    (row,) = queue_rows(evidence, findings)
    assert columns("queues", [row])
    assert (row["log_messages"], row["equal"], row["missing"], row["unexpected"], row["lost_messages"]) == (3, 2, 1, 4, 6)
    assert (row["log_first_offset"], row["log_end_offset"], row["disk_entries"], row["file_count"]) == (0, 3, 2, 1)
    assert row["files"] == [{"file": queue_path(0), "size_bytes": 200, "digest": "d"}]
    assert row["compared"] == [{"file": queue_path(0), "entries": 2, "digest": "u"}]
    (quick,) = queue_rows(evidence_of(COPY, request_of(level="quick"), views=views), [])
    assert quick["compared"] is None
    unknown = "disk_entries disk_end equal shifted wrong missing unexpected lost_messages lost_bytes".split()
    assert {quick[name] for name in unknown} == {None} and quick["log_messages"] == 3
    times = {KEY: QueueLoss(messages=6, bytes=60, first_store_time=5, last_store_time=9)}
    unread = evidence_of(COPY, views=views, loss=Loss(times), unread=(COPY.segment_files[1],))
    (part,) = queue_rows(unread, [])
    assert {part[name] for name in ("log_messages", "log_end_offset", "missing")} == {None} and part["disk_entries"] == 2
    assert (part["lost_bytes"], part["lost_first_store_time_ms"], part["lost_last_store_time_ms"]) == (60, 5, 9)


def test_of_a_file_that_cannot_be_read_no_number_is_made_up() -> None:
    (row,) = segment_rows(evidence_of(COPY, segments=[replace(READ, problem=FAILED, extents=[])]), [])
    assert row["problem"] == "read error" and columns("segments", [row])
    known = {name for name, value in row.items() if value is not None}
    assert known <= {"file", "base_offset", "size_bytes", "modified_ns", "bytes_read", "problem", "digest", "edge_digest"}
    index = {"index/7": IndexFileSummary("index/7", 100, problem=FAILED)}
    (row,) = index_rows(evidence_of(COPY, index=index), [])
    assert {row[name] for name in ("entries", "begin_time_ms", "index_count", "findings")} == {None}


def test_an_index_file_and_whether_a_start_keeps_it() -> None:
    index = {"index/7": IndexFileSummary("index/7", 100, index_count=4, entries=3, digest="d")}
    (row,) = index_rows(evidence_of(COPY, index=index), [Finding("index_slot_wrong", "index/7")])
    assert columns("index_files", [row])
    assert (row["entries"], row["findings"], row["kept"]) == (3, 1, None)
    gone = Prediction(True, False, after_load=Memory([], {}, []))
    assert index_rows(evidence_of(COPY, index=index, prediction=gone), [])[0]["kept"] is False
