"""A segment's first record and its edges, without the rest. A broker looks at them to choose where recovery begins. They also
show cheaply whether a segment is the one that an earlier run has read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.advice import Gap
from schemas.finding_codes import Code
from schemas.layouts import commitlog_layout as layout
from schemas.rows import Finding, FirstRecord, MappedFile
from store_io.base.errors import StoreChanged, StoreError
from store_io.broker.message_verdict import END, VALID
from store_io.broker.releases import BrokerRules
from store_io.log.records.message_columns import RecordCheck
from store_io.log.records.message_decode import stored_fields
from store_io.source.byte_file import ByteFile
from store_io.source.byte_source import ByteSource, StoreLocation, open_source
from store_io.source.segment_window import SegmentWindow

EDGE_BYTES = 4096  # at each end of the file
WINDOW_BYTES = 64 << 10  # a larger first record is read in pieces


@dataclass(frozen=True)
class EdgeTask:
    """Segments to look at. Picklable."""

    store: int
    location: StoreLocation
    rules: BrokerRules
    files: tuple[MappedFile, ...]
    not_after: float = 0  # always in time: it costs next to nothing

    @property
    def bytes_to_read(self) -> int:
        return 2 * EDGE_BYTES * len(self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    def run(self) -> list[SegmentEdges]:
        return scan_edges(self)


@dataclass
class SegmentEdges:
    """The facts that the ends of one segment show.

    findings: the audit's, if the segment does not begin with a message.
    """

    path: str
    first: FirstRecord = field(default_factory=FirstRecord)
    digest: str = ""  # of both edges and the length
    bytes_read: int = 0
    findings: list[Finding] = field(default_factory=list)
    problem: Gap | None = None


def scan_edges(task: EdgeTask) -> list[SegmentEdges]:
    """Return the edges of each file, in their order.

    Never raises over bytes; a file that cannot be read gives `problem` alone.
    """
    source = open_source(task.location)
    return [_edges(task, source, file) for file in task.files]


def edge_digest(file: ByteFile) -> str:
    """Return the digest of a file's length and of the bytes at both its ends."""
    digest = hashlib.blake2b(file.size.to_bytes(8, "big"), digest_size=16)
    digest.update(file.read(0, EDGE_BYTES))
    digest.update(file.read(max(EDGE_BYTES, file.size - EDGE_BYTES), EDGE_BYTES))
    return digest.hexdigest()


def first_record(window: SegmentWindow, broker: RecordCheck) -> FirstRecord:
    """Return the segment's first record as the release's search for its start segment sees it."""
    start = broker.framing.header_bytes
    fields = stored_fields(window.read(start, start + layout.BODY_POSITION))
    verdict = broker.verdict(window, 0, window.size)
    return FirstRecord(
        magic=fields["MAGICCODE"],
        store_time=fields["STORETIMESTAMP"],
        phy_offset=fields["PHYSICALOFFSET"],
        check_ok=verdict.kind in (VALID, END),
        blank=verdict.kind == END,
        total_size=fields["TOTALSIZE"],
    )


def _edges(task: EdgeTask, source: ByteSource, file: MappedFile) -> SegmentEdges:
    edges = SegmentEdges(file.path)
    try:
        with source.open(file.path, sparsely=True) as stream:
            if stream.size != file.size:
                raise StoreChanged.in_size(file.path, stream.size, file.size)
            window = SegmentWindow(stream, file.size, min(WINDOW_BYTES, file.size))
            edges.first = first_record(window, RecordCheck.broker(task.rules, file.path))
            edges.digest = edge_digest(stream)
            edges.findings = _head_findings(task, file, window)
            edges.bytes_read = window.bytes_read + min(file.size, 2 * EDGE_BYTES)
    except StoreError as why:
        edges.problem = why.gap(edges.path)
    return edges


def _head_findings(task: EdgeTask, file: MappedFile, window: SegmentWindow) -> list[Finding]:
    """Report a segment that begins with no message and no filler, although it is written."""
    check = RecordCheck.audit_of(file.start, task.rules, file.path)
    verdict, record = check.verdict(window, 0, file.size), check.framing.header_bytes
    if verdict.kind in (VALID, END) or not any(window.read(0, record + layout.MIN_SIZE_V1_BYTES)):
        return []
    fields = stored_fields(window.read(record, record + layout.BODY_POSITION))
    if verdict.reason == "phy_offset":
        at, own, stored = record + layout.PHY_OFFSET_POSITION, file.start + record, str(fields["PHYSICALOFFSET"])
        return [Finding(Code.COMMITLOG_FOREIGN, file.path, at, at + 8, phy_offset=own, expected=str(own), actual=stored)]
    claimed = record + fields["TOTALSIZE"]
    end = claimed if record + layout.MIN_SIZE_V1_BYTES <= claimed <= file.size else min(layout.FRAME_BYTES, file.size)
    return [
        Finding(
            Code.COMMITLOG_DAMAGED, file.path, 0, end, phy_offset=file.start, expected="a message or a filler",
            actual=verdict.reason, message="the segment does not begin with a valid message; its rest was not read",
        )
    ]  # fmt: skip


def edge_tasks(
    store: int, location: StoreLocation, rules: BrokerRules, files: Sequence[MappedFile], count: int
) -> list[EdgeTask]:
    """Return tasks of `count` segments each."""
    parts = [tuple(files[at : at + count]) for at in range(0, len(files), count)]
    return [EdgeTask(store, location, rules, part) for part in parts]
