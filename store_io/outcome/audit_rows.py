"""Makes the rows of the Delta tables `segments`, `queues` and `index_files`.

Each row has a subject, whose fields and parts the columns name in `of` (`schemas.tables`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NamedTuple

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
    BrokerStop,
    EarlierSegment,
    Extent,
    Finding,
    IndexFileSummary,
    Row,
    SegmentSummary,
)
from schemas.tables import INDEX_FILES, QUEUES, SEGMENTS
from store_io.base.packed import keys_of, packed, weight_of_row
from store_io.base.ranges import total, union
from store_io.broker.prediction import BrokerQueue
from store_io.checks.changed_bytes import FirstRead
from store_io.kinds.index.index_kind import INDEX
from store_io.model.evidence import Evidence
from store_io.model.loss import QueueLoss
from store_io.model.queue_runs import FAR, NO_RUNS
from store_io.wording.gaps import gap_text

_NO_LOSS = QueueLoss()
_EXTENT = tuple(one.name for one in fields(Extent))  # `asdict` copies values deeply: of a hundred thousand that takes seconds


# ---- segments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Segment:
    """The subject of a row of `segments`.

    findings: None if the file was not read and none is on it.
    scan, stop, contents: what reading all its bytes has shown; None if this run has not.
    known: the earlier run that has, if the file is unchanged since.
    first: the first run that has, with this modification time.
    """

    path: str
    base_offset: int
    size: int
    modified_ns: int | None
    findings: int | None
    wrote_after_load: int | None
    bytes_read: int
    edge_digest: str | None
    problem: str | None
    broker_reads: bool | None
    scan: SegmentSummary | None = None
    known: EarlierSegment | None = None
    first: FirstRead | None = None

    @property
    def stop(self) -> BrokerStop | None:
        return self.scan.broker if self.scan is not None else None

    @property
    def contents(self) -> _Contents | None:
        return _Contents(self.scan) if self.scan is not None else None


class _Contents:
    """The bytes of a segment by kind, and the messages in it. Empty values are None."""

    def __init__(self, scan: SegmentSummary):
        size: Counter[str] = Counter()
        for extent in scan.extents:
            size[extent.kind] += extent.end - extent.start
        self.message_bytes, self.filler_bytes = size[EXTENT_MESSAGE], size[EXTENT_FILLER]
        self.unwritten_bytes, self.damaged_bytes = size[EXTENT_UNWRITTEN], size[EXTENT_DAMAGED]
        self.messages = sum(extent.message_count for extent in scan.extents)
        self.plausible_messages = sum(extent.message_count for extent in scan.extents if extent.plausible)
        self.extents = [{name: getattr(extent, name) for name in _EXTENT} for extent in scan.extents]
        self.digest = scan.digest or None
        self.first_store_time, self.last_store_time = scan.first_store_time or None, scan.last_store_time or None


# Of a segment that is unchanged, these columns hold what the run that has read it wrote.
_OF_ITS_BYTES = ("findings", *SEGMENTS.of_parts("scan", "stop", "contents"))


def segment_rows(
    evidence: Evidence, findings: Sequence[Finding], held: Mapping[str, FirstRead] = MappingProxyType({})
) -> list[Row]:
    """Return one row per CommitLog file, by name. held: as `changed_bytes.first_reads` gives it."""
    p = evidence.prediction
    loaded = {f.path: i for i, f in enumerate(evidence.copy.loaded.segments)}
    wrote = {f.file.path: f.wrote for f in p.after_load.log} if p is not None and p.after_load is not None else {}
    scanned = set(p.scanned) if p is not None else set()
    paths = {s.path for s in evidence.segments} | {f.path for f in evidence.unread}  # findings may name a million files
    blamed = Counter(f.file for f in findings if f.file in paths and f.weight != NOTE)

    def of_file(path: str, base_offset: int, size: int, **more: Any) -> _Segment:
        entry = evidence.copy.listing.get(path)
        modified_ns, found = entry.mtime_ns if entry else None, blamed[path] if more.get("scan") else blamed[path] or None
        return _Segment(path, base_offset, size, modified_ns, found, wrote.get(path), first=held.get(path), **more)

    rows = [
        SEGMENTS.row(
            of_file(
                segment.path,
                segment.base_offset,
                segment.size,
                bytes_read=segment.bytes_read,
                edge_digest=segment.edge_digest or None,
                problem=_said(segment.problem),
                broker_reads=loaded.get(segment.path) in scanned if p is not None else None,
                scan=None if segment.problem else segment,
            )
        )
        for segment in evidence.segments
    ]
    for file in evidence.unread:  # this run has read its edges alone
        edges, known = evidence.edges.get(file.path), evidence.earlier.unchanged(file.path)
        row = SEGMENTS.row(
            of_file(
                file.path,
                file.start,
                file.size,
                bytes_read=edges.bytes_read if edges else 0,
                edge_digest=(edges.digest if edges else "") or None,
                problem=_said(edges.problem if edges else None),
                broker_reads=False if p is not None else None,
                known=known if known is not None and known.verified_run else None,
            )
        )
        if known is not None and known.verified_run:
            row |= {name: known.row.get(name) for name in _OF_ITS_BYTES}
        rows.append(row)
    return sorted(rows, key=lambda row: (row["base_offset"], row["file"]))


# ---- queues --------------------------------------------------------------------------------------------------------


class _Disk(NamedTuple):
    """The entries of a queue on disk. end: the queue offset after the last one."""

    entries: int
    end: int


class _Log(NamedTuple):
    """The messages of the CommitLog that belong to a queue."""

    first_offset: int
    end_offset: int
    first_store_time: int
    last_store_time: int


class _Both(NamedTuple):
    """Messages of a queue by how their entry was found, and entries without a message."""

    equal: int
    shifted: int
    wrong: int
    missing: int
    unexpected: int


class _Queue(NamedTuple):
    """The subject of a row of `queues`.

    disk, log, both: None if that side, or one of both, was not read. load, dispatch: None if nothing starts.
    loss: None if it is not known. lost: the same, None without a message.
    """

    topic: str
    queue_id: int
    batch: bool
    lmq: bool
    file_count: int
    bytes_read: int
    problem: str | None
    compared: list[Row] | None
    files: list[Row]
    log_messages: int | None
    disk: _Disk | None
    log: _Log | None
    both: _Both | None
    load: BrokerQueue | None
    dispatch: BrokerQueue | None
    loss: QueueLoss | None
    lost: QueueLoss | None


def queue_rows(evidence: Evidence, findings: Sequence[Finding]) -> Sequence[Row]:
    """Return one row per queue that the log, the disk or the broker's memory knows, by topic and queue id."""
    return packed(map(QUEUES.row, _queues(evidence, findings)), weight_of_row)


