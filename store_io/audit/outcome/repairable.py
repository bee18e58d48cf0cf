"""Kinds of store that no repair is written for, and next steps of findings that depend on the kind of store."""

from __future__ import annotations

from dataclasses import replace

from schemas.advice import Advice, Step
from schemas.finding_codes import BY_A_REPAIR, STARTS_DISPATCH, WITHOUT_DONOR, Code
from schemas.rows import Finding
from store_io.broker.settings.ledger_files import ledger_peers
from store_io.kinds.all_kinds import KINDS
from store_io.model.evidence import Evidence
from store_io.model.opened_copy import OpenedCopy


def no_repair(copy: OpenedCopy) -> Advice | None:
    """Return what to do if no repair can be made of a store of this kind; None if one can."""
    if copy.rules.value("enableDLegerCommitLog"):
        return Advice(Step.NO_LEDGER_REPAIR) if len(ledger_peers(copy.rules.value("dLegerPeers"))) > 1 else None
    return next(filter(None, (kind.no_repair(copy) for kind in KINDS)), None)


def without_promise(finding: Finding, evidence: Evidence, refused: Advice | None) -> Finding:
    """The finding with a next step that can be done with a store of this kind. refused: `no_repair` of it, which reads the whole
    listing and so is asked once for all findings."""
    copy, step = evidence.copy, finding.next
    if step is not None and (copy.rules.value("enableDLegerCommitLog") or refused):  # and no donor is taken for a DLedger log
        step = Advice(WITHOUT_DONOR.get(step.step, step.step), step.values)
    if copy.rules.rocksdb_queues and _is_dispatched(finding, evidence):
        step = STARTS_DISPATCH
    elif step in BY_A_REPAIR:
        step = refused or step
    return replace(finding, next=step) if step != finding.next else finding


def _is_dispatched(finding: Finding, evidence: Evidence) -> bool:
    """Say whether a start puts the entries that are missing: if it loses no message, it does."""
    if finding.code != Code.QUEUE_ENTRY_MISSING:
        return False
    starts = evidence.prediction is not None and evidence.prediction.starts
    return starts and evidence.loss is not None and not evidence.loss.messages
