"""What a start leaves of each file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.advice import Refusal, RefusalKind
from schemas.rows import EXTENT_DAMAGED, EXTENT_UNWRITTEN, NOTE, REBUILDABLE, Extent, Finding, PlanStep
from store_io.broker.prediction import LogFile, Memory, Prediction
from store_io.model.evidence import Evidence
from store_io.outcome.release_leaves import release_leaves
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, queue_path, segment

COPY = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT})


def started(wrote: Sequence[int], **more: Any) -> Prediction:
    log = [LogFile(file, end) for file, end in zip(COPY.segment_files, wrote, strict=False)]
    return Prediction(True, False, stop_reason="size", after_load=Memory(log, {}, []), **more)


def steps(evidence: Evidence, *findings: Finding) -> list[PlanStep]:
    return release_leaves(evidence, findings)


def short(rows: Sequence[PlanStep]) -> list[tuple[str, str, int | None, int | None, int]]:
    return [(row.action, row.file, row.start, row.end, row.lost_messages) for row in rows]


def test_the_log_is_kept_truncated_or_deleted_as_a_start_would_with_what_is_lost() -> None:
    segments = [segment(0, {"records": 5, "bytes": 500}, {"first_position": 500}), segment(SEGMENT, {})]
    prediction = started([500], truncate_at=500, deleted_files=[log_path(SEGMENT)])
    rows = steps(evidence_of(COPY, segments=segments, prediction=prediction))
    assert short(rows) == [("truncate", log_path(0), 500, SEGMENT, 1), ("delete", log_path(SEGMENT), 0, SEGMENT, 1)]
    assert rows[0].lost_bytes == 100 and "ends at physical offset 500" in rows[0].reason
    sound = steps(evidence_of(COPY, segments=segments, prediction=started([SEGMENT, SEGMENT])))
    assert [(row.action, row.reason) for row in sound] == [("keep", "sound")] * 2


def test_nothing_that_holds_a_message_is_given_up_where_a_start_is_refused() -> None:
    empty = segment(SEGMENT, extents=[Extent(EXTENT_UNWRITTEN, 0, SEGMENT)])
    refused = Prediction(False, False, refusal=Refusal(RefusalKind.FILE_LENGTH, log_path(SEGMENT), 9, 7))
    rows = steps(evidence_of(COPY, segments=[segment(0, {}), empty], prediction=refused))
    assert short(rows) == [("keep", log_path(0), 0, SEGMENT, 0), ("delete", log_path(SEGMENT), None, None, 0)]
    damaged = segment(SEGMENT, extents=[Extent(EXTENT_DAMAGED, 0, SEGMENT)])
    rows = steps(evidence_of(COPY, segments=[segment(0, {}), damaged], prediction=refused))
    assert [row.action for row in rows] == ["keep", "keep"]


def test_derived_files_above_a_note_are_rebuilt_once_each() -> None:
    findings = [
        Finding("queue_entry_wrong", queue_path(0), severity=REBUILDABLE),
        Finding("queue_entry_missing", queue_path(200), severity=REBUILDABLE),
        Finding("queue_pre_blank", queue_path(0, "noted"), severity=NOTE),
        Finding("index_slot_wrong", "index/7", severity=REBUILDABLE),
        Finding("checkpoint_ahead", "checkpoint", severity=REBUILDABLE),
    ]
    rows = steps(evidence_of(COPY), *findings)
    assert [(row.action, row.file) for row in rows] == [
        ("rebuild", "consumequeue/T/0"), ("rebuild", "index/7"), ("rebuild", "checkpoint"),
    ]  # fmt: skip
    assert rows[0].reason == "from the CommitLog: queue_entry_missing, queue_entry_wrong"
