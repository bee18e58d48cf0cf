"""An audit's summaries -> rows of the Delta tables `segments`, `queues` and `index_files` (columns of schemas/tables.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.rows import (
    EXTENT_DAMAGED,
    EXTENT_FILLER,
    EXTENT_MESSAGE,
    EXTENT_UNWRITTEN,
    MATCH_DIFFERS,
    MATCH_EQUAL,
    MATCH_MISSING,
    MATCH_SHIFTED,
    NOTE,
    RUN_QUEUE,
    Extent,
    Finding,
    MappedFile,
    QueueKey,
    Row,
)
from store_io.base.packed import keys_of, packed, weight_of_row
from store_io.base.ranges import total, union
from store_io.kinds.index.index_kind import INDEX
from store_io.model.evidence import Evidence
from store_io.model.loss import Loss
from store_io.model.queue_runs import FAR, NO_RUNS
from store_io.wording.gaps import gap_text

_EXTENT = tuple(one.name for one in fields(Extent))  # `asdict` copies values deeply: of a hundred thousand that takes seconds

_OF_INDEX = {
    "begin_time_ms": "begin_timestamp",
    "end_time_ms": "end_timestamp",
    **{name: name for name in ("begin_phy_offset", "end_phy_offset", "hash_slot_count", "index_count", "entries")},
}


def segment_rows(evidence: Evidence, findings: Sequence[Finding]) -> list[Row]:
    """One row per CommitLog file, by name."""
    p = evidence.prediction
    loaded = {f.path: i for i, f in enumerate(evidence.copy.loaded.segments)}
    wrote = {f.file.path: f.wrote for f in p.after_load.log} if p is not None and p.after_load is not None else {}
    scanned = set(p.scanned) if p is not None else set()
    paths = {s.path for s in evidence.segments} | {f.path for f in evidence.unread}  # findings may name a million files
    blamed = Counter(f.file for f in findings if f.file in paths and f.weight != NOTE)

    def of_file(path: str, base_offset: int, size: int) -> Row:
        entry = evidence.copy.listing.get(path)
        return {
            "file": path,
            "base_offset": base_offset,
            "size_bytes": size,
            "modified_ns": entry.mtime_ns if entry else None,
            "findings": blamed[path] or None,
            "wrote_after_load": wrote.get(path),
            "verified_run": None,  # null: this run
            "verified_at": None,
        }

    rows = []
    for segment in evidence.segments:
        row = of_file(segment.path, segment.base_offset, segment.size)
        row |= {
            "digest": segment.digest or None,
            "edge_digest": segment.edge_digest or None,
            "bytes_read": segment.bytes_read,
            "problem": _said(segment.problem),
            "broker_reads": loaded.get(segment.path) in scanned if p is not None else None,
        }
        rows.append(row)
        if segment.problem:  # nothing else is known of it
            continue
        by_kind: Counter[str] = Counter()
        for extent in segment.extents:
            by_kind[extent.kind] += extent.end - extent.start
        row |= {
            "findings": blamed[segment.path],
            "stop_kind": segment.broker.kind,
            "stop_position": segment.broker.position,
            "stop_reason": segment.broker.reason,
            "messages": sum(e.message_count for e in segment.extents),
            "plausible_messages": sum(e.message_count for e in segment.extents if e.plausible),
            "first_store_time_ms": segment.first_store_time or None,
            "last_store_time_ms": segment.last_store_time or None,
            "message_bytes": by_kind[EXTENT_MESSAGE],
            "filler_bytes": by_kind[EXTENT_FILLER],
            "unwritten_bytes": by_kind[EXTENT_UNWRITTEN],
            "damaged_bytes": by_kind[EXTENT_DAMAGED],
            "extents": [{name: getattr(extent, name) for name in _EXTENT} for extent in segment.extents],
        }
    rows += [_unread_row(evidence, file, of_file(file.path, file.start, file.size)) for file in evidence.unread]
    return sorted(rows, key=lambda row: (row["base_offset"], row["file"]))


_OF_THE_FILE = tuple(
    "digest stop_kind stop_position stop_reason messages plausible_messages first_store_time_ms last_store_time_ms "
    "message_bytes filler_bytes unwritten_bytes damaged_bytes extents findings".split()
)


def _unread_row(evidence: Evidence, file: MappedFile, row: Row) -> Row:
    """Return the row of a segment of which this run has read the edges alone.

    The facts that an earlier run has verified still hold if the segment is unchanged.
    """
    edges, known = evidence.edges.get(file.path), evidence.earlier.unchanged(file.path)
    row |= {
        "digest": None,
        "edge_digest": (edges.digest if edges else "") or None,
        "bytes_read": edges.bytes_read if edges else 0,
        "problem": _said(edges.problem if edges else None),
        "broker_reads": False if evidence.prediction is not None else None,
    }
    if known is not None and known.verified_run:
        row |= {name: known.row.get(name) for name in _OF_THE_FILE}
        row |= {"verified_run": known.verified_run, "verified_at": known.verified_at}
    return row


def queue_rows(evidence: Evidence, findings: Sequence[Finding]) -> Sequence[Row]:
    """One row per queue that the log, the disk or the broker's memory knows, by topic and queue id."""
    return packed(_queue_rows(evidence, findings), weight_of_row)


