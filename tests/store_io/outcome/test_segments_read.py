"""Rows of `segments` as values: what a maker of rows has put in comes out again, and null is nothing."""

from __future__ import annotations

from schemas.rows import Extent
from store_io.outcome.audit_rows import segment_rows
from store_io.outcome.segments_read import segments_read
from tests.support.handmade.evidence import SEGMENT, copy_of, evidence_of, log_path, segment

COPY = copy_of({log_path(0): SEGMENT, log_path(SEGMENT): SEGMENT})


def test_a_segment_is_read_as_it_was_written() -> None:
    scanned = segment(0)
    scanned.extents = [Extent("message", 0, 300, 3), Extent("damaged", 300, 400, reason="magic"), Extent("message", 400, 500, 1)]
    first, second = segments_read(segment_rows(evidence_of(COPY, segments=[scanned], unread=(COPY.segment_files[1],)), []))
    assert (first.path, first.name, first.base_offset, first.end) == (log_path(0), f"{0:020}", 0, SEGMENT)
    assert (first.messages, first.damaged_bytes, first.message_end) == (4, 100, 500) and list(first.extents) == scanned.extents
    assert (second.base_offset, second.size, second.messages, second.extents) == (SEGMENT, SEGMENT, 0, ())
    assert second.message_end is None and second.first_store_time is None and not second.problem and not second.digest
