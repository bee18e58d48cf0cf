"""Kinds of store that no repair is written for, and what is to be done with them instead."""

from __future__ import annotations

from schemas.finding_codes import NO_REPAIR, REBUILD_BY_START
from schemas.rows import AuditOutcome
from store_io.rules.dledger.ledger_files import ledger_peers
from store_io.rules.releases import ROCKSDB_STORE_TYPE, parse_release, release_rules


def no_repair(outcome: AuditOutcome) -> str:
    """Why no repair can be made of a store of this kind, a sentence or two; "" where one can."""
    settings = outcome.plan.get("settings", {})
    if settings.get("enableDLegerCommitLog", {}).get("value"):
        return NO_REPAIR if len(ledger_peers(settings.get("dLegerPeers", {}).get("value", ""))) > 1 else ""
    if settings.get("storeType", {}).get("value") == ROCKSDB_STORE_TYPE:
        return REBUILD_BY_START if release_rules(parse_release(outcome.release)).knows_store_type else ""
    return ""
