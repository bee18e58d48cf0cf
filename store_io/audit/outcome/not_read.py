"""The parts of a copy that were not read in this run, and why."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.rows import Row
from store_io.audit.evidence import Evidence
from store_io.base.wording import count_text


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


def not_read_sentences(evidence: Evidence, left_out: Row, on_purpose: Sequence[str]) -> list[str]:
    """What makes the audit incomplete although nothing went wrong. left_out: what `not_read` gives."""
    copy, quick = evidence.copy, evidence.request.quick
    parts = []
    for count, size, noun, all_files in (
        ("segments", "segment_bytes", "CommitLog segment", len(copy.segment_files)),
        ("queue_files", "queue_bytes", "ConsumeQueue file", sum(map(len, copy.queue_files.values()))),
        ("index_files", "index_bytes", "index file", len(copy.index_files)),
    ):
        number = left_out.get(count, 0)
        if number:
            parts.append(f"{number:,} of {count_text(all_files, noun)} ({left_out[size]:,} bytes)")
    why = "level quick reads what a starting broker reads" if quick else "the time limit was reached"
    if parts:
        return [f"not read ({why}): {', '.join(parts)}", *on_purpose]
    return [f"not everything was compared: {why}", *on_purpose] if quick else list(on_purpose)
