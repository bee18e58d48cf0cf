"""The terms of a DLedger node's entries against the term that it remembers: an older one could vote twice (dledger.md 5)."""

from __future__ import annotations

from schemas import dledger_layout as layout
from schemas.finding_codes import Code
from schemas.rows import Finding
from store_io.kinds.dledger.ledger_chain import live_stretches
from store_io.model.evidence import Evidence


def ledger_terms(evidence: Evidence) -> list[Finding]:
    """Return the finding on a currterm that is older than the log."""
    ledger = evidence.copy.loaded.ledger
    live = live_stretches(evidence.ledger.values()) if ledger is not None else []
    if ledger is None or not live:
        return []
    term, own = live[-1].stretch.last_term, evidence.copy.ledger_texts.term
    if term <= (own or 0):
        return []
    path = f"{ledger.folder}/{layout.TERM}"
    actual = f"currTerm={own}" if own is not None else "no term"
    return [Finding(Code.LEDGER_TERM_OLD, path, *evidence.copy.entry_range(path), expected=f"at least {term}", actual=actual)]
