"""Table files in rocksdbstore/ that its database does not name: a MANIFEST that was cut opens as an older state without an error
(rocksdb.md 10)."""

from __future__ import annotations

from schemas.advice import Advice, Step
from schemas.finding_codes import Code
from schemas.rows import Finding
from schemas.severity_cases import Case, severity_in
from store_io.kinds.rocksdb_tables.table_kind import TABLES
from store_io.kinds.timers.timer_kind import TIMERS
from store_io.model.evidence import Evidence


def unnamed_tables(evidence: Evidence) -> list[Finding]:
    """Return findings on table files that the database in rocksdbstore/ does not know. A table in it must be in use.

    After an unclean exit a file may be there that was written, or taken out of use, as the broker died.
    """
    copy, tables, timers = evidence.copy, evidence[TABLES], evidence.copy[TIMERS].in_use
    transactions = tables.results.transactions
    in_use = tables.used is not None or timers is not None and timers.table is not None
    paths = tables.unnamed or (transactions.unnamed if transactions is not None else ())
    if not in_use:
        return []
    step = None if tables.used is not None else Advice(Step.REBUILD_TIMERS)
    if copy.unclean:
        step = Advice(Step.UNUSED_TABLE)
    return [
        Finding(
            Code.ROCKSDBSTORE_DAMAGED,
            path,
            severity=severity_in(Code.ROCKSDBSTORE_DAMAGED, Case.AFTER_CRASH, copy.unclean),
            actual="not in the MANIFEST",
            message="the database in rocksdbstore/ knows nothing of this table file: it may be an older state of it",
            next=step,
        )
        for path in sorted(paths)
    ]
