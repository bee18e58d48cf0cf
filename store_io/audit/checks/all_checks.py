"""The checks over one copy's evidence, in order.

`StoreAudit` adds what a start would do (`broker_start`) where the audit is complete, and that an earlier audit saw more
(`emptied.shrunk_findings`). Other copies of the log add theirs (`replicas.replica_findings`). Tasks and the readers of small
files make findings while they read; `scan_findings` and `small_files` take these in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from schemas.rows import Finding
from store_io.audit.checks.emptied import empty_findings
from store_io.audit.checks.file_names import file_names
from store_io.audit.checks.lost_messages import lost_messages
from store_io.audit.checks.repaired_store import repaired
from store_io.audit.checks.scan_findings import scan_findings, unread_heads, unwritten_ends
from store_io.audit.checks.sequences import sequences
from store_io.base.packed import GrowingList
from store_io.kinds.checkpoint.checkpoint_times import checkpoint_times
from store_io.kinds.compaction.compacted_topics import compacted_topics
from store_io.kinds.config.against_queues import against_queues
from store_io.kinds.config.lost_tables import lost_tables
from store_io.kinds.controller.epoch_findings import epoch_findings
from store_io.kinds.dledger.entry_chain import entry_chain
from store_io.kinds.dledger.ledger_index import ledger_index
from store_io.kinds.dledger.ledger_terms import ledger_terms
from store_io.kinds.index.unindexed import unindexed
from store_io.kinds.queues.disputed import disputed, settled
from store_io.kinds.queues.passed_over import passed_over
from store_io.kinds.queues.queue_entries import queue_entries
from store_io.kinds.rocksdb_queues.double_write_findings import queue_twins
from store_io.kinds.rocksdb_queues.queue_database import queue_database
from store_io.kinds.rocksdb_tables.rocksdb_tables import rocksdb_tables
from store_io.kinds.rocksdb_tables.unnamed_tables import unnamed_tables
from store_io.kinds.tiered.tiered_store import tiered_store
from store_io.kinds.timers.timer_entry_findings import timer_entry_findings
from store_io.kinds.timers.timer_findings import timer_findings
from store_io.model.evidence import Evidence
from store_io.model.facts.size_misfits import misfit_findings

Check = Callable[[Evidence], Iterable[Finding]]


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
    entry_chain,
    ledger_index,
    ledger_terms,
)
REST: tuple[Check, ...] = (
    unindexed, compacted_topics, tiered_store, checkpoint_times, epoch_findings, timer_findings, timer_entry_findings,
    rocksdb_tables, passed_over, unnamed_tables, small_files, lost_tables, against_queues, repaired,
)  # fmt: skip


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
