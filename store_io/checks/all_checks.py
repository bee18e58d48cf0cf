"""Runs the checks over one copy's evidence, in order; those of a kind are listed in its `Room` (`kinds.all_kinds`).

Tasks make findings while they read, and `scan_findings` takes these in. `StoreAudit` adds what a start would do (`broker_start`)
if the audit is complete, and that an earlier audit saw more (`emptied.shrunk_findings`). Other copies of the log add theirs
(`replicas.compared_copies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from schemas.finding_codes import Code
from schemas.rows import Finding, IndexFileSummary, QueueSummary
from store_io.base.packed import PackedList
from store_io.checks.disputed import disputed
from store_io.checks.emptied import empty_findings
from store_io.checks.file_names import file_names
from store_io.checks.joined_files import filler_sizes, stores_merged
from store_io.checks.lost_messages import lost_messages
from store_io.checks.repaired_store import repaired
from store_io.checks.sequences import sequences
from store_io.kinds.all_kinds import ROOMS, Check
from store_io.kinds.dledger.ledger_checks import torn_entry
from store_io.kinds.index.index_kind import INDEX, without_echoes
from store_io.kinds.queues.queue_kind import QUEUES
from store_io.kinds.rocksdb_queues.rocksdb_queue_kind import ROCKS_QUEUES
from store_io.log.scan import odd_headers
from store_io.model.evidence import Evidence
from store_io.model.facts.size_misfits import misfit_findings

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
    """Yield the findings of segments, and of what kinds have read: queues and index files.

    An entry may lie in an index file that was not opened, and lead to a message of a segment that was not opened.
    """
    of_segments = odd_headers.told_once(evidence.segments)
    read: Iterable[QueueSummary | IndexFileSummary] = chain(
        evidence.results(QUEUES).summaries.values(), evidence.results(ROCKS_QUEUES).summaries.values(), evidence[INDEX].values()
    )
    absent = (*_NO_MESSAGE * evidence.log_not_opened, *_NO_ENTRY * evidence.index_not_opened)
    yield from (torn_entry(evidence, f) for f in chain(of_segments, *(one.findings for one in read)) if f.code not in absent)


def unwritten_ends(evidence: Evidence) -> list[Finding]:
    """Return segments whose end was never written although later ones hold messages."""
    return evidence.holes.findings() if evidence.log_whole else []


def misfits(evidence: Evidence) -> list[Finding]:
    """Return the findings on sizes in broker.conf that no file has."""
    return misfit_findings(evidence.copy.misfits)


COMPARED: tuple[Check, ...] = (  # their findings on derived data may blame the message as well
    unread_heads,
    file_names,
    scan_findings,
    unwritten_ends,
    empty_findings,
    sequences,
    lost_messages,
    *chain.from_iterable(room.log_checks for room in ROOMS),
)

REST: tuple[Check, ...] = (
    *chain.from_iterable(room.checks for room in ROOMS),
    misfits,
    stores_merged,
    filler_sizes,
    repaired,
)


def run_checks(evidence: Evidence) -> PackedList[Finding]:
    """Return the findings on the copy, whatever a start would do with it."""
    found: PackedList[Finding] = PackedList()
    for check in COMPARED:
        found += check(evidence)
    found = without_echoes(evidence, found)
    found += disputed(evidence, found)
    for check in REST:
        found += check(evidence)
    return found
