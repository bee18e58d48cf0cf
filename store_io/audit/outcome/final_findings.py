"""Findings as an outcome has them: with severity, meaning and next step of the catalogue, each once, in a stable order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from schemas.finding_codes import (
    BY_A_REPAIR,
    CATALOGUE,
    NO_KEYED_REPAIR,
    NO_REPAIR,
    REBUILD_BY_START,
    STARTS_DISPATCH,
    Part,
)
from schemas.rows import Finding, IndexFileSummary, QueueSummary, SegmentSummary
from store_io.audit.evidence import Evidence
from store_io.audit.facts.size_misfits import with_cause
from store_io.audit.queue_leftovers import LeftoverResult
from store_io.base.exit_codes import severity_rank
from store_io.rules.dledger.ledger_files import ledger_peers

MAX_FINDINGS = 100_000


def final_findings(evidence: Evidence, findings: Iterable[Finding]) -> tuple[list[Finding], dict[str, int]]:
    """(those that are reported, how many of each code are only counted)."""
    dropped = _dropped(evidence)
    complete = {completed(finding) for finding in with_cause(findings, evidence.copy.misfits)}
    if (
        evidence.copy.loaded.ledger is not None and len(ledger_peers(evidence.copy.rules.value("dLegerPeers"))) > 1
    ):  # such a log is copied from others
        complete = {replace(f, next=NO_REPAIR) if f.next in BY_A_REPAIR else f for f in complete}
    if evidence.copy.queue_table is not None:
        complete = {_without_repair(f, _heals(evidence)) for f in complete}
    final = sorted(complete, key=_order)
    if len(final) > MAX_FINDINGS:  # the gravest are reported; the others are counted
        ranked = sorted(final, key=lambda f: severity_rank(f.severity))
        for finding in ranked[MAX_FINDINGS:]:
            dropped[finding.code] += 1
        final = sorted(ranked[:MAX_FINDINGS], key=_order)
    return final, dict(sorted(dropped.items()))


def completed(finding: Finding) -> Finding:
    """The finding with what it leaves to the catalogue."""
    entry = CATALOGUE[finding.code]
    severity = finding.severity or entry.severity
    next_step, message = finding.next or entry.next_at(severity), finding.message or entry.meaning
    return replace(finding, severity=severity, next=next_step, message=message)


def _heals(evidence: Evidence) -> bool:
    """Whether a start gives every message its entry."""
    starts = evidence.prediction is not None and evidence.prediction.starts
    return starts and evidence.loss is not None and not evidence.loss.messages


def _without_repair(finding: Finding, heals: bool) -> Finding:
    """Of a store with queues in RocksDB, for which no repair is written: another next step where a repair would be one."""
    if finding.next not in BY_A_REPAIR:
        return finding
    if heals and finding.code == "queue_entry_missing":
        return replace(finding, next=STARTS_DISPATCH)
    derived = CATALOGUE[finding.code].about == Part.QUEUE or finding.code in ("broker_refuses", "broker_skips_messages")
    return replace(finding, next=REBUILD_BY_START if derived else NO_KEYED_REPAIR)


def _dropped(evidence: Evidence) -> dict[str, int]:
    """What the tasks have only counted, by code."""
    dropped: dict[str, int] = defaultdict(int)
    holders: list[SegmentSummary | QueueSummary | IndexFileSummary | LeftoverResult] = []
    holders += [*evidence.segments, *evidence.queues.values(), *evidence.index.values(), *evidence.leftovers.values()]
    for holder in holders:
        for code, count in holder.findings_dropped.items():
            dropped[code] += count
    return dropped


def _order(finding: Finding) -> tuple[Any, ...]:
    def known(value: int | None) -> int:
        return -1 if value is None else value

    return (
        finding.file,
        known(finding.start),
        known(finding.end),
        finding.code,
        known(finding.phy_offset),
        finding.topic or "",
        known(finding.queue_id),
        known(finding.queue_offset),
        finding.expected or "",
        finding.actual or "",
        finding.message,
        finding.count,
    )
