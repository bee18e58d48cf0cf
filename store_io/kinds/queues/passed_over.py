"""Entries of transactions in RocksDB that a broker writes and passes over itself: a producer put an "@" into its unique key
(rocksdb.md 10)."""

from __future__ import annotations

from schemas.finding_codes import Code
from schemas.rocksdb_layout import HALF_TOPIC, TABLES_FOLDER
from schemas.rows import NOTE, Finding
from store_io.base.wording import count_text
from store_io.model.evidence import Evidence


def passed_over(evidence: Evidence) -> list[Finding]:
    """Always a note, as every broker leaves them."""
    table = evidence.table_results.transactions
    if table is None or not table.passed_over:
        return []
    text = f'{count_text(table.passed_over, "entry", "entries")} of transactions in RocksDB with another "@" in the unique key'
    return [
        Finding(
            Code.TRANSACTION_ENTRY_MISSING,
            TABLES_FOLDER,
            severity=NOTE,
            phy_offset=table.first_passed_over,
            topic=HALF_TOPIC,
            message=f"{text}: 5.5.0 passes over such, and never asks the producer",
            count=table.passed_over,
        )
    ]
