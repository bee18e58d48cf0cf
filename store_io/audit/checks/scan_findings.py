"""Findings that the tasks made while they read, each in its own file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.log.scan import torn_copies
from store_io.model.evidence import Evidence

_NO_MESSAGE, _NO_ENTRY = (
    (Code.INDEX_ENTRY_BEYOND_END, Code.INDEX_ENTRY_DANGLING),
    (Code.INDEX_ENTRY_MISSING,),
)  # say that something is not there
UNSETTLED_SEGMENTS = 2  # the newest, whose first record may be torn


def unread_heads(evidence: Evidence) -> list[Finding]:
    """Return findings on segments of which only the edges were read, and whose first bytes are no message."""
    files = evidence.unread[: -UNSETTLED_SEGMENTS or None] if evidence.read_last else []
    return [finding for file in files if file.path in evidence.edges for finding in evidence.edges[file.path].findings]


def scan_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of segments, queues and index files that were read.

    An entry may lie in an index file that was not opened, and lead to a message of a segment that was not opened.
    """
    of_segments = torn_copies.told_once(evidence.segments)
    of_queues = (queue.findings for queue in evidence.every_queue)
    of_index = (index.findings for index in evidence.index.values())
    absent = (*_NO_MESSAGE * evidence.log_not_opened, *_NO_ENTRY * evidence.index_not_opened)
    yield from (f for f in chain(of_segments, *of_queues, *of_index) if f.code not in absent)


def unwritten_ends(evidence: Evidence) -> list[Finding]:
    """Segments whose end was never written although later ones hold messages."""
    return evidence.holes.findings() if evidence.log_whole else []
