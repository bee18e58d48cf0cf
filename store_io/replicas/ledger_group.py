"""Copies of one DLedger group: how far each log reaches by terms and indexes, and which copy proves a quorum.

Source: DLedgerLeaderElector.handleVote (a candidate whose last entry has a lower term, or the same term and a lower index, is
rejected), DLedgerEntryPusher.QuorumAckChecker (dledger.md 4, 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.rows import Row
from store_io.audit.audit_store import StoreAudit

COPIED = "A damaged node's log is not repaired: empty its store, and let it copy the log from the others."


def ledger_of(audit: StoreAudit) -> Row | None:
    """The copy's last entry and what its checkpoint calls committed, as a start reads them; None without a DLedger log."""
    ledger = audit.prediction.ledger if audit.prediction is not None else None
    return {name: ledger[name] for name in ("end_index", "end_term", "committed_index")} if ledger is not None else None


def quorum_sentence(copies: Sequence[Row]) -> str:
    """Say which copies could be elected, and up to which place a quorum is proven. "" if fewer than two have a DLedger log."""
    known = [row for row in copies if row["dledger"] is not None]
    if len(known) < 2:
        return ""

    def last(row: Row) -> tuple[int, int]:
        return row["dledger"]["end_term"], row["dledger"]["end_index"]

    newest = max(map(last, known))
    able = [row["store"] for row in known if last(row) == newest]
    sentence = f"By their last entries {' and '.join(able)} would win an election: index {newest[1]:,} in term {newest[0]:,}"
    proof = max(known, key=lambda row: row["dledger"]["committed_index"])
    committed = proof["dledger"]["committed_index"]
    if committed < 0:
        return f"{sentence}; no copy proves a quorum. {COPIED}"
    return f"{sentence}; {proof['store']} proves a quorum for entries up to {committed:,}. {COPIED}"
