"""Stores with a DLedger log that are not repaired. A group of several nodes has better copies than a repaired one."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.finding_codes import CATALOGUE, Part
from schemas.layouts.store_names import COMMITLOG
from schemas.rows import Finding
from store_io.broker.releases import Setting
from store_io.broker.settings.ledger_files import ledger_peers

OLDER_PART = "the part of the log from before DLedger is damaged, and no repair writes that beside a DLedger log"


def is_group(settings: Mapping[str, Setting]) -> bool:
    """Say whether the log is that of a DLedger group of several nodes, by dLegerPeers."""
    return bool(settings["enableDLegerCommitLog"].value) and len(ledger_peers(settings["dLegerPeers"].value)) > 1


def older_part_damage(findings: list[Finding]) -> str:
    """Say why the older part of a mixed store forbids a repair; "" if it does not.

    findings: those above a note.
    """
    blamed = next((f for f in findings if f.file.startswith(COMMITLOG) and Part.LOG in CATALOGUE[f.code].about), None)
    return f"{blamed.file}: {OLDER_PART}" if blamed is not None else ""
