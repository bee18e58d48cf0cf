"""The checkpoint against the times of the log's messages."""

from __future__ import annotations

from schemas.rows import Finding, MappedFile
from store_io.kinds.checkpoint.checkpoint_reader import checkpoint_findings
from store_io.model.evidence import Evidence


def checkpoint_times(evidence: Evidence) -> list[Finding]:
    """Compare the checkpoint with the log, if the log's newest message was read."""
    if not evidence.end_is_known:
        return []
    times = [(s.first_store_time, s.last_store_time) for s in evidence.segments if s.first_store_time or s.last_store_time]
    times += [time_of_head(evidence, file) for file in evidence.unread]
    first, last = (min(t[0] for t in times), max(t[1] for t in times)) if times else (0, 0)
    return checkpoint_findings(
        evidence.copy.checkpoint_file,
        first_store_time=first,
        last_store_time=last,
        log_end=evidence.log.data_end,
        unclean=evidence.copy.unclean,
        keyed_queues=evidence.copy.rules.rocksdb_queues,
    )


def time_of_head(evidence: Evidence, file: MappedFile) -> tuple[int, int]:
    """Earliest and latest store time of an unread segment, by its first record or an earlier run; else zeros."""
    known = evidence.earlier.unchanged(file.path)
    if known is not None and known.verified_run and known.row.get("messages"):
        return known.row["first_store_time_ms"], known.row["last_store_time_ms"]
    first = evidence.edges[file.path].first if file.path in evidence.edges else None
    return (first.store_time, first.store_time) if first is not None and first.check_ok and not first.blank else (0, 0)
