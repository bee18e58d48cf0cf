"""Files of the log that no one broker wrote with these settings: of two brokers, or of a smaller size of segments."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rows import EXTENT_DAMAGED, RUN_QUEUE, Finding, SegmentSummary
from store_io.base.wording import count_text
from store_io.model.evidence import Evidence
from store_io.model.queue_views import QueueView
from store_io.source.byte_source import name_of

LEAST_SIZE = 1024  # of a segment: the ends of fillers that are damage have no such divisor in common
LEAST_QUEUES = 2  # that do not continue where the files of two brokers meet
MOST_CHANCE = 4  # so many that do not for one that continues by chance


def stores_merged(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each segment at which files of two brokers meet.

    Of the queues that both segments have hardly one continues there, and the segment is older than the one before, or queue
    offsets go back. A clock that was set back leaves the queues as they are, zeros before a segment only let them skip offsets,
    and a topic that was made again lies in the middle of a segment.
    """
    if not evidence.log_whole or evidence.unread or len(evidence.segments) < 2:
        return
    edges = _Edges(len(evidence.segments))
    for view in evidence.views.values():
        edges.add(view)
    for number in np.flatnonzero((edges.broken >= LEAST_QUEUES) & (edges.broken >= MOST_CHANCE * edges.continued)).tolist():
        before, segment = evidence.segments[number - 1], evidence.segments[number]
        older = segment.last_store_time < before.first_store_time
        if before.base_offset + before.size == segment.base_offset and (older or edges.back[number] >= LEAST_QUEUES):
            yield _meet(segment, older, int(edges.broken[number]), int(edges.back[number]))


def _meet(segment: SegmentSummary, older: bool, broken: int, back: int) -> Finding:
    name = f"segment {name_of(segment.path).lstrip('0') or '0'}"
    age = f"{name} is older than the ones before it, and " if older else f"at {name} "
    offsets = (
        f"offsets of {count_text(back, 'queue')} begin again" if back else f"none of {count_text(broken, 'queue')} continues"
    )
    return Finding(
        Code.STORES_MERGED,
        segment.path,
        phy_offset=segment.base_offset,
        expected="queues that continue",
        actual=f"{broken} that do not",
        message=f"{age}{offsets}: files of two brokers, or of two stores, lie in one folder",
    )


class _Edges:
    """Counts queues at the begin of each segment: those that continue, those that do not, those whose offsets go back."""

    def __init__(self, segments: int) -> None:
        self.continued, self.broken, self.back = (np.zeros(segments, np.int64) for _ in range(3))

    def add(self, view: QueueView) -> None:
        """Count a queue at each segment that begins between two of its runs, the first of them in the segment before."""
        if len(view.runs) < 2:  # as most of very many queues
            return
        rows, positions, segments = view.runs.rows, view.runs.positions, view.runs.segments
        own = np.flatnonzero((rows["kind"] == RUN_QUEUE) & (rows["regular"] != 0))
        own = own[np.argsort(positions[own], kind="stable")]
        rows, segments = rows[own], segments[own]
        at = np.flatnonzero(segments[1:] == segments[:-1] + 1)
        if not len(at):
            return
        first, last = rows["queue_offset"][at + 1], rows["queue_offset"][at]
        ends = last + rows["records"][at], last + rows["messages"][at]  # an entry leads to one message, or to a batch
        continued = (first == ends[0]) | (first == ends[1])
        np.add.at(self.continued, segments[at + 1][continued], 1)
        np.add.at(self.broken, segments[at + 1][~continued], 1)
        np.add.at(self.back, segments[at + 1][first < ends[0]], 1)


def filler_sizes(evidence: Evidence) -> Iterator[Finding]:
    """Yield the note on fillers inside of segments that all end at multiples of a smaller size, with messages after them."""
    size = whole = evidence.copy.rules.segment_bytes
    count, first = 0, ""
    for segment in evidence.segments:
        starts = {f.start for f in segment.findings if f.code == Code.FILLER_HIDES_MESSAGES}
        for extent in segment.extents if starts else ():
            if extent.kind == EXTENT_DAMAGED and extent.start in starts:
                size, count, first = gcd(size, segment.base_offset + extent.end), count + 1, first or segment.path
    if LEAST_SIZE <= size < whole and count:
        fillers = "The filler" if count == 1 else f"Each of {count:,} fillers"
        written = f"mappedFileSizeCommitLog={size}"
        message = f"{fillers} inside of segments ends at a multiple of {size} bytes: this log was written with {written}, and its"
        message += f" files have {whole} bytes"
        step = Advice(Step.SPLIT_SEGMENTS, (size, whole))
        yield Finding(Code.FILLER_OTHER_SIZE, first, expected=f"{whole}", actual=f"{size}", message=message, next=step)
