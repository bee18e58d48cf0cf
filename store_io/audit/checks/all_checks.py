"""The checks over one copy's evidence, in order.

`StoreAudit` adds what a start would do (`broker_start`) where the audit is complete, and that an earlier audit saw more
(`emptied.shrunk_findings`). Other copies of the log add theirs (`replicas.replica_findings`). Tasks and the readers of small
files make findings while they read; `scan_findings` and `small_files` take these in.
"""

from __future__ import annotations

from itertools import chain

from schemas.rows import Finding
from store_io.audit.checks.emptied import empty_findings
from store_io.audit.checks.file_names import file_names
from store_io.audit.checks.lost_messages import lost_messages
from store_io.audit.checks.repaired_store import repaired
from store_io.audit.checks.scan_findings import scan_findings, unread_heads, unwritten_ends
from store_io.audit.checks.sequences import sequences
from store_io.base.packed import GrowingList
from store_io.kinds.all_kinds import ROOMS, Check
from store_io.kinds.config.against_queues import against_queues
from store_io.kinds.config.lost_tables import lost_tables
from store_io.kinds.index.unindexed import unindexed
from store_io.kinds.queues.disputed import disputed, settled
from store_io.kinds.queues.queue_entries import queue_entries
from store_io.kinds.rocksdb_queues.double_write_findings import queue_twins
from store_io.kinds.rocksdb_queues.queue_database import queue_database
from store_io.model.evidence import Evidence
from store_io.model.facts.size_misfits import misfit_findings


def small_files(evidence: Evidence) -> list[Finding]:
    """Return the findings on config/ and other small files, and on sizes in broker.conf that no file has."""
    copy = evidence.copy
    return copy.config.findings + misfit_findings(copy.misfits)


COMPARED: tuple[Check, ...] = (  # their findings on derived data may blame the message as well
    unread_heads,
    file_names,
    scan_findings,
    unwritten_ends,
    empty_findings,
    sequences,
    queue_database,
    queue_entries,
    queue_twins,
    lost_messages,
    *chain.from_iterable(room.log_checks for room in ROOMS),
)
REST: tuple[Check, ...] = (
    unindexed,
    *chain.from_iterable(room.checks for room in ROOMS),
    small_files,
    lost_tables,
    against_queues,
    repaired,
)


def run_checks(evidence: Evidence) -> GrowingList[Finding]:
    """Return the findings on the copy, whatever a start would do with it."""
    found: GrowingList[Finding] = GrowingList()
    for check in COMPARED:
        found += check(evidence)
    found = settled(evidence, found)
    found += disputed(evidence, found)
    for check in REST:
        found += check(evidence)
    return found