def _queue_rows(evidence: Evidence, findings: Sequence[Finding]) -> Iterator[Row]:
    p = evidence.prediction
    load = p.after_load.queues if p is not None and p.after_load is not None else {}
    later = p.settled.queues if p is not None and p.settled is not None else {}
    log_read = not evidence.unread and not any(segment.problem for segment in evidence.segments)
    unexpected: Counter[tuple[str, int]] = Counter()
    for finding in findings:
        if finding.code in (Code.QUEUE_ENTRY_UNEXPECTED, Code.QUEUE_ENTRY_TWICE) and finding.topic is not None:
            unexpected[finding.topic, finding.queue_id or 0] += finding.count
    for key in keys_of(evidence.views, load, later):
        view = evidence.views.get(key)
        summary = view.summary if view is not None else None
        runs = view.runs.rows if view is not None else NO_RUNS
        if view is not None and not view.lmq:
            runs = runs[runs["kind"] == RUN_QUEUE]
        counts = {match: int(runs["messages"][runs["match"] == match].sum()) for match in range(MATCH_MISSING + 1)}
        none_there = summary is None and (view is None or not view.files and not view.keyed)
        disk_read = none_there or (summary is not None and not summary.problem and evidence.request.level == "full")
        row: Row = {
            "topic": key[0],
            "queue_id": key[1],
            "batch": key[0] in evidence.copy.batch_topics,
            "lmq": bool(view is not None and view.lmq),
            "file_count": len(view.files) if view is not None else 0,
            "bytes_read": summary.bytes_read if summary else 0,
            "problem": _said(summary.problem if summary else None),
            "compared": [
                {"file": path, "entries": entries, "digest": digest}
                for path, (entries, digest) in sorted(summary.used_digests.items())
            ]
            if summary and evidence.request.level == "full"
            else None,
            "log_messages": sum(counts.values()) if log_read else None,
            "files": [
                {"file": path, "size_bytes": entry.size, "digest": digest}
                for path, digest in sorted(summary.digests.items())
                if (entry := evidence.copy.listing.get(path)) is not None and digest
            ]
            if summary is not None and not summary.problem
            else [],
        }
        if disk_read:
            row["disk_entries"] = total(union(summary.used)) if summary else 0
            row["disk_end"] = summary.used_end if summary else 0
        if disk_read and log_read:
            row |= {"equal": counts[MATCH_EQUAL], "shifted": counts[MATCH_SHIFTED], "wrong": counts[MATCH_DIFFERS]}
            row |= {"missing": counts[MATCH_MISSING], "unexpected": unexpected[key]}
        row |= _lost(evidence.loss, key)
        if len(runs) and log_read:
            far = int(np.abs(runs["queue_offset"]).max()) > FAR
            offsets = runs["queue_offset"].astype(object) if far else runs["queue_offset"]
            row["log_first_offset"] = int(offsets.min())
            row["log_end_offset"] = int((offsets + runs["messages"]).max())
            row["first_store_time_ms"] = int(runs["first_store_time"].min())
            row["last_store_time_ms"] = int(runs["last_store_time"].max())
        for name, states in (("load", load), ("dispatch", later)):
            state = states.get(key)
            if state is not None:
                row[f"{name}_min_offset"] = state.min_offset
                row[f"{name}_max_offset"] = state.max_offset
                row[f"{name}_max_phy_offset"] = state.max_phy
        yield row


def _lost(loss: Loss | None, key: QueueKey) -> Row:
    """Return the loss of a queue by a start; {} if it is not known."""
    if loss is None:
        return {}
    lost = loss.by_queue.get(key)
    if lost is None or not lost.messages:
        return {"lost_messages": 0, "lost_bytes": 0}
    times = {"lost_first_store_time_ms": lost.first_store_time, "lost_last_store_time_ms": lost.last_store_time}
    return {"lost_messages": lost.messages, "lost_bytes": lost.bytes, **times}


def index_rows(evidence: Evidence, findings: Sequence[Finding]) -> list[Row]:
    """One row per index file, by name."""
    p = evidence.prediction
    kept = {f.path for f in p.after_load.index} if p is not None and p.after_load is not None else None
    blamed = Counter(f.file for f in findings if f.file in evidence[INDEX])
    return [
        {
            "file": index.path,
            "size_bytes": index.size,
            "digest": index.digest,
            "bytes_read": index.bytes_read,
            "problem": _said(index.problem),
            **({} if index.problem else {column: getattr(index, name) for column, name in _OF_INDEX.items()}),
            "findings": blamed[index.path] or (None if index.problem else 0),
            "kept": None if kept is None else index.path in kept,
        }
        for _, index in sorted(evidence[INDEX].items())
    ]


def _said(problem: Gap | None) -> str | None:
    return gap_text(problem) if problem else None