def _queues(evidence: Evidence, findings: Sequence[Finding]) -> Iterator[_Queue]:
    p = evidence.prediction
    load = p.after_load.queues if p is not None and p.after_load is not None else {}
    later = p.settled.queues if p is not None and p.settled is not None else {}
    log_read = not evidence.unread and not any(segment.problem for segment in evidence.segments)
    full = evidence.request.level == "full"
    unexpected: Counter[tuple[str, int]] = Counter()
    for finding in findings:
        if finding.code in (Code.QUEUE_ENTRY_UNEXPECTED, Code.QUEUE_ENTRY_TWICE) and finding.topic is not None:
            unexpected[finding.topic, finding.queue_id or 0] += finding.count + finding.more
    for key in keys_of(evidence.views, load, later):
        view = evidence.views.get(key)
        summary = view.summary if view is not None else None
        runs = view.runs.rows if view is not None else NO_RUNS
        if view is not None and not view.lmq:
            runs = runs[runs["kind"] == RUN_QUEUE]
        counts = {match: int(runs["messages"][runs["match"] == match].sum()) for match in range(MATCH_MISSING + 1)}
        none_there = summary is None and (view is None or not view.files and not view.keyed)
        disk_read = none_there or (summary is not None and not summary.problem and full)
        loss = evidence.loss.by_queue.get(key, _NO_LOSS) if evidence.loss is not None else None
        matches = counts[MATCH_EQUAL], counts[MATCH_SHIFTED], counts[MATCH_DIFFERS], counts[MATCH_MISSING]
        yield _Queue(
            topic=key[0],
            queue_id=key[1],
            batch=key[0] in evidence.copy.batch_topics,
            lmq=bool(view is not None and view.lmq),
            file_count=len(view.files) if view is not None else 0,
            bytes_read=summary.bytes_read if summary else 0,
            problem=_said(summary.problem if summary else None),
            compared=[
                {"file": path, "entries": entries, "digest": digest}
                for path, (entries, digest) in sorted(summary.used_digests.items())
            ]
            if summary and full
            else None,
            files=[
                {"file": path, "size_bytes": entry.size, "digest": digest}
                for path, digest in sorted(summary.digests.items())
                if (entry := evidence.copy.listing.get(path)) is not None and digest
            ]
            if summary is not None and not summary.problem
            else [],
            log_messages=sum(counts.values()) if log_read else None,
            disk=_Disk(
                total(union(summary.used)) - summary.zeros_among_used if summary else 0, summary.used_end if summary else 0
            )
            if disk_read
            else None,
            log=_log_of(runs) if len(runs) and log_read else None,
            both=_Both(*matches, unexpected[key]) if disk_read and log_read else None,
            load=load.get(key),
            dispatch=later.get(key),
            loss=loss,
            lost=loss if loss is not None and loss.messages else None,
        )


def _log_of(runs: np.ndarray) -> _Log:
    far = int(np.abs(runs["queue_offset"]).max()) > FAR
    offsets = runs["queue_offset"].astype(object) if far else runs["queue_offset"]
    times = int(runs["first_store_time"].min()), int(runs["last_store_time"].max())
    return _Log(int(offsets.min()), int((offsets + runs["messages"]).max()), *times)


# ---- index files ---------------------------------------------------------------------------------------------------


class _Index(NamedTuple):
    """The subject of a row of `index_files`. header: None if it could not be read. kept: None if nothing starts."""

    summary: IndexFileSummary
    header: IndexFileSummary | None
    problem: str | None
    findings: int | None
    kept: bool | None


def index_rows(evidence: Evidence, findings: Sequence[Finding]) -> list[Row]:
    """Return one row per index file, by name."""
    p = evidence.prediction
    kept = {f.path for f in p.after_load.index} if p is not None and p.after_load is not None else None
    blamed = Counter(f.file for f in findings if f.file in evidence[INDEX])
    return [
        INDEX_FILES.row(
            _Index(
                index,
                None if index.problem else index,
                _said(index.problem),
                blamed[index.path] or (None if index.problem else 0),
                None if kept is None else index.path in kept,
            )
        )
        for _, index in sorted(evidence[INDEX].items())
    ]


def _said(problem: Gap | None) -> str | None:
    return gap_text(problem) if problem else None
