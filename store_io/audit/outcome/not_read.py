"""The parts of a copy that were not read in this run, and why."""

from __future__ import annotations

from schemas.gaps import Cause, Gap, LeftOut
from schemas.rows import Row
from store_io.model.evidence import Evidence


def not_read(evidence: Evidence) -> Row:
    """Return how much was not read in this run; see AuditOutcome. {} if all was."""
    request, copy = evidence.request, evidence.copy
    if request.whole:
        return {}
    reused = {f.path for f in evidence.unread if evidence.earlier.reused(f.path)}
    segments = [f for f in evidence.unread if f.path not in reused]
    kept = [f for f in evidence.unread if f.path in reused]
    read = {path for queue in evidence.every_queue for path in queue.digests}
    queues = [f for files in copy.queue_files.values() for f in files if f.path not in read]
    index = [f for f in copy.index_files if f.path not in evidence.index]
    if not (segments or kept or queues or index):
        return {}
    return {
        "segments": len(segments),
        "segment_bytes": sum(f.size for f in segments),
        "queue_files": len(queues),
        "queue_bytes": sum(f.size for f in queues),
        "index_files": len(index),
        "index_bytes": sum(f.size for f in index),
        "reused_segments": len(kept),
        "reused_bytes": sum(f.size for f in kept),
        "since": request.earlier.run_id if kept and request.earlier is not None else None,
    }


def not_read_gaps(evidence: Evidence, left_out: Row) -> list[Gap]:
    """Return the gap of the files that were not read on purpose, if there are any. left_out: what `not_read` gives."""
    copy, quick = evidence.copy, evidence.request.quick
    cause = Cause.LEVEL_QUICK if quick else Cause.TIME_LIMIT
    counts: list[int] = []
    for count, size, every in (
        ("segments", "segment_bytes", len(copy.segment_files)),
        ("queue_files", "queue_bytes", sum(map(len, copy.queue_files.values()))),
        ("index_files", "index_bytes", len(copy.index_files)),
    ):
        counts += [left_out.get(count, 0), every, left_out.get(size, 0)]
    if any(counts[::3]):
        return [Gap(cause, values=(LeftOut.FILES, *counts))]
    return [Gap(cause)] if quick else []
