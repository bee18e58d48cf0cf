"""Table files in rocksdbstore/ that its database does not name: a MANIFEST that was cut opens as an older state without an error
(rocksdb.md 10)."""

from __future__ import annotations

from schemas.finding_codes import Code, Cure
from schemas.rows import NOTE, Finding
from store_io.model.evidence import Evidence

_NOTHING = "Nothing: a broker that was killed may leave a table that it was writing, or that it no longer used."


def unnamed_tables(evidence: Evidence) -> list[Finding]:
    """Return findings on table files that the database in rocksdbstore/ does not know. A table in it must be in use.

    After an unclean exit a file may be there that was written, or taken out of use, as the broker died.
    """
    copy, transactions = evidence.copy, evidence.table_results.transactions
    in_use = copy.tables is not None or copy.timers is not None and copy.timers.table is not None
    paths = copy.unnamed_tables or (transactions.unnamed if transactions is not None else ())
    if not in_use:
        return []
    step = _NOTHING if copy.unclean else "" if copy.tables is not None else Cure.REBUILD_TIMERS.value
    return [
        Finding(
            Code.ROCKSDBSTORE_DAMAGED,
            path,
            severity=NOTE if copy.unclean else "",
            actual="not in the MANIFEST",
            message="the database in rocksdbstore/ knows nothing of this table file: it may be an older state of it",
            next=step,
        )
        for path in sorted(paths)
    ]
