"""Check for segments whose bytes changed although their modification time did not: a bad disk, or a change that hid itself.

A broker never writes to a segment again after it has made the next one, and every writer but one that puts the time back changes
the time. So each segment is held against the first run that read it with its modification time, once a later segment held
messages. Each run's row of a segment names that run, so that the last run's rows alone are read: the finding stays as long as
these bytes do, and goes when the old bytes are back or the file has a new time.

What is no finding: a segment in which that run found something, which somebody may have mended; damage that is gone since the
last run, as a repair keeps the times of the files that it writes; another store in the same place; a time that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schemas.finding_codes import Code
from schemas.rows import EXTENT_DAMAGED, Finding, SegmentSummary
from store_io.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """What one run's row of `segments` says, by its columns."""

    run_id: str
    store: str
    file: str
    base_offset: int
    modified_ns: int | None
    digest: str | None
    verified_run: str | None
    findings: int | None
    problem: str | None
    messages: int | None
    damaged_bytes: int | None
    first_store_time_ms: int | None
    first_run: str | None
    first_digest: str | None


@dataclass(frozen=True, slots=True)
class FirstRead:
    """The first run that read a segment with its present modification time, and the digest of what it read."""

    run_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class SeenSegment:
    """What the last run says of a segment.

    digest: "" if it is not known. damaged: it held damaged bytes. begins: the earliest store time in it, 0 if not known.
    first: None without a first run that counts.
    """

    modified_ns: int
    digest: str
    damaged: bool
    begins: int
    first: FirstRead | None


Seen = Mapping[str, SeenSegment]  # by path


def seen_segments(rows: Sequence[SegmentRow]) -> dict[str, SeenSegment]:
    """Return what one run's rows of `segments`, of one store, say."""
    last = max((row.base_offset for row in rows if row.messages), default=-1)
    return {row.file: _seen(row, row.base_offset < last) for row in rows}


def _seen(row: SegmentRow, closed: bool) -> SeenSegment:
    digest = "" if row.problem else row.digest or ""
    first = None
    if row.first_run:
        first = FirstRead(row.first_run, row.first_digest or "")
    elif closed and digest and not row.findings:
        first = FirstRead(row.verified_run or row.run_id, digest)
    return SeenSegment(row.modified_ns or 0, digest, bool(row.damaged_bytes), row.first_store_time_ms or 0, first)


def first_reads(evidence: Evidence, seen: Seen, named: bool) -> dict[str, FirstRead]:
    """Return by path the first reading against which each segment is held. A segment without one is left out.

    named: a person gave the store its name. Without that the two are held to be one store if a segment of both begins alike.
    """
    read = {segment.path: segment for segment in evidence.segments if segment.digest and not segment.problem}
    if not named and not any(_begins_alike(segment, seen.get(path)) for path, segment in read.items()):
        return {}
    found = {}
    for path, one in seen.items():
        entry, now = evidence.copy.listing.get(path), read.get(path)
        same_time = entry is not None and entry.mtime_ns == one.modified_ns > 0
        if one.first is not None and same_time and not (now is not None and _is_mended(one, now)):
            found[path] = one.first
    return found


def changed_findings(evidence: Evidence, first: Mapping[str, FirstRead]) -> list[Finding]:
    """Return a finding on each segment that was read and has other bytes than at its first reading."""
    return [
        Finding(
            Code.SEGMENT_CHANGED,
            segment.path,
            expected=before.digest,
            actual=segment.digest,
            message=f"bytes are not those that run {before.run_id} read under the same modification time",
        )
        for segment in evidence.segments
        if not segment.problem and segment.digest and (before := first.get(segment.path)) and before.digest != segment.digest
    ]


def _begins_alike(now: SegmentSummary, before: SeenSegment | None) -> bool:
    return before is not None and bool(before.begins) and now.first_store_time == before.begins


def _is_mended(before: SeenSegment, now: SegmentSummary) -> bool:
    damaged = any(extent.kind == EXTENT_DAMAGED for extent in now.extents)
    return before.damaged and not damaged and before.digest != now.digest
